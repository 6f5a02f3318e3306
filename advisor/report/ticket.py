"""Writes the ticket: what a colleague needs, in a few short lines, without names of people, hosts and folders.

In English it is ASCII: colleagues abroad and issue trackers read it.
"""

from __future__ import annotations

import dataclasses
from pathlib import PurePath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from advisor import __version__
from advisor.crash.evidence import Evidence
from advisor.hostile import clean_line
from advisor.knowledge import open_knowledge
from advisor.language import ENGLISH, clauses, say, speaking, spoken
from advisor.machine.describe import NAMELESS
from advisor.plan.solve import finish
from advisor.report import phrases
from advisor.report.layout import plain_ascii, wrap
from advisor.report.phrases import machine_line
from advisor.report.sharing import anonymous
from advisor.words import BASIS_TITLES

if TYPE_CHECKING:
    from advisor.state import State

COLUMNS, LINES = 76, 25
QUOTED = 150


def ticket(state: State, in_english: bool = True) -> str:
    """At most 25 lines of 76 columns: verdict, proof, cause, machine, changes; ASCII in English. `in_english` False: in
    the language spoken."""
    if not in_english or spoken() == ENGLISH:
        return _ticket(state)
    nameless = say(NAMELESS)
    with speaking(ENGLISH):
        return _ticket(_in_english(state, nameless))


def _in_english(state: State, nameless: str) -> State:
    """The session with what the ticket quotes of it told again: titles by their ids, the plan's promise computed.
    `nameless`: what a card without a name was called."""
    knowledge, diagnosis = open_knowledge(state.asked.knowledge), state.diagnosis
    causes = {cause.id: cause.title for cause in knowledge.tree.causes}
    cases = {case.id: case.title for case in knowledge.cases}
    frameworks = {one.framework: one.title for one in knowledge.frameworks}
    diagnosis = replace(
        diagnosis,
        title=causes.get(diagnosis.cause, diagnosis.title),
        cases=tuple(replace(case, title=cases.get(case.id, case.title)) for case in diagnosis.cases),
    )
    run, plan, machine = state.run, state.plan, state.machine
    cards = (dataclasses.replace(one, name=NAMELESS) if one.name == nameless else one for one in machine.gpus)
    machine = dataclasses.replace(machine, gpus=tuple(cards))
    run = replace(run, title=frameworks.get(run.framework, run.title))
    if plan.shortfall and state.planned_for is not None:
        plan = replace(plan, shortfall=finish(state.planned_for, list(plan.steps), plan.not_proposed).shortfall)
    return replace(state, diagnosis=diagnosis, run=run, machine=machine).with_plan(plan)


def _ticket(state: State) -> str:
    lines = _said(
        say("{program}, knowledge {digest}", program=f"rl-oom-advisor {__version__}", digest=state.knowledge.digest[:8])
    )
    lines += _said(phrases.verdict(state))
    if other := phrases.of_another_run(state):
        lines += _said(other)
    box = machine_line(state.machine, state.run.topology, state.crash.platform)
    lines += _said(say("Run: {run}", run=phrases.subject(state.run))) + _said(say("Box: {box}", box=box))
    for evidence in _told(state):
        place = f"{PurePath(evidence.file).name or 'log'}:{evidence.line}"
        lines += _said(f"{place} {clean_line(evidence.text, QUOTED)}", 2)
    if state.diagnosis.cause:
        told = {"title": state.diagnosis.title, "basis": BASIS_TITLES[state.diagnosis.basis]}
        lines += _said(say("Likely cause: {title} ({basis})", **told))
    if (case := phrases.looks_like(state)) is not None:
        lines += _said(say("Looks like: {case}", case=case.title))
    lines += _changes(state)
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], "..."]
    return "\n".join(lines) + "\n"


def _said(text: str, indent: int = 0) -> list[str]:
    text = anonymous(text)
    return wrap(plain_ascii(text) if spoken() == ENGLISH else text, indent, indent + 2, COLUMNS)


def _told(state: State) -> list[Evidence]:
    """The first lines that tell it, each once: one line may be evidence of two things."""
    telling = [one for one in state.crash.evidence if one.role in ("cause", "victim", "telemetry")]
    lines = {(one.file, one.line): one for one in reversed(telling)}
    return list(reversed(lines.values()))[:3]


def _changes(state: State) -> list[str]:
    chosen = state.plan.selected()
    if not chosen:
        return []
    lines = [say("Changes:")]
    for step in chosen:
        for change in step.changes:
            same = say("results unchanged" if step.results == "unchanged" else "RESULTS CHANGE")
            lines += _said(clauses([phrases.change_line(change), same]), 2)
    return lines + _said(phrases.fits_words(state.plan))
