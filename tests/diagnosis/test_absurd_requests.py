# ruff: noqa: E501  (log lines as they are printed)
"""One tensor of several whole cards is a defect of what asked for it, where it is no batch's logits or attention."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

FRAME = 'Traceback (most recent call last):\n  File "/e/{file}", line 118, in {function}\n    go()\n'
ASKED = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB (GPU 0; 79.15 GiB total capacity; 5.62 GiB already allocated; 72.91 GiB free; 5.73 GiB reserved in total by PyTorch)\n"
CUT = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB\n"


@pytest.mark.parametrize(
    ("frame", "message", "size", "defect"),
    [
        ("flash_attn/bert_padding.py:unpad_input", ASKED, "341.58", True),
        ("flash_attn/bert_padding.py:unpad_input", CUT, "341.58", True),
        ("flash_attn/bert_padding.py:unpad_input", ASKED, "90.00", False),
        ("flash_attn/bert_padding.py:unpad_input", CUT, "150.00", False),
        ("trl/trainer/utils.py:selective_log_softmax", ASKED, "341.58", False),
    ],
)
def test_a_request_of_several_cards_is_no_load(
    tmp_path: Path, frame: str, message: str, size: str, defect: bool
) -> None:
    file, _, function = frame.partition(":")
    log = tmp_path / "run.log"
    log.write_text(FRAME.format(file=file, function=function) + message.format(size=size))
    state = open_session(SessionRequest(None, logs=(log,)))
    assert (state.diagnosis.cause == "request-is-a-defect") is defect
    if defect:
        assert state.plan.steps[0].id == "failing-feature-off"
