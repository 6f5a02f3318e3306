# ruff: noqa: E501  (log lines as they are printed)
"""Weights that a log or a frame shows to be loaded in fp32 are told so, and 16 bits lead."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, State, open_session
from tests.loops import each

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free.\n"
FRAMES = (
    'Traceback (most recent call last):\n  File "/w/t.py", line 3, in main\n    {call}\n'
    '  File "/x/site-packages/torch/nn/modules/module.py", line 13, in convert\n    return t.to(\n'
)
WARNED = "Flash Attention 2.0 only supports torch.float16 and torch.bfloat16 dtypes, but the current dype in Qwen2ForCausalLM is torch.float32.\n"


def opened(folder: Path, log: str) -> State:
    (folder / "run.log").write_text(log + OOM)
    return open_session(SessionRequest(None, logs=(folder / "run.log",)))


def test_fp32_is_told_where_it_is_shown_and_nowhere_else(tmp_path: Path) -> None:
    @each(
        ("log", "told"),
        [
            (WARNED + FRAMES.format(call="model = build(cfg).cuda()"), True),
            ("loaded model in torch.float32\n" + FRAMES.format(call="model = build(cfg).to(device)"), True),
            (FRAMES.format(call='model = AutoModelForCausalLM.from_pretrained("a/b").to("cuda")'), True),
            (FRAMES.format(call="m = AutoModel.from_pretrained(p, torch_dtype=torch.bfloat16).cuda()"), False),
            (FRAMES.format(call="m = AutoModel.from_pretrained(p, load_in_4bit=True).cuda()"), False),
            (FRAMES.format(call="m = AutoModel.from_pretrained(p, **kwargs).cuda()"), False),
            ("transformers==5.1.0\n" + FRAMES.format(call="m = AutoModel.from_pretrained(p).cuda()"), False),
            (FRAMES.format(call="model = build(cfg).cuda()"), False),
        ],
    )
    def checked(log: str, told: bool) -> None:
        state = opened(tmp_path, log)
        assert ("fp32" in state.diagnosis.title) == told, state.diagnosis.title
        assert (state.plan.steps[0].id == "load-in-bf16") == told

    checked()
