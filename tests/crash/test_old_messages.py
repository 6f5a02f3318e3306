"""Messages before torch 2.1 say what was reserved, not what of it was idle: the difference says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

OLD = (
    '  File "/x/transformers/trainer.py", line 2654, in training_step\n    loss = self.compute_loss(model, inputs)\n'
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity; "
    "{allocated} GiB already allocated; 1.20 GiB free; 77.10 GiB reserved in total by PyTorch)\n"
)


@pytest.mark.parametrize(
    ("allocated", "answer", "cause"), [("45.00", "fragmented", "fragmentation"), ("76.80", "neither", "")]
)
def test_what_the_pool_held_idle_answers_the_question(tmp_path: Path, allocated: str, answer: str, cause: str) -> None:
    log = tmp_path / "train.log"
    log.write_text(OLD.format(allocated=allocated))
    found = open_session(SessionRequest(logs=(log,))).diagnosis
    assert [(one.answer, one.source) for one in found.path if one.question == "message"] == [(answer, "log")]
    assert not cause or found.cause == cause


def test_a_little_of_a_full_card_is_no_fragmentation_and_old_torch_has_no_expandable_segments(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(OLD.format(allocated="74.00"))
    assert open_session(SessionRequest(logs=(log,))).diagnosis.cause != "fragmentation"
    log.write_text(OLD.format(allocated="45.00"))
    steps = {step.id for step in open_session(SessionRequest(logs=(log,))).plan.steps}
    assert "unsplit-large-blocks" in steps
    assert "expandable-segments" not in steps
