"""Decides whether a dead run is started again and with which changes, and writes the script of the next attempt."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor import session
from advisor.crash.sources import LogError
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.knowledge import KnowledgeError
from advisor.language import say
from advisor.plan.patch import WRITABLE, Patch, report_name
from advisor.plan.plan import Change, PlanStep
from advisor.report.phrases import change_line
from advisor.retry.declined import Declined, NotRetried, decline
from advisor.retry.leftovers import WAIT_S
from advisor.run.bound import native
from advisor.run.resume import Checkpoint, Resume, newest_checkpoint, resume_of
from advisor.saving import only_rewrite, save
from advisor.script.document import EditRefused, ScriptError
from advisor.session import SessionRequest, State
from advisor.watch.recording import RecordError, logs_in
from advisor.words import PHASE_TITLES, Phase, os_words

UNUSABLE = (ScriptError, LogError, EditRefused, RecordError, KnowledgeError, Refusal, ValueError, OSError)
"""What unusable input raises on its way to a plan and a patch: one sentence each."""


class RetryRequest(Struct, frozen=True):
    """How often and how far a run may be changed."""

    most: int = 3
    """Attempts after the first."""
    accept: str = "same-results"
    """As `fix` has it: recommended, same-results, or ids of steps separated by commas."""
    from_scratch: bool = False
    """Start again also where nothing would resume."""
    wait_s: float = WAIT_S


class Death(Struct, frozen=True):
    """Where an attempt died."""

    phase: Phase
    step: int | None


class History(Struct, frozen=True):
    """What was tried before."""

    deaths: tuple[Death, ...] = ()
    made: frozenset[tuple[str, str | None]] = frozenset()
    """Key and new value of every change made in earlier attempts."""

    @property
    def attempts(self) -> int:
        """Attempts that followed the first."""
        return max(0, len(self.deaths) - 1)


class NextAttempt(Struct, frozen=True):
    """What is started next."""

    script: Path
    report: Path
    changes: tuple[Change, ...]
    goes_on: Checkpoint | None
    """None: there is none, or it is not known."""
    place_known: bool = True
    """Whether it could be looked at what was saved."""

    @property
    def made(self) -> frozenset[tuple[str, str | None]]:
        """Key and new value of every change."""
        return frozenset((change.key, change.new) for change in self.changes)

    def words(self) -> tuple[str, ...]:
        """The changes, a line each."""
        return tuple(change_line(change) for change in self.changes)


def open_run(script: Path, record: Path | None, knowledge: tuple[Path, ...]) -> State | Declined:
    """The session of a script, and of the record of its death where there is one."""
    try:
        logs = logs_in(record) if record is not None else ()
        state = session.open_session(SessionRequest(script=script, logs=logs, record=record, knowledge=knowledge))
    except UNUSABLE as error:
        return decline(NotRetried.NO_LAUNCH, why=_clause(error))
    if state.launch is None:
        return no_launch(script)
    return state


def no_launch(script: Path | None) -> Declined:
    """That there is nothing to change."""
    if script is None:
        return decline(NotRetried.NO_LAUNCH, why=say("the command names no launch script that could be changed"))
    told = say("no training command was found in {file}", file=clean_line(str(script)))
    return decline(NotRetried.NO_LAUNCH, why=told)


def resume_in(state: State) -> Resume:
    """How the run of a session goes on from its checkpoints."""
    if state.situation is None:
        return Resume(None, "", by_itself=False)
    predictor = state.situation.predictor
    return resume_of(predictor.inputs.recognised.framework, predictor.built().natives)


def death_in(state: State) -> Death:
    """Where the run of a session died."""
    return Death(state.diagnosis.phase, state.crash.steps_done)


def next_attempt(
    state: State, first: Path, asked: RetryRequest, history: History, since: float
) -> NextAttempt | Declined:
    """Decide, and write the script that is started next, beside `first`, the user's own. Nothing is overwritten.

    `history` ends with this death. `since`: when the first attempt began (epoch seconds).
    """
    if state.crash.verdict != "oom":
        return decline(NotRetried.NOT_PROVEN)
    if history.attempts >= asked.most:
        return decline(NotRetried.USED_UP, most=asked.most)
    resume = resume_in(state)
    if not resume.goes_on and not asked.from_scratch:
        return decline(NotRetried.NOTHING_RESUMES, outlook=resume.sentence())
    base = Path.cwd() / (state.launch.folder if state.launch is not None else "")
    checkpoint = newest_checkpoint(resume, base, 0.0 if resume.by_itself else since) if resume.goes_on else None
    saved = checkpoint is not None or (resume.goes_on and not resume.place_known)
    allowed = _permission(state, asked.accept, resume if saved else None)
    state = _restricted(state, allowed, asked.accept)
    changes = tuple(change for step in state.plan.selected() for change in step.changes)
    if not any(map(allowed, state.plan.steps)):
        return decline(NotRetried.NO_CHANGE)
    if not changes or state.plan.fits is not True:
        return decline(NotRetried.DOES_NOT_FIT)
    made = {(change.key, change.new) for change in changes}
    if len(history.deaths) > 1 and history.deaths[-1] == history.deaths[-2] and made <= history.made:
        where = history.deaths[-1]
        step = "?" if where.step is None else where.step
        return decline(NotRetried.STUCK, phase=PHASE_TITLES[where.phase], step=step)
    if checkpoint is not None and resume.point and not resume.by_itself:
        state = _pointed(state, resume.point, checkpoint)
    found = _written(state, first, changes, checkpoint)
    known = resume.place_known or not resume.goes_on
    return found if isinstance(found, Declined) else replace(found, place_known=known)


def _permission(state: State, accept: str, resume: Resume | None) -> Callable[[PlanStep], bool]:
    """Tells which steps may be made: in a file, as accepted, and survived by the checkpoint.

    `resume`: how it goes on from the checkpoint that there is or may be; None: there is none.
    """
    named = _named(accept)

    def allowed(step: PlanStep) -> bool:
        if step.kind not in WRITABLE or step.no_place or not step.changes:
            return False
        if resume is not None and _breaks(state, resume, step):
            return False
        if named is not None:
            return step.id in named
        return accept == "recommended" or step.results == "unchanged"

    return allowed


def _named(accept: str) -> set[str] | None:
    """The ids of steps that were asked for; None where it was a kind of steps."""
    return None if accept in ("recommended", "same-results") else {name.strip() for name in accept.split(",")}


def _restricted(state: State, allowed: Callable[[PlanStep], bool], accept: str) -> State:
    """The session with a plan of such steps only; those asked for by their ids are taken as they are."""
    now = session.only(state, allowed)
    by_name = _named(accept) is not None
    return session.accept(now, ",".join(s.id for s in now.plan.steps if allowed(s) and (s.selected or by_name)))


def _breaks(state: State, resume: Resume, step: PlanStep) -> bool:
    """Whether a checkpoint cannot be loaded after the step."""
    if state.situation is None or resume.fact is None:
        return False
    framework = state.situation.predictor.inputs.recognised.framework
    facts = {} if framework is None else framework.settings
    moved = [facts[key] for change in step.changes if (key := native(change.key)) in facts]
    return any({fact.knob, *fact.also} & {*resume.fact.fixed} for fact in moved)


def _pointed(state: State, key: str, checkpoint: Checkpoint) -> State:
    """The session with one more step: the launch names the checkpoint from which it goes on."""
    setting = state.launch.effective().get(key) if state.launch is not None else None
    change = Change(key, setting.text if setting is not None else None, str(checkpoint.folder))
    step = PlanStep(
        "resume",
        0,
        say("Go on from the newest checkpoint"),
        "setting",
        "free",
        (change,),
        "unchanged",
        "documented",
        {},
        "none",
        why=say("the run goes on only from the checkpoint that is named"),
        costs="",
        selected=True,
    )
    return replace(state, plan=replace(state.plan, steps=(*state.plan.steps, step)))


def _written(
    state: State, first: Path, changes: tuple[Change, ...], checkpoint: Checkpoint | None
) -> NextAttempt | Declined:
    patch = session.patch(state)
    problem = patch.refused or _elsewhere(patch, state)
    if problem:
        return decline(NotRetried.NOT_PATCHABLE, why=problem)
    destination = free_name(first)
    try:
        written = save(state, patch, destination, force=False)
    except UNUSABLE as error:
        return decline(NotRetried.NOT_PATCHABLE, why=_clause(error))
    return NextAttempt(destination, written.report, changes, checkpoint)


def _elsewhere(patch: Patch, state: State) -> str:
    """Why the rewritten script alone does not carry every change; "" where it does."""
    if patch.by_hand:
        return patch.by_hand[0]
    if not patch.rewrites:
        return say("no selected change edits the script: nothing was written")
    try:
        path = only_rewrite(patch.rewrites).document.path
    except Refusal as refusal:
        return str(refusal)
    if state.asked.script is None or not path.samefile(state.asked.script):
        return say("they are decided in {file}, which the script reads", file=clean_line(str(path)))
    return ""


def free_name(first: Path) -> Path:
    """run.sh → run.fits-1.sh, or the next number whose script and report are not there yet."""
    for number in count(1):
        name = first.with_name(f"{first.stem}.fits-{number}{first.suffix}")
        if not any(os.path.lexists(one) for one in (name, report_name(name))):
            return name
    raise AssertionError  # the numbers do not end


def _clause(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{clean_line(str(error.filename), 300)}: {os_words(error)}"
    return clean_line(str(error), 400)
