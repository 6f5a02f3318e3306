"""One sitting, from files to plan: both faces drive this and nothing below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from advisor.crash.evidence import NOTHING, Crash
from advisor.crash.story import read_logs
from advisor.diagnosis.diagnose import Diagnosed, diagnose
from advisor.diagnosis.diagnosis import Diagnosis
from advisor.diagnosis.facts import Known
from advisor.diagnosis.leaks import held_knobs
from advisor.hostile import clean
from advisor.knowledge import Knowledge, load_knowledge
from advisor.machine.describe import described, from_log, merge
from advisor.machine.inventory import Machine
from advisor.machine.measure import measure
from advisor.memory.attribution import attribute
from advisor.memory.calibrate import Correction, corrected, corrections
from advisor.memory.cells import Ledger, Match
from advisor.memory.ledger import build_ledger
from advisor.plan.patch import Patch, make_patch, placed
from advisor.plan.plan import NotProposed, Plan, PlanStep
from advisor.plan.solve import finish, make_plan
from advisor.plan.what_if import Situation
from advisor.run.build import RunInputs, build_run
from advisor.run.dialect import Recognised, recognise
from advisor.run.run import Run
from advisor.script.launch import Launch, Script
from advisor.script.reader import read_script


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user gave on the command line, or later in the app."""

    script: Path | None = None
    logs: tuple[Path, ...] = ()
    gpus: str | None = None
    """"8xA100-40GB"."""
    nodes: int | None = None
    host_ram: str | None = None
    shm: str | None = None
    libraries: tuple[str, ...] = ()
    """"deepspeed=0.16.3"."""
    machine_files: tuple[Path, ...] = ()
    model: str | None = None
    launch: int | None = None
    """0-based; None: the first launch that a dialect knows, else the first."""
    margin: float = 0.08
    """Fraction of every capacity to be left free."""
    answers: Mapping[str, str] | None = None
    accept: str = "recommended"
    """recommended, same-results, or step ids separated by commas."""


@dataclass(frozen=True, slots=True)
class State:
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
    situation: Situation | None = field(default=None, repr=False, compare=False)
    """What the plan was made for; toggles compute with it."""

    @property
    def launch(self) -> Launch | None:
        """The launch that is being diagnosed."""
        return self.script.launches[self.launch_index] if self.script is not None and self.script.launches else None


Notice = Callable[[str], None]
"""Told what is being read, for progress."""


def open_session(asked: Asked, notice: Notice | None = None) -> State:
    """Read everything that was asked for and diagnose it.

    Raises ScriptError, LogError, KnowledgeError or AnswerError (one sentence each), OSError or ValueError.
    """
    tell = notice or _silent
    knowledge = load_knowledge()
    script = None
    if asked.script is not None:
        tell(f"reading {asked.script.name}")
        script = read_script(asked.script)
    crash = _read_crash(asked.logs, knowledge, tell)
    recognised, index = _pick_launch(script, crash, asked, knowledge, described_libraries(asked, knowledge))
    tell("looking at this machine")
    machine = _machine(asked, knowledge, crash, script, index)
    recognised, index = _pick_launch(script, crash, asked, knowledge, machine.libraries)
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
        raise ValueError(f"the plan has no step {step_id!r}; it has {', '.join(steps)}")
    turned = steps[step_id]
    wanted = (not turned.selected) if selected is None else selected
    return _with_steps(state, {s.id: _after_turn(s, turned, wanted) for s in state.plan.steps})


def _after_turn(step: PlanStep, turned: PlanStep, wanted: bool) -> bool:
    if step.id == turned.id:
        return wanted
    return step.selected and not (wanted and step.group == turned.group)


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
            raise ValueError(f"the plan has no step {name!r}; it has {', '.join(sorted(known)) or 'none'}")
    return _with_steps(state, {s.id: s.id in wanted for s in state.plan.steps})


def patch(state: State) -> Patch:
    """The edits of the selected steps and their proof; writes nothing."""
    return make_patch(state.plan, state.script, state.launch_index)


def with_machine(state: State, machine: Machine) -> State:
    """The same sitting on another machine."""
    return _again(replace(state, machine=machine), dict(state.answers))


# --- the way up ----------------------------------------------------------------------------------------------------


def _silent(_: str) -> None:
    return


def _read_crash(logs: Sequence[Path], knowledge: Knowledge, tell: Notice) -> Crash:
    if not logs:
        return NOTHING
    for log in logs:
        tell(f"reading {log.name}")
    frames = [rule for framework in knowledge.frameworks for rule in framework.frames]
    progress = [mark for framework in knowledge.frameworks for mark in framework.progress]
    return read_logs(logs, knowledge.signatures, frames, progress)


def described_libraries(asked: Asked, knowledge: Knowledge) -> Mapping[str, str]:
    """Versions the user named, for choosing the launch before the machine is measured."""
    return described(knowledge.gpus, libraries=asked.libraries).libraries


def _pick_launch(
    script: Script | None, crash: Crash, asked: Asked, knowledge: Knowledge, libraries: Mapping[str, str]
) -> tuple[Recognised, int]:
    """The launch asked for, else the first that a dialect knows, else the first."""
    launches = script.launches if script is not None else ()
    if asked.launch is not None and not 0 <= asked.launch < len(launches):
        raise ValueError(f"there is no launch {asked.launch + 1}; {asked.script} has {len(launches)}")
    order = range(len(launches)) if asked.launch is None else [asked.launch]
    text = clean(script.documents[0].data.decode(errors="replace"), 200_000) if script is not None else ""

    def told(launch: Launch | None) -> Recognised:
        merged = {**crash.libraries, **libraries}
        return recognise(launch, text, crash.frameworks, crash.settings, merged, knowledge.frameworks)

    for index in order:
        recognised = told(launches[index])
        if recognised.framework is not None:
            return recognised, index
    return told(launches[order[0]] if launches else None), order[0] if launches else 0


def _machine(asked: Asked, knowledge: Knowledge, crash: Crash, script: Script | None, index: int) -> Machine:
    launch = script.launches[index] if script is not None and script.launches else None
    host = crash.evidence[0].fields.get("node_total_bytes") if crash.evidence else None
    return merge(
        measure(launch.interpreter if launch is not None else None),
        described(
            knowledge.gpus,
            gpus=asked.gpus,
            nodes=asked.nodes,
            host_ram=asked.host_ram,
            shm=asked.shm,
            libraries=asked.libraries,
            machine_files=asked.machine_files,
        ),
        from_log(
            gpu_bytes=crash.gpu_total_bytes,
            gpu_names=crash.gpu_names,
            host_bytes=host if isinstance(host, int) else None,
            libraries=crash.libraries,
        ),
    )


def _again(state: State, answers: dict[str, str]) -> State:
    recognised, index = _pick_launch(
        state.script,
        state.crash,
        replace(state.asked, launch=state.launch_index if state.script else None),
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
    launch = script.launches[index] if script is not None and script.launches else None
    inputs = RunInputs(recognised, launch, machine, knowledge.models, crash.settings, asked.model)
    run = build_run(inputs).run
    inputs = replace(inputs, knobs=held_knobs(knowledge.advisories, run, machine, crash))
    run = build_run(inputs).run
    raw = build_ledger(run, machine, crash)
    found = corrections(raw, crash)
    ledger = corrected(raw, found)
    matches = attribute(run, crash)
    done = diagnose(Known(crash, run, machine, ledger, matches), knowledge, answers, found)
    situation = _situation(inputs, machine, crash, knowledge, done, found, asked.margin)
    plan = _plan(situation, done, ledger)
    plan = placed(plan, script, index)
    state = State(
        asked, knowledge, machine, script, index, run, crash, ledger, matches, done.diagnosis, plan, answers, situation
    )
    return accept(state, asked.accept)


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
    return replace(state, plan=placed(plan, state.script, state.launch_index))
