"""One sitting, from files to plan: both faces drive this and nothing below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.asked import (
    Asked,
    Notice,
    config_module,
    described_libraries,
    machine_for,
    other_launches,
    phase_marks,
    pick_launch,
    read_crash_of,
    silent,
)
from advisor.crash.evidence import Crash
from advisor.crash.story import preview
from advisor.diagnosis.diagnose import Diagnosed, diagnose
from advisor.diagnosis.diagnosis import Diagnosis
from advisor.diagnosis.facts import Known
from advisor.diagnosis.from_record import peaks_in
from advisor.diagnosis.leaks import held_knobs
from advisor.diagnosis.sharding import told_sharding, with_sharding
from advisor.diagnosis.version import other_answers, told_version, with_version
from advisor.knowledge import Knowledge, open_knowledge
from advisor.language import listed, say
from advisor.machine.inventory import Machine
from advisor.memory.attribution import attribute
from advisor.memory.calibrate import Correction, corrected, corrections
from advisor.memory.cells import Ledger, Match
from advisor.memory.ledger import build_ledger
from advisor.memory.peaks import with_peaks
from advisor.memory.readings import replaced_by, with_readings
from advisor.plan.patch import Patch, make_patch, placed
from advisor.plan.plan import NotProposed, Plan, PlanStep
from advisor.plan.solve import finish, make_plan
from advisor.plan.what_if import Situation
from advisor.run.build import RunInputs, build_run
from advisor.run.dialect import Recognised, no_place
from advisor.run.run import Run
from advisor.run.unread import unread_sharding
from advisor.script.launch import Launch, Script
from advisor.script.reader import read_script
from advisor.watch.measured import Measured, measured_in, with_phase

__all__ = ["Asked", "Notice", "State"]

MOST_PLANS = 3
"""Plans made before one is taken whose steps cannot all be written."""


class State(Struct, frozen=True):
    """Everything a face shows. Immutable: each change gives a new State."""

    asked: Asked
    knowledge: Knowledge
    machine: Machine
    script: Script | None
    launch_index: int
    run: Run
    crash: Crash
    ledger: Ledger
    attribution: tuple[Match, ...]
    diagnosis: Diagnosis
    plan: Plan
    answers: Mapping[str, str]
    """Question id → the user's own answer."""
    situation: Situation | None = None
    """What the plan was made for; toggles compute with it."""
    measured: Measured | None = None
    """What the record of `watch` says, where one was given."""

    @property
    def launch(self) -> Launch | None:
        """The launch that is being diagnosed."""
        return self.script.launches[self.launch_index] if self.script is not None and self.script.launches else None


Early = Callable[[State], None]
"""Given what the ends of long logs prove, while the rest of them is still to be read."""


def open_session(asked: Asked, notice: Notice | None = None, early: Early | None = None) -> State:
    """Read everything that was asked for and diagnose it.

    Where `early` is given and a log is long, a first State (its crash is `preliminary`) goes there within a second.
    Raises ScriptError, LogError, KnowledgeError or AnswerError (one sentence each), OSError or ValueError.
    """
    tell = notice or silent
    knowledge = open_knowledge(asked.knowledge)
    script = None
    if asked.script is not None:
        tell(say("reading {file}", file=asked.script.name))
        script = read_script(asked.script)
    if early is not None and asked.logs:
        first = preview(asked.logs, knowledge.signatures, *phase_marks(knowledge))
        if first is not None:
            early(_diagnosed(replace(asked, ray=None), knowledge, script, first, tell))  # nodes that hang can wait
    return _diagnosed(asked, knowledge, script, read_crash_of(asked, knowledge, tell), tell)


def _diagnosed(asked: Asked, knowledge: Knowledge, script: Script | None, crash: Crash, tell: Notice) -> State:
    """From what was read to the plan, on this machine."""
    recognised, index = pick_launch(script, crash, asked, knowledge, described_libraries(asked, knowledge))
    module = config_module(script, index, recognised, knowledge)
    if module is not None:
        script, index = module, 0
        names = {"file": module.documents[0].path.name, "script": asked.script.name if asked.script else ""}
        tell(say("reading {file}, which {script} runs", **names))
    tell(say("looking at this machine"))
    machine = machine_for(asked, knowledge, crash, script, index, tell)
    chosen = asked if module is None else replace(asked, launch=None)
    recognised, index = pick_launch(script, crash, chosen, knowledge, machine.libraries)
    return _think(asked, knowledge, machine, script, index, recognised, crash, dict(asked.answers or {}))


def answer(state: State, question: str, choice: str | None) -> State:
    """The same sitting with one answer given (None: take the user's answer back). Everything downstream follows."""
    answers = {name: given for name, given in state.answers.items() if name != question}
    if choice is not None:
        answers[question] = choice
    return _again(state, answers)


def toggle(state: State, step_id: str, selected: bool | None = None) -> State:
    """The same sitting with one step of the plan switched; its alternatives go off, and "after" is computed again."""
    steps = {step.id: step for step in state.plan.steps}
    if step_id not in steps:
        raise ValueError(_no_step(step_id, steps))
    turned = steps[step_id]
    wanted = (not turned.selected) if selected is None else selected
    return _with_steps(state, {s.id: _after_turn(s, turned, wanted) for s in state.plan.steps})


def _after_turn(step: PlanStep, turned: PlanStep, wanted: bool) -> bool:
    if step.id == turned.id:
        return wanted
    return step.selected and not (wanted and _exclude_each_other(step, turned))


def _exclude_each_other(one: PlanStep, other: PlanStep) -> bool:
    return one.group == other.group or one.id in other.conflicts or other.id in one.conflicts


def accept(state: State, which: str) -> State:
    """Select steps: "recommended" as the plan has them, "same-results" of these only such, or the ids given."""
    if which == "recommended":
        return state
    if which == "same-results":
        return _with_steps(state, {s.id: s.selected and s.results == "unchanged" for s in state.plan.steps})
    wanted = [name.strip() for name in which.split(",") if name.strip()]
    known = {step.id for step in state.plan.steps}
    for name in wanted:
        if name not in known:
            raise ValueError(_no_step(name, sorted(known)))
    taken = [step for step in state.plan.steps if step.id in wanted]
    for one, other in combinations(taken, 2):
        if _exclude_each_other(one, other):
            told = {"one": one.id, "other": other.id}
            raise ValueError(say("{one} and {other} exclude each other: take one of them", **told))
    return _with_steps(state, {s.id: s.id in wanted for s in state.plan.steps})


def _no_step(name: str, known: Iterable[str]) -> str:
    steps = listed(known) or say("none")
    return say("the plan has no step {name!r}; it has {steps}", name=name, steps=steps)


def patch(state: State) -> Patch:
    """The edits of the selected steps and their proof; writes nothing."""
    return make_patch(state.plan, state.script, state.launch_index)


def carry_over(before: State, now: State) -> State:
    """`now` with the answers that were given and the steps that were switched in `before`, as far as it has them."""
    if before.answers != now.answers:
        now = _again(now, {**now.answers, **before.answers})
    proposed = {step.id: step.selected for step in _again(before, dict(before.answers)).plan.steps}
    for step in before.plan.steps:
        switched = proposed.get(step.id) != step.selected and (
            step.selected or not _is_excluded(step, before.plan.steps)
        )
        if switched and any(one.id == step.id and one.selected != step.selected for one in now.plan.steps):
            now = toggle(now, step.id, step.selected)
    return now


def _is_excluded(step: PlanStep, by: Sequence[PlanStep]) -> bool:
    return any(one.selected and one.id != step.id and _exclude_each_other(one, step) for one in by)


# --- the way up ----------------------------------------------------------------------------------------------------


def _again(state: State, answers: dict[str, str]) -> State:
    recognised, index = pick_launch(
        state.script,
        state.crash,
        replace(state.asked, launch=state.launch_index if state.launch is not None else None),
        state.knowledge,
        state.machine.libraries,
    )
    return _think(state.asked, state.knowledge, state.machine, state.script, index, recognised, state.crash, answers)


def _think(
    asked: Asked,
    knowledge: Knowledge,
    machine: Machine,
    script: Script | None,
    index: int,
    recognised: Recognised,
    crash: Crash,
    answers: dict[str, str],
) -> State:
    """From what was read to the plan."""
    measured = measured_in(asked.record) if asked.record is not None else None
    crash = with_phase(crash, measured)
    launch = script.launches[index] if script is not None and script.launches else None
    recognised = told_version(recognised, answers)
    shardings = knowledge.tree.sharding
    frames = [f"{frame.file}:{frame.function}" for frame in crash.frames]
    unread = unread_sharding(launch, shardings, told_sharding(shardings, answers), frames)
    inputs = RunInputs(recognised, launch, machine, knowledge.models, crash.settings, asked.model, unread=unread)
    run = build_run(inputs).run
    leak_assumed = answers.get("regression") == "yes"
    others = other_launches(asked, script, index)
    inputs = replace(inputs, knobs=held_knobs(knowledge.advisories, run, machine, crash, leak_assumed))
    run = build_run(inputs).run
    refused = (say("Left out of your knowledge: {reason}", reason=sentence) for sentence in knowledge.refused)
    run = replace(run, notes=(*refused, *([others] if others else []), *run.notes))
    predicted = build_ledger(run, machine, crash)
    readings = replaced_by(predicted, crash)
    read = with_readings(predicted, readings)
    peaks = peaks_in(measured, read, run, crash)
    raw = with_peaks(read, peaks)
    known = knowledge.signatures.signatures
    limit: Literal["card", "share"] = next((s.limit for s in known if s.id == crash.signature), "card")
    found = corrections(raw, crash) if limit == "card" else ()  # a full share proves nothing of the card
    ledger = corrected(raw, found)
    matches = attribute(run, crash)
    done = diagnose(Known(crash, run, machine, ledger, matches, measured), knowledge, other_answers(answers), found)
    asks = done.cause.memory != "none"
    versioned = with_version(done.diagnosis, recognised, wanted=asks)
    done = replace(done, diagnosis=with_sharding(versioned, run.unread, shardings, wanted=asks))
    situation = replace(
        _situation(inputs, machine, crash, knowledge, done, found, asked.margin),
        leak_assumed=leak_assumed,
        limit=limit,
        readings=readings,
        peaks=peaks,
    )
    plan, situation = _planned(situation, done, ledger, script, index)
    state = State(
        asked, knowledge, machine, script, index, run, crash, ledger, matches, done.diagnosis, plan, answers, situation
    )
    return accept(replace(state, measured=measured), asked.accept)


def _situation(
    inputs: RunInputs,
    machine: Machine,
    crash: Crash,
    knowledge: Knowledge,
    done: Diagnosed,
    found: tuple[Correction, ...],
    margin: float,
) -> Situation:
    return Situation(
        inputs=inputs,
        machine=machine,
        crash=crash,
        knowledge=knowledge,
        facts=done.facts,
        cause=done.cause.id,
        phase=done.diagnosis.phase,
        place="host" if done.diagnosis.memory == "host" else "gpu",
        corrections=found,
        advisories=tuple(c.advisory for c in done.concerns if c.advisory.cause and (c.applies or c.possible)),
        cases=tuple(m.case for m in done.matched if m.same),
        margin=margin,
    )


def _planned(
    situation: Situation, done: Diagnosed, ledger: Ledger, script: Script | None, index: int
) -> tuple[Plan, Situation]:
    """The plan with its places, made anew without whatever it chose and no file can carry."""
    because = no_place(situation.inputs.recognised, situation.inputs.launch)
    for _ in range(MOST_PLANS):
        plan = _plan(situation, done, ledger)
        now = placed(plan, script, index, because)
        lost = {one.id for one, other in zip(plan.steps, now.steps, strict=True) if one.selected and not other.selected}
        if not lost:
            return now, situation
        situation = replace(situation, barred=situation.barred | lost)
    return _settled(plan, situation, script, index), situation


def _plan(situation: Situation, done: Diagnosed, ledger: Ledger) -> Plan:
    """No memory, no plan: what is not a shortage gets no memory advice."""
    if done.cause.memory == "none":
        return Plan((), ledger if not ledger.missing else None, None, situation.margin, None)
    return make_plan(situation, done.cause)


def _with_steps(state: State, selected: Mapping[str, bool]) -> State:
    if state.situation is None:
        return state
    steps = [replace(step, selected=selected[step.id]) for step in state.plan.steps]
    refused: tuple[NotProposed, ...] = state.plan.not_proposed
    plan = finish(state.situation, steps, refused)
    return replace(state, plan=_settled(plan, state.situation, state.script, state.launch_index))


def _settled(plan: Plan, situation: Situation, script: Script | None, index: int) -> Plan:
    """The plan with its places; computed again where a selected step has none, since it then does not count."""
    because = no_place(situation.inputs.recognised, situation.inputs.launch)
    now = placed(plan, script, index, because)
    if [step.selected for step in now.steps] == [step.selected for step in plan.steps]:
        return now
    return placed(finish(situation, list(now.steps), plan.not_proposed), script, index, because)
