# ruff: noqa: E501  (log lines as they are printed)
"""A size may be weights as well as logits: both are named, what the failing line makes comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session
from advisor.units import GIB

MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 79.15 GiB of which 0.20 GiB is free. Including non-PyTorch memory, "
    "this process has 78.9 GiB memory in use. Of the allocated memory {allocated} GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.\n"
)
GATHERS = [
    "    torch.empty(torch.Size([numel * world_size]), dtype=dtype, device=device)\n",
    "    flat_tensor = torch.empty(partition_size * self.num_partitions, dtype=dtype)\n",
    'Traceback (most recent call last):\n  File "/env/torch/distributed/fsdp/_unshard_param_utils.py", line 7, in _unshard_params\n    x()\n',
    'Traceback (most recent call last):\n  File "/env/torch/nn/modules/module.py", line 7, in load_state_dict\n    load(self, state_dict)\n',
]
LOSSES = [
    "    loss = F.cross_entropy(logits, labels)\n",
    "line 3479, in cross_entropy\n    return torch._C._nn.cross_entropy_loss(\n",
]


def opened(folder: Path, log: str, model: str | None = "Llama-3.1-70B", script: str = "") -> State:
    (folder / "train.log").write_text(log)
    (folder / "run.sh").write_text(script)
    launch = folder / "run.sh" if script else None
    return open_session(
        SessionRequest(
            launch,
            logs=(folder / "train.log",),
            gpus="8xA100-80GB",
            model=model,
            answers={"framework": "torchtune"} if not script else {},
        )
    )


@pytest.mark.parametrize(("line", "logits"), [*((line, False) for line in GATHERS), *((line, True) for line in LOSSES)])
def test_the_failing_line_chooses_among_what_has_the_size(tmp_path: Path, line: str, logits: bool) -> None:
    """128,256 words × 8,192 wide × 2 bytes are as many as 4,096 tokens × 128,256 words × 4 bytes."""
    state = opened(tmp_path, line + MESSAGE.format(tried="1.96 GiB", allocated=70.0))
    found = [match for match in state.attribution if match.matches]
    assert found[0].of_logits is logits
    assert {match.of_logits for match in found} == {True, False}
    if state.crash.phase == "unknown":
        assert "; or of: " in " ".join(short_report(state).split())


@pytest.mark.parametrize("line", GATHERS[:2])
def test_a_gather_s_source_line_alone_is_a_gather(tmp_path: Path, line: str) -> None:
    state = opened(tmp_path, line + MESSAGE.format(tried="1.96 GiB", allocated=70.0))
    assert state.diagnosis.cause == "weight-gather"


def test_what_completes_the_model_on_one_card_is_weights_and_is_said(tmp_path: Path) -> None:
    parameters, head = 8_030_261_248, 128_256 * 4_096 * 2
    allocated = (2 * parameters - head) / GIB
    state = opened(tmp_path, MESSAGE.format(tried="1002.00 MiB", allocated=f"{allocated:.2f}"), "Llama-3.1-8B")
    assert [match.of_logits for match in state.attribution if match.matches][:1] == [False]
    assert any("nothing shards it" in remark for remark in state.diagnosis.remarks)
    half = opened(tmp_path, MESSAGE.format(tried="1002.00 MiB", allocated=f"{allocated / 2:.2f}"), "Llama-3.1-8B")
    assert not any("nothing shards it" in remark for remark in half.diagnosis.remarks)


def test_a_model_that_nobody_named_is_told_by_size_and_sum_together(tmp_path: Path) -> None:
    parameters, head = 8_030_261_248, 128_256 * 4_096 * 2
    allocated = (2 * parameters - head) / GIB
    state = opened(tmp_path, MESSAGE.format(tried="1002.00 MiB", allocated=f"{allocated:.2f}"), None)
    assert any("128,256 vocabulary × 4,096 hidden" in remark for remark in state.diagnosis.remarks)
    other = opened(tmp_path, MESSAGE.format(tried="1002.00 MiB", allocated="40.00"), None)
    assert not any("vocabulary × 4,096 hidden" in remark for remark in other.diagnosis.remarks)


MEGATRON = (
    "megatron sft --model Qwen/Qwen3-30B-A3B --tensor_model_parallel_size 2 --pipeline_model_parallel_size 2 --expert_model_parallel_size 4 "
    "--micro_batch_size 1 --global_batch_size 16 --max_length 2048 --train_type full\n"
)


def test_one_rank_s_experts_are_named_by_their_size(tmp_path: Path) -> None:
    size = 48 * 128 * 3 * 2048 * 768 * 2 / (4 * 2)
    state = opened(tmp_path, MESSAGE.format(tried=f"{size / GIB:.2f} GiB", allocated=30.0), None, MEGATRON)
    assert "all experts of one rank" in [match.tensor for match in state.attribution if match.matches]
