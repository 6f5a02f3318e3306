"""Decides whether a run that died of memory is started again, and with which changes: a choice, or the one reason."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path

from msgspec import Struct

from advisor.language import mark
from advisor.plan.patch import WRITABLE, Patch, bare
from advisor.plan.plan import PlanStep
from advisor.run.resume import Checkpoint, Resumption, last_checkpoint, resumption_of
from advisor.script.document import EditRequest
from advisor.session import State, accept, patch, toggle


class No(Enum):
    """Why there is no retry."""

    STOPPED = mark("no retry: a person stopped it")
    NO_RECORD = mark("no retry: there is no record of how it ended")
    NOT_PROVEN = mark("no retry: record and output do not prove that memory ran out")
    SPENT = mark("no retry: it was started again as often as --retry allows")
    LEAK = mark("no retry: memory grows from step to step, a leak; more retries only delay it")
    NO_SCRIPT = mark("no retry: no launch script of a known framework was found in the command")
    NOT_ACCEPTED = mark("no retry: the plan lacks a step that --accept names")
    NO_CHANGE = mark("no retry: no change that may be made here would help")
    BY_HAND = mark("no retry: what would help has to be done by hand")
    CHECKPOINT_FIXED = mark("no retry: the checkpoint does not survive the changes that would help")
    DOES_NOT_FIT = mark("no retry: the plan is not expected to fit")
    FIT_UNKNOWN = mark("no retry: whether the plan fits cannot be said")
    SAME_DEATH = mark("no retry: it died in the same phase at the same step again, and there is no new change")
    NOTHING_RESUMES = mark("no retry: nothing would resume (--from-scratch starts from the beginning)")
    NO_CHECKPOINT = mark("no retry: no whole checkpoint is where one should be (--from-scratch starts all the same)")
    NOT_EXACT = mark("no retry: the change cannot be written exactly")
    ELSEWHERE = mark("no retry: the change belongs into a file that the command does not name")
    SECRETS = mark("no retry: the command has a secret in it, which is not written into a file")
    NOT_WRITTEN = mark("no retry: the changed script cannot be written")
    STILL_THERE = mark("no retry: processes of the dead run do not end")
    FAULT = mark("no retry: the program itself failed at planning it")
    NOT_STARTED = mark("no retry: the command could not be started")


class RunDeath(Struct, frozen=True):
    """How one attempt died, and what had been changed for it."""

    phase: str
    step: int
    changes: tuple[tuple[str, str | None], ...] = ()
    """Key and new value, as this attempt had them beside the original."""


class RetryRules(Struct, frozen=True):
    """What the user allows."""

    most: int = 3
    accept: str = "same-results"
    from_scratch: bool = False


class Retry(Struct, frozen=True):
    """What the next attempt changes, and where it starts."""

    state: State
    patch: Patch
    checkpoint: Checkpoint | None = None

    @property
    def changes(self) -> tuple[tuple[str, str | None], ...]:
        """Key and new value of every change."""
        return _changes(self.state.plan.selected())


class NoRetry(Struct, frozen=True):
    """No retry: which reason, and what is worth a word beside it."""

    why: No
    detail: str = ""


def choose(
    state: State, before: Sequence[RunDeath], rules: RetryRules, start: Path, since: float = 0.0
) -> Retry | NoRetry:
    """The next attempt after this death, or why there is none.

    `before`: the deaths until now, this one last; `start`: the command's folder; `since`: when the first attempt
    began, in epoch seconds: no checkpoint of an earlier run is named to this one.
    """
    if state.crash.verdict != "oom":
        return NoRetry(No.NOT_PROVEN)
    if len(before) > rules.most:
        return NoRetry(No.SPENT)
    grown = [state.situation.facts.get(name) for name in ("host.grows", "gpu.grows")] if state.situation else []
    leaks = any(fact is not None and fact.value is True for fact in grown)  # by the log; else by the record
    if len(before) > 1 and (leaks or (state.measured is not None and state.measured.grown)):
        return NoRetry(No.LEAK)
    if state.launch is None or state.situation is None or not state.run.framework or state.run.framework == "unknown":
        return NoRetry(No.NO_SCRIPT)
    resumption = resumption_of(state.situation.predictor.built(), start, Path(start, state.launch.program))
    if not rules.from_scratch and not resumption.can_resume():
        return NoRetry(No.NOTHING_RESUMES)
    try:
        wanted = accept(state, rules.accept)
    except ValueError as error:
        return NoRetry(No.NOT_ACCEPTED, str(error))
    state, left_out = _allowed(wanted, resumption, rules)
    refusal = _refused_plan(state, left_out, before)
    if refusal is not None:
        return refusal
    checkpoint = None if rules.from_scratch else last_checkpoint(resumption, 0.0 if resumption.by_itself else since)
    steps = resumption.way is not None and resumption.way.unit == "steps" and resumption.folder is not None
    saved = steps and resumption.every is not None and 1 <= resumption.every < before[-1].step
    if checkpoint is None and not rules.from_scratch and saved:  # it ran long enough to have one, in a known folder
        return NoRetry(No.NO_CHECKPOINT)
    made = patch(state, [] if rules.from_scratch else resume_edits(state, resumption, checkpoint))
    if made.refused or not made.rewrites:
        return NoRetry(No.NOT_EXACT, made.refused)
    return Retry(state, made, checkpoint)


def _refused_plan(state: State, left_out: Sequence[No], before: Sequence[RunDeath]) -> NoRetry | None:
    taken = state.plan.selected()
    if not taken:
        return NoRetry(left_out[0] if left_out else No.NO_CHANGE)
    if state.plan.fits is not True:
        unknown = state.plan.fits is None
        return NoRetry(
            No.FIT_UNKNOWN if unknown else left_out[0] if left_out else No.DOES_NOT_FIT, state.plan.shortfall
        )
    *_, last = before
    again = any((one.phase, one.step) == (last.phase, last.step) for one in before[:-1])
    if again and not {*_changes(taken)} - {change for one in before for change in one.changes}:
        return NoRetry(No.SAME_DEATH)
    return None


def _allowed(state: State, resumption: Resumption, rules: RetryRules) -> tuple[State, list[No]]:
    """The plan without what a file cannot carry and what the checkpoint does not survive, and why it was left out."""
    left_out = []
    for step in state.plan.selected():
        by_hand = step.kind not in WRITABLE or step.kind == "job" or step.no_place or not step.changes
        fixed = not rules.from_scratch and any(not resumption.survives(knob) for knob in _knobs(state, step))
        if by_hand or fixed:
            state = toggle(state, step.id, False)
            left_out.append(No.BY_HAND if by_hand else No.CHECKPOINT_FIXED)
    return state, left_out


def _knobs(state: State, step: PlanStep) -> list[str]:
    """The knobs that a step moves."""
    assert state.situation is not None
    natives = state.situation.predictor.built().natives.values
    facts = [native.fact for change in step.changes if (native := natives.get(bare(change.key))) is not None]
    return [knob for fact in facts if fact is not None for knob in (fact.knob, *fact.also) if knob]


def _changes(steps: Sequence[PlanStep]) -> tuple[tuple[str, str | None], ...]:
    return tuple((change.key, change.new) for step in steps for change in step.changes)


def resume_edits(state: State, resumption: Resumption, checkpoint: Checkpoint | None) -> list[EditRequest]:
    """The settings with which a new start begins at the checkpoint, as this launch writes them."""
    assert state.launch is not None
    found = {bare(key): setting for key, setting in state.launch.effective().items()}
    options = any(setting.key.startswith("--") for setting in found.values())
    edits = []
    for key, value in resumption.settings_from(checkpoint).items():
        setting = found.get(key)
        flag = resumption.way is not None and resumption.way.defaults.get(key) is False
        name = setting.key if setting is not None else f"--{key}" if options else key
        bare_flag = options and flag and value == "true"
        edits.append(EditRequest(name, () if bare_flag else value, "resumes from the last checkpoint"))
    return edits
