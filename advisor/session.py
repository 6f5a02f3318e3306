"""Runs one session, from files to plan: app and commands drive this and nothing below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.log_facts import with_page
from advisor.diagnosis.open_questions import FRAMEWORKS, as_spelled, framework_named, without_foreign_versions
from advisor.knowledge import Knowledge, open_knowledge
from advisor.language import listed, say
from advisor.plan.own_number import Fitting, fitting_numbers, sized_together, with_number
from advisor.plan.patch import Patch, make_patch
from advisor.plan.plan import PlanStep
from advisor.plan.solve import finish
from advisor.request import (
    OnProgress,
    SessionRequest,
    config_module,
    machine_for,
    pick_launch,
    read_crash_of,
    read_launches,
    silent,
    stated_libraries,
)
from advisor.script.document import EditRequest, ScriptError
from advisor.script.launch import Script
from advisor.state import State, making_of, placing, state_of

__all__ = ["OnProgress", "SessionRequest", "State"]


class ChosenSet(Struct, frozen=True):
    """The steps of a plan that are on, and the numbers that the user wrote, apart from any plan."""

    steps: tuple[str, ...]
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Step → its number."""


OnPreview = Callable[[State], None]
"""Given what the ends of long logs prove, while the rest of them is still to be read."""


def open_session(
    asked: SessionRequest,
    notice: OnProgress | None = None,
    early: OnPreview | None = None,
    ends: Crash | None = None,
    needs_script: bool = False,
) -> State:
    """Read everything that was asked for and diagnose it.

    `ends`: what the ends of the logs prove; where there is more to read, `early` gets a first State of it before.
    Beside logs, a script that is not well-formed is told as such; with `needs_script` it is refused.
    Raises ScriptError, LogError, KnowledgeError or AnswerError (one sentence each), OSError or ValueError.
    """
    tell = notice or silent
    knowledge = open_knowledge(asked.knowledge)
    given = asked.answers or {}
    spelled = as_spelled(knowledge.tree, given)
    asked = replace(asked, answers=spelled, framework_named=framework_named(given, spelled) or asked.framework_named)
    script = None
    if asked.script is not None:
        tell(say("reading {file}", file=asked.script.name))
        try:
            script = read_launches(asked.script, knowledge)
        except ScriptError as error:
            from advisor.script.fragment import unread

            if needs_script or not asked.logs:
                raise
            script = unread(asked.script, str(error))
    if early is not None and ends is not None and ends.preliminary:
        early(_diagnosed(replace(asked, ray=None), knowledge, script, ends, tell))  # nodes that hang can wait
    return _diagnosed(asked, knowledge, script, read_crash_of(asked, knowledge, tell, ends), tell)


def _diagnosed(
    asked: SessionRequest, knowledge: Knowledge, script: Script | None, crash: Crash, tell: OnProgress
) -> State:
    """From what was read to the plan, on this machine."""
    if script is not None and all(one.partial and not one.program for one in script.launches):
        page = with_page(crash, script.text, knowledge.signatures)
        script = script if page.command is crash.command else replace(script, launches=())  # it is a printed command
        crash = page
    stated = stated_libraries(asked, knowledge)
    recognised, index = pick_launch(script, crash, asked, knowledge, stated)
    module = config_module(script, index, recognised, knowledge)
    if module is not None:
        script, index = module, 0
        names = {"file": module.documents[0].path.name, "script": asked.script.name if asked.script else ""}
        tell(say("reading {file}, which {script} runs", **names))
    tell(say("looking at this machine"))
    machine = machine_for(asked, knowledge, crash, script, index, tell)
    if module is not None or machine.libraries != stated:
        chosen = asked if module is None else replace(asked, launch=None)
        recognised, index = pick_launch(script, crash, chosen, knowledge, machine.libraries)
    answers = dict(asked.answers or {})
    state = state_of(asked, knowledge, machine, script, index, recognised, crash, answers)
    return accept(state, asked.accept)


def answer(state: State, question: str, choice: str | None) -> State:
    """The same session with one answer given (None: take the user's answer back). Everything downstream follows."""
    answers = {name: given for name, given in state.answers.items() if name != question}
    if choice is not None:
        answers[question] = choice
    told = choice if question in FRAMEWORKS else next((answers[name] for name in FRAMEWORKS if name in answers), None)
    if told is not None or question in FRAMEWORKS:  # in whatever order they are answered
        answers = without_foreign_versions(answers, told, state.knowledge.frameworks)
    return _again(state, answers)


def toggle(state: State, step_id: str, selected: bool | None = None) -> State:
    """The same session with one step of the plan switched; its alternatives go off, and "after" is computed again."""
    steps = {step.id: step for step in state.plan.steps}
    if step_id not in steps:
        raise ValueError(_no_step(step_id, steps))
    turned = steps[step_id]
    wanted = (not turned.selected) if selected is None else selected
    gives_way = {s.id for s in state.plan.steps if wanted and s.id != step_id and _exclude_each_other(s, turned)}
    selected_now = {s.id: s.selected and s.id not in gives_way for s in state.plan.steps}
    return _with_steps(state, {**selected_now, step_id: wanted})


def give_number(state: State, step_id: str, text: str) -> State:
    """The same session with a step on, at a number that the user wrote. Raises ValueError with the rule it breaks."""
    step, others = _with_what_stays_on(state, step_id)
    if state.planned_for is None:
        raise ValueError(_no_step(step_id, ()))
    given = with_number(step, text, state.planned_for, others)
    steps = tuple(given if one.id == step_id else one for one in state.plan.steps)
    return toggle(state.with_plan(replace(state.plan, steps=steps)), step_id, True)


def numbers_of(state: State, step_id: str) -> Fitting:
    """The numbers that a step may have beside those that are on, and whether the run fits with each."""
    step, others = _with_what_stays_on(state, step_id)
    return Fitting() if state.planned_for is None else fitting_numbers(step, state.planned_for, others)


def _with_what_stays_on(state: State, step_id: str) -> tuple[PlanStep, list[PlanStep]]:
    """A step, and those that are on and stay so when it is switched on."""
    step = next((one for one in state.plan.steps if one.id == step_id), None)
    if step is None:
        raise ValueError(_no_step(step_id, [one.id for one in state.plan.steps]))
    others = [one for one in state.plan.selected() if one.id != step_id and not _exclude_each_other(one, step)]
    return step, others


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
    on = [replace(step, selected=True) for step in taken]
    if state.planned_for is not None and (sized := sized_together(on, state.planned_for)):
        state = state.with_plan(replace(state.plan, steps=tuple(sized.get(s.id, s) for s in state.plan.steps)))
    return _with_steps(state, {s.id: s.id in wanted for s in state.plan.steps})


def chosen_set(state: State) -> ChosenSet:
    """What is on just now."""
    steps = state.plan.steps
    return ChosenSet(tuple(one.id for one in steps if one.selected), {one.id: one.own for one in steps if one.own})


def proposed_set(state: State) -> ChosenSet:
    """What the program itself would switch on, with the answers as they stand."""
    return chosen_set(_again(state, dict(state.answers)))


def with_set(state: State, chosen: ChosenSet) -> State:
    """The same session with exactly these steps on and these numbers, as far as its plan has and allows them."""
    now = _again(state, dict(state.answers))
    for step_id, text in chosen.numbers.items():
        with suppress(ValueError):
            now = give_number(now, step_id, text)
    return _with_steps(now, {step.id: step.id in chosen.steps for step in now.plan.steps})


def _no_step(name: str, known: Iterable[str]) -> str:
    steps = listed(known) or say("none")
    return say("the plan has no step {name!r}; it has {steps}", name=name, steps=steps)


def patch(state: State, more: Sequence[EditRequest] = ()) -> Patch:
    """The edits of the selected steps, and `more`, and their proof; writes nothing."""
    making = making_of(state.situation, state.launch_index) if state.situation is not None else None
    return make_patch(state.plan, state.script, state.launch_index, more, making)


def asked_otherwise(state: State, asked: SessionRequest) -> State:
    """The session on another request, with its switches and numbers; logs are read only where others are named. Raises
    what `open_session` raises."""
    before = state.asked
    asked = replace(asked, cards_named=asked.gpus != before.gpus)
    script = read_launches(asked.script, state.knowledge) if asked.script is not None else None
    same = (asked.logs, asked.record, asked.ray) == (before.logs, before.record, before.ray)
    crash = (state.logged or state.crash) if same else read_crash_of(asked, state.knowledge, silent)
    return _switched_as(state, _diagnosed(asked, state.knowledge, script, crash, silent))


def carry_over(before: State, now: State) -> State:
    """`now` with the answers that were given and the steps that were switched in `before`, as far as it has them."""
    if before.answers != now.answers:
        now = _again(now, {**now.answers, **before.answers})
    return _switched_as(before, now)


def _switched_as(before: State, now: State) -> State:
    """`now` with the numbers that were written and the steps that were switched in `before`, as far as it has them."""
    for step in before.plan.steps:
        if step.own and any(one.id == step.id for one in now.plan.steps):
            with suppress(ValueError):  # what is known now may allow it no more
                now = give_number(now, step.id, step.own)
    proposed = {step.id: step.selected for step in _again(before, dict(before.answers)).plan.steps}
    on = [step for step in before.plan.steps if step.selected]
    for step in before.plan.steps:
        gave_way = not step.selected and any(_exclude_each_other(one, step) for one in on)
        switched = proposed.get(step.id) != step.selected and not gave_way
        if switched and any(one.id == step.id and one.selected != step.selected for one in now.plan.steps):
            now = toggle(now, step.id, step.selected)
    return now


def _again(state: State, answers: dict[str, str]) -> State:
    crash = state.logged or state.crash
    recognised, index = pick_launch(
        state.script,
        crash,
        replace(state.asked, launch=state.launch_index if state.launch is not None else None),
        state.knowledge,
        state.machine.libraries,
    )
    now = state_of(state.asked, state.knowledge, state.machine, state.script, index, recognised, crash, answers)
    return accept(now, state.asked.accept)


def _with_steps(state: State, selected: Mapping[str, bool]) -> State:
    if state.planned_for is None:
        return state
    plan, steps = state.plan, [replace(step, selected=selected[step.id]) for step in state.plan.steps]
    if plan.before is None:  # its memory is beside the point
        return state.with_plan(replace(plan, steps=tuple(steps)))
    plan = finish(state.planned_for, steps, plan.not_proposed, plan.beyond)
    return state.with_plan(placing(state.planned_for, state.script, state.launch_index)(plan, state.plan.steps))
