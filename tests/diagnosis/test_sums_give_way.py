# ruff: noqa: E501  (log lines as they are printed)
"""A sum of whole weights gives way to what the log shows, and a size is told from a chance one."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} (GPU 0; 23.69 GiB total capacity; {held} already allocated; 80.00 MiB free; 23.00 GiB reserved in total by PyTorch)\n"
FRAME = 'Traceback (most recent call last):\n  File "/v/site-packages/{file}", line 5, in {function}\n    {code}\n'
PACKED = FRAME.format(file="bitsandbytes/functional.py", function="dequantize_4bit", code="out = torch.empty(shape)")
MASK = FRAME.format(file="own/packing.py", function="_build_block_attention_mask", code="m = torch.zeros((n, n))")


@pytest.mark.parametrize(
    ("launch", "log", "words", "never"),
    [
        ("python t.py --model_name_or_path codellama/CodeLlama-34b-hf", PACKED + OOM.format(tried="448.00 MiB", held="22.10 GiB"), "packed", "alone are more"),
        ("python t.py --model_name_or_path a/b-6b", OOM.format(tried="64.00 MiB", held="22.29 GiB"), "", "whole model"),
        ("NPROC_PER_NODE=2 xtuner train internlm2_20b_qlora_sft_e3", OOM.format(tried="1.02 GiB", held="21.40 GiB"), "", "in full"),
        ("", MASK + OOM.format(tried="16.00 GiB", held="7.00 GiB"), "mask", ""),
        ("torchrun --nproc_per_node 4 s.py --model_name_or_path Qwen/Qwen2.5-7B --deepspeed z2.json", OOM.format(tried="7.10 GiB", held="16.00 GiB"), "fp32 copies", ""),
    ],
)  # fmt: skip
def test_what_the_log_shows_outdoes_a_sum(tmp_path: Path, launch: str, log: str, words: str, never: str) -> None:
    (tmp_path / "run.log").write_text(log)
    (tmp_path / "run.sh").write_text(launch + "\n")
    script = tmp_path / "run.sh" if launch else None
    state = open_session(SessionRequest(script, logs=(tmp_path / "run.log",), gpus="4xRTX 3090"))
    assert words in state.diagnosis.title
    assert not never or never not in state.diagnosis.title
