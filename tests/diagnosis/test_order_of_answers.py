"""Answers given in any order, and taken back on the way, give one state."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from itertools import permutations
from pathlib import Path

import pytest

from advisor import session
from advisor.session import SessionRequest, State
from tests.diagnosis.test_likely_phase import LOG, SCRIPT
from tests.replacing import replace
from tests.stories.told import RUNS


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> State:
    folder = tmp_path_factory.mktemp("run")
    (folder / "run.sh").write_text(SCRIPT)
    (folder / "train.log").write_text(LOG)
    return session.open_session(SessionRequest(folder / "run.sh", (folder / "train.log",), gpus="2xH100-80GB"))


def told(state: State) -> object:
    steps = [(step.id, step.selected, step.changes, step.saves) for step in state.plan.steps]
    path = [(step.question, step.answer, step.source) for step in state.diagnosis.path]
    return dict(state.answers), state.diagnosis.cause, path, state.ledger, steps, state.plan.fit


def test_every_order_leads_to_the_same_state(opened: State) -> None:
    names = [step.question for step in opened.diagnosis.path if len(step.choices) > 1][:3]
    answers = {step.question: step.choices[-1].id for step in opened.diagnosis.path if step.question in names}
    assert len(answers) == 3, "as many as make six orders"
    unplanned = replace(opened, asked=replace(opened.asked, planned=False))
    ends = [in_order(unplanned, order, answers) for order in permutations(answers)]
    assert all(end == ends[0] for end in ends)
    one, other = in_order(opened, answers, answers), in_order(opened, reversed(answers), answers)
    assert one == other


def in_order(state: State, order: Iterable[str], answers: Mapping[str, str]) -> object:
    for name in order:
        state = session.answer(state, name, answers[name])
    return told(state)


def test_an_answer_that_is_taken_back_leaves_no_trace(opened: State) -> None:
    unplanned = replace(opened, asked=replace(opened.asked, planned=False))
    for state, name, choice in ((opened, "phase", "log_prob"), (unplanned, "memory", "host")):
        before = told(session.answer(state, "phase", None))
        there = session.answer(state, name, choice)
        assert told(there) != before
        assert told(session.answer(there, name, None)) == before


def test_a_phase_that_a_size_moves_goes_back_with_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS / "logic-rl", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    asked = SessionRequest(Path("stage1.sh"), (Path("stage1.log"),), gpus="4xA100-80GB", planned=False)
    begun = session.answer(session.open_session(asked), "framework", "prime-rl")
    moved = session.answer(begun, "phase", "rollout_generate")
    assert moved.crash.phase != begun.crash.phase
    assert session.answer(moved, "phase", None).crash == begun.crash
