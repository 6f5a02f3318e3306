"""A log that goes well and stops: still going, ended, or killed from outside."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from advisor.report.phrases import verdict
from advisor.session import SessionRequest, State, open_session

GOING = "".join(f"step:{step} - actor/lr:0.1 perf/max_memory_allocated_gb:41\n" for step in range(50, 54))


def opened(folder: Path, log: str = GOING, hours: float = 0.0, **answers: str) -> State:
    file = folder / "train.log"
    file.write_text(log)
    written = time.time() - hours * 3600
    os.utime(file, (written, written))
    return open_session(SessionRequest(logs=(file,), gpus="8xH100-80GB", answers=answers))


def test_a_log_that_was_just_written_may_be_of_a_run_that_lives(tmp_path: Path) -> None:
    state = opened(tmp_path)
    assert state.crash.verdict == "not_oom"
    assert "stopped without a word" in verdict(state)


def test_a_log_that_nobody_wrote_to_for_hours_stopped_without_a_word(tmp_path: Path) -> None:
    state = opened(tmp_path, hours=9)
    assert (state.crash.verdict, state.crash.memory) == ("unclear", "unknown")
    assert "stops without a word" in state.crash.unclear_because
    assert any("137" in hint for hint in state.crash.settle_by)


def test_the_end_of_the_run_is_an_end_however_old(tmp_path: Path) -> None:
    state = opened(tmp_path, GOING + "Final validation metrics: {'val': 1.0}\nTraining completed.\n", hours=9)
    assert state.crash.finished == (state.crash.verdict == "not_oom")


@pytest.mark.parametrize(
    "answers", [{"memory": "gpu"}, {"first_step": "no"}, {"memory": "gpu", "phase": "weight_sync"}]
)
def test_whoever_says_how_it_died_is_not_told_that_nothing_failed(tmp_path: Path, answers: dict[str, str]) -> None:
    state = opened(tmp_path, **answers)
    assert state.crash.verdict == "unclear"
    assert "Nothing" not in verdict(state)
    assert state.diagnosis.cause != "nothing-failed"
