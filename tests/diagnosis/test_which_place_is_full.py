"""Errno 28 without a path: /dev/shm or a disk, which one look tells; nothing else is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

FULL = "OSError: [Errno 28] No space left on device\n"


def opened(folder: Path, **answers: str) -> State:
    file = folder / "train.log"
    file.write_text(FULL)
    return open_session(SessionRequest(logs=(file,), gpus="8xH100-80GB", answers=answers))


def test_the_place_is_asked_for_and_a_step_is_told_for_shared_memory(tmp_path: Path) -> None:
    state = opened(tmp_path)
    asked = state.deciding()
    assert asked is not None
    assert asked.step.question == "full_place"
    assert {outcome.cause.memory for outcome in asked.outcomes} == {"shm", "none"}
    assert [step.id for step in state.plan.steps if step.only_if][:1] == ["raise-shm"]
    assert "disk → A disk is full; then: Find what fills the disk" in " ".join(short_report(state).split())


@pytest.mark.parametrize(("place", "memory", "first"), [("disk", "none", "free-disk"), ("shm", "shm", "raise-shm")])
def test_the_answer_gives_the_steps_of_that_place(tmp_path: Path, place: str, memory: str, first: str) -> None:
    state = opened(tmp_path, full_place=place)
    assert state.diagnosis.memory == memory
    assert state.plan.steps[0].id == first
