"""What lines of libraries show to be in force is a fact, also where no dialect is known, and is not proposed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 120.12 MiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the allocated memory 77.86 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.\n"  # noqa: E501


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        ("Invalidate trace cache @ step 0 and module 1458: cache has only 0 modules", 3.0),
        ("Invalidate trace cache @ step 4: expected module 1, but got module 0", 3.0),
        ("[INFO] [logging.py:96:log_dist] [Rank 0] Creating torch.bfloat16 ZeRO stage 3 optimizer", 3.0),
        ("[INFO] [logging.py:96:log_dist] [Rank 0] Creating fp16 ZeRO stage 2 optimizer", 2.0),
    ],
)
def test_the_stage_that_deepspeed_shows_is_not_proposed(tmp_path: Path, line: str, stage: float) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{line}\n{OOM}")
    state = open_session(SessionRequest(logs=(log,), answers={"holder": "states"}))
    proposed = {step.id for step in state.plan.steps}
    assert ("higher-zero-stage" in proposed) == (stage < 3)
    assert state.crash.engine_figures == {"actor.zero_stage": f"{stage:g}"}
