"""The end of a long log is diagnosed first; what was answered and switched meanwhile is carried into the whole."""

import pytest

from advisor.crash.sources import PREVIEWS
from advisor.demo import demo_files
from advisor.session import SessionRequest, State, answer, carry_over, open_session, toggle
from advisor.tui.driver import SessionDriver
from tests.replacing import replace


@pytest.fixture(scope="module")
def demo() -> State:
    files = demo_files()
    return open_session(SessionRequest(script=files.script, logs=(files.log,), machine_files=(files.machine,)))


def test_a_long_log_is_told_by_its_end_first_and_then_whole(tmp_path):
    log = tmp_path / "run.log"
    with log.open("wb") as file:
        file.write(b"a line\n" * 2_000)
        file.seek(PREVIEWS[-1] + 100_000)
        file.write(b"\n" + demo_files().log.read_bytes())
    early, told, asked = [], [], SessionRequest(logs=(log,))
    ends = SessionDriver(asked).ends()
    whole = open_session(asked, told.append, early.append, ends)
    assert [bool(state.crash.preliminary) for state in (*early, whole)] == [True, False]
    assert early[0].crash.signature == whole.crash.signature
    assert whole.crash.evidence[0].line - early[0].crash.evidence[0].line >= 2_000
    assert any(text.startswith("reading run.log") for text in told)


def test_a_short_log_is_read_as_a_whole_and_once(demo, monkeypatch):
    files = demo_files()
    asked = SessionRequest(script=files.script, logs=(files.log,), machine_files=(files.machine,))
    ends = SessionDriver(asked).ends()
    assert not ends.preliminary
    monkeypatch.setattr("advisor.request.read_crash", None)
    early = []
    assert open_session(asked, None, early.append, ends).crash == demo.crash
    assert early == []
    assert SessionDriver(SessionRequest()).ends() is None


def test_answers_are_carried_over(demo):
    step = demo.diagnosis.path[0]
    choice = next(one.id for one in step.choices if one.id != step.answer)
    before = answer(demo, step.question, choice)
    assert carry_over(before, demo).answers == {step.question: choice}
    assert carry_over(before, demo).diagnosis == before.diagnosis


def test_switched_steps_are_carried_over_and_nothing_else(demo):
    turned = demo.plan.steps[0]
    before = toggle(demo, turned.id)
    assert [one.selected for one in carry_over(before, demo).plan.steps] == [one.selected for one in before.plan.steps]
    assert carry_over(demo, demo).plan == demo.plan


def test_a_step_that_the_whole_log_no_longer_proposes_is_let_go(demo):
    gone = demo.plan.steps[0]
    rest = tuple(one for one in demo.plan.steps if one.id != gone.id)
    now = demo.with_plan(replace(demo.plan, steps=rest))
    carried = carry_over(toggle(demo, gone.id), now).plan.steps
    assert [(one.id, one.selected) for one in carried] == [(one.id, one.selected) for one in now.plan.steps]
