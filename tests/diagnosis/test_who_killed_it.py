"""A kill that the log shows is not asked for; who killed is, and nothing is concluded before the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

KILLED = "['python', '-u', 'main.py', '--local_rank=0'] exits with return code = -9\n"


def opened(folder: Path, **answers: str) -> State:
    file = folder / "train.log"
    file.write_text(KILLED)
    return open_session(SessionRequest(logs=(file,), gpus="8xH100-80GB", answers=answers))


def test_the_log_answers_what_was_seen_and_leaves_open_who_killed(tmp_path: Path) -> None:
    state = opened(tmp_path)
    assert {step.question: step.source for step in state.diagnosis.path}["seen"] == "log"
    asked = state.deciding()
    assert asked is not None
    assert asked.step.question == "killer"
    assert {outcome.cause.memory for outcome in asked.outcomes} == {"host", "none"}
    assert state.diagnosis.cause == "unclear"


@pytest.mark.parametrize(("killer", "memory"), [("kernel", "host"), ("other", "none")])
def test_the_answer_tells_host_ram_from_no_shortage(tmp_path: Path, killer: str, memory: str) -> None:
    assert opened(tmp_path, killer=killer).diagnosis.memory == memory
