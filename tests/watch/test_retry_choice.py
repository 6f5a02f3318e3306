"""When a run that died of memory is started again, and each reason why not."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import msgspec
import pytest

from advisor.commands import retry
from advisor.commands.retry_choice import No, NoRetry, Retry, RetryRules, RunDeath, choose
from advisor.crash.evidence import Crash
from advisor.session import SessionRequest, State, open_session
from advisor.watch.events import Notifier
from advisor.watch.launcher import WatchResult
from advisor.watch.request import WatchRequest

RUNS = Path(__file__).parents[1] / "runs"
DIED = RunDeath("actor_update", 7)
SCRATCH = RetryRules(from_scratch=True)


@lru_cache
def logic_rl() -> State:
    """Stage 1 of Logic-RL, which died in the actor update and saves nothing that it could start from."""
    run = RUNS / "logic-rl"
    return open_session(SessionRequest(script=run / "stage1.sh", logs=(run / "stage1.log",)))


def chosen(state: State, *before: RunDeath, rules: RetryRules = SCRATCH) -> Retry | NoRetry:
    return choose(state, before or (DIED,), rules, Path("/run"))


def why(state: State, *before: RunDeath, rules: RetryRules = SCRATCH) -> No:
    found = chosen(state, *before, rules=rules)
    assert isinstance(found, NoRetry), found
    return found.why


def test_changes_that_keep_results_and_are_expected_to_fit_are_made() -> None:
    found = chosen(logic_rl())
    assert isinstance(found, Retry)
    assert found.changes
    assert all(step.results == "unchanged" for step in found.state.plan.selected())
    assert found.state.plan.fits is True


def test_where_nothing_would_resume_there_is_no_retry_unless_it_may_start_from_scratch() -> None:
    assert why(logic_rl(), rules=RetryRules()) is No.NOTHING_RESUMES


@pytest.mark.parametrize("verdict", ["not_oom", "unproven"])
def test_a_crash_that_is_not_proven_is_no_reason(verdict: str) -> None:
    state = logic_rl()
    crash: Crash = msgspec.structs.replace(state.crash, verdict=verdict)
    assert why(msgspec.structs.replace(state, crash=crash)) is No.NOT_PROVEN


def test_no_more_retries_than_were_allowed() -> None:
    assert why(logic_rl(), DIED, RunDeath("log_prob", 9), rules=RetryRules(1, from_scratch=True)) is No.SPENT


def test_the_same_death_again_without_a_new_change_ends_it() -> None:
    first = chosen(logic_rl())
    assert isinstance(first, Retry)
    again = RunDeath(DIED.phase, DIED.step, first.changes)
    assert why(logic_rl(), DIED, again) is No.SAME_DEATH
    assert isinstance(chosen(logic_rl(), DIED, RunDeath("actor_update", 9, first.changes)), Retry)


def test_a_step_that_the_plan_does_not_have_is_told() -> None:
    assert why(logic_rl(), rules=RetryRules(accept="no-such-step", from_scratch=True)) is No.NOT_ACCEPTED


def test_what_changes_results_is_not_done_unless_it_is_accepted() -> None:
    run = RUNS / "ms-swift"
    state = open_session(SessionRequest(script=run / "grpo.sh", logs=(run / "train.log",)))
    assert why(state) is No.NO_CHANGE


def test_what_must_be_done_by_hand_is_only_told() -> None:
    run = RUNS / "openrlhf"
    state = open_session(SessionRequest(script=run / "train_ppo_llama3_70b.sh", logs=(run / "train.log",)))
    assert why(state) is No.BY_HAND


def test_a_plan_of_which_nobody_can_say_whether_it_fits_is_not_tried() -> None:
    run = RUNS / "easyr1"
    state = open_session(SessionRequest(script=run / "qwen2_5_vl_7b.sh", logs=(run / "train.log",)))
    assert why(state) is No.FIT_UNKNOWN


def test_a_plan_that_does_not_fit_is_not_tried() -> None:
    run = RUNS / "logic-rl"
    asked = SessionRequest(script=run / "stage1.sh", logs=(run / "stage1.log",), accept="recommended", margin=0.08)
    state = open_session(asked)
    short = msgspec.structs.replace(state.plan.fit, verdict="does_not_fit")
    steps = tuple(step for step in state.plan.steps if step.selected and step.results == "unchanged")
    plan = msgspec.structs.replace(state.plan, fit=short, steps=steps)
    short_of_room = state.with_plan(plan)
    assert why(short_of_room, rules=RetryRules(accept="recommended", from_scratch=True)) is No.DOES_NOT_FIT


def test_without_a_script_of_a_known_framework_there_is_nothing_to_change() -> None:
    state = open_session(SessionRequest(logs=(RUNS / "logic-rl" / "stage1.log",)))
    assert why(state) is No.NO_SCRIPT


def test_every_reason_is_one_sentence() -> None:
    assert all(reason.value.startswith("no retry: ") and "\n" not in reason.value for reason in No)


def test_a_fault_of_ours_costs_the_retry_and_not_the_commands_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retry, "_after", fail)
    monkeypatch.setattr(retry, "adopt_orphans", lambda: None)
    monkeypatch.setattr(retry, "watch", lambda *_: WatchResult(None, 256))
    said: list[str] = []
    ended = retry.run_with_retries(WatchRequest(("false",)), RetryRules(), Notifier(None), said.append)
    assert ended.status == 256
    assert No.FAULT.value in said
    assert "ZeroDivisionError: ours" in said
