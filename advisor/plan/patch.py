"""Makes the edits of the selected steps: new bytes, and proof that nothing else moved. Writes no file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import clauses, say
from advisor.plan.plan import Change, Plan, PlanStep
from advisor.script.document import DocumentKind, EditRefused, EditRequest, Rewrite, Span
from advisor.script.edit import as_list, rewrite
from advisor.script.kept_changes import UNSET
from advisor.script.launch import Script
from advisor.script.proof import check
from advisor.script.reader import FOLLOWED
from advisor.words import BETWEEN_SENTENCES

WRITABLE = frozenset({"setting", "environment", "data", "job"})
"""Kinds of steps that a file carries."""


class Patch(Struct, frozen=True):
    """Edits on documents, their new bytes, and what was proven. `refused`: why there are none."""

    rewrites: tuple[Rewrite, ...]
    proof: tuple[str, ...]
    refused: str = ""
    by_hand: tuple[str, ...] = ()
    """Selected steps that no file carries (versions, machines): one sentence each."""
    along: tuple[str, ...] = ()
    """What changes with the steps, because it must agree: "deepspeed:train_micro_batch_size_per_gpu=2"."""


def is_written(step: PlanStep) -> bool:
    """Whether a file of the launch carries the step, if it is on."""
    return step.kind in WRITABLE and not step.no_place


Making = Callable[[Script, Sequence[EditRequest]], "tuple[tuple[Rewrite, ...], Sequence[EditRequest], Script]"]
"""The documents with the changes, and with others that these bring along; raises EditRefused where the program would
not get one."""


def make_patch(
    plan: Plan,
    script: Script | None,
    launch_index: int,
    more: Sequence[EditRequest] = (),
    making: Making | None = None,
) -> Patch:
    """Edits for all selected steps, and `more`. Never raises for an edit that cannot be made: `refused` says why."""
    by_hand = tuple(unwritten(s) if s.no_place else _by_hand(s) for s in plan.selected() if not is_written(s))
    wanted = [w for step in plan.selected() if is_written(step) for w in wanted_of(step)]
    wanted += more
    if script is None:
        return Patch((), (), say("there is no launch script to write"), by_hand)
    if not wanted:
        return Patch((), (), "", by_hand)
    keyed = script.documents[0].kind not in ("shell", "python")
    wanted = [as_list(one) if keyed or one.in_file else one for one in wanted]
    try:
        rewrites, asked = making(script, wanted)[:2] if making else (rewrite(script, launch_index, wanted), wanted)
    except EditRefused as refusal:
        return Patch((), (), str(refusal), by_hand)
    checks = check(script, launch_index, asked, rewrites)
    failed = [say("{what}: {detail}", what=c.what, detail=c.detail) for c in checks if c.held is False]
    if failed:
        return Patch((), (), say("the patch was not proven: {failed}", failed=clauses(failed)), by_hand)
    along = tuple(f"{one.key}={one.value}" for one in asked[len(wanted) :])
    return Patch(rewrites, tuple(c.what for c in checks if c.held), "", by_hand, along)


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths name one file."""
    return os.path.realpath(one) == os.path.realpath(other)


def wanted_of(step: PlanStep) -> list[EditRequest]:
    """The edits one step asks for, each with the comment that will stand in the file."""
    return [
        EditRequest(
            change.key,
            () if change.bare and change.new is not None else change.new,
            _brief(change),
            _edit_kind(change, step),
            form=change.form,
            in_file=change.in_file,
        )
        for change in step.changes
        if not change.left_to_user
    ]


def _edit_kind(change: Change, step: PlanStep) -> Literal["setting", "environment", "job"]:
    if step.kind == "job":
        return "job"
    return "environment" if _is_variable(step, change) else "setting"


def _brief(change: Change) -> str:
    new = "removed" if change.new is None else change.new
    return f"{change.key.lstrip('-')} {change.old if change.old is not None else UNSET} -> {new}"


def _by_hand(step: PlanStep, brief: bool = False) -> str:
    if step.kind == "version" and step.changes:
        change = step.changes[0]
        return say("{title}: {how}", title=step.title, how=pip_install(change.key, change.new or ""))
    if step.example:
        return say("{title}, for example {example}", title=step.title, example=step.example)
    return say("{title}: {how}", title=step.title, how=BETWEEN_SENTENCES.split(step.why)[0] if brief else step.why)


def unwritten(step: PlanStep) -> str:
    """Why no file carries the step as it stands, in a sentence; "" where one does, or would if it were switched on."""
    why = [caveat for caveat in step.caveats if caveat.startswith((_cannot_be_written(""), no_place_because("")))]
    left = [one for one in step.changes if one.left_to_user]
    if step.kind in WRITABLE and step.changes and not why:
        return ""
    told = step.title
    if step.example:
        told = say("{title}, for example {example}", title=told, example=step.example)
    elif why:
        wanted = (f"{one.key} → {say('removed') if one.new is None else one.new}" for one in left or step.changes)
        told = say("{title} ({changes})", title=told, changes=clauses(wanted))
    elif step.kind == "version" or step.why:
        return _by_hand(step, brief=True)
    return say("{title}: {how}", title=told, how=why[0] if why else say("no setting of this program is known for it"))


def pip_install(library: str, version: str) -> str:
    """The command that installs a version, or one of a range."""
    return f'pip install "{library}{version if version[:1] in tuple("<>=~!") else f"=={version}"}"'


def placed(
    plan: Plan,
    script: Script | None,
    launch_index: int,
    no_place: str = "",
    making: Making | None = None,
    known: Sequence[PlanStep] = (),
) -> Plan:
    """The plan with file and line of every change: where the new value would stand beside the other selected ones.

    `no_place`: why a setting that the command does not have yet may not be added to it; "" where it may. `known`: steps
    as they were placed before; one that is off as it was has its place.
    """
    off = {step.id: step.changes for step in known if not step.selected}
    if script is None or not script.launches:
        return plan  # nothing is written, so nothing lacks a place
    if no_place:
        launch = script.launches[launch_index]
        there = {bare(one.key) for one in launch.settings if one.span is not None or not launch.argv}
        plan = replace(plan, steps=tuple(_barred(step, there, no_place) for step in plan.steps))
    together = _try(
        script, launch_index, [w for step in plan.selected() if is_written(step) for w in wanted_of(step)], making
    )
    steps = tuple(
        step
        if not step.selected and off.get(step.id) == step.changes
        else _placed_step(step, together, script, launch_index, making)
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def bare(key: str) -> str:
    """A key without the dashes of an option."""
    return key.lstrip("-")


def _barred(step: PlanStep, there: Set[str], because: str) -> PlanStep:
    """The step with what stands in the files alone, whatever the program is; without a place where its own setting
    would have to be added to a command of which nobody knows that it reads it.
    """
    read = {key.partition(":")[0] for key in there if key.startswith(FOLLOWED)}  # whoever reads the file reads its keys
    new = [c for c in step.changes if bare(c.key) not in there and c.key.partition(":")[0] not in read]
    if step.kind not in ("setting", "data") or not new:
        return step
    said = no_place_because(because)
    left = {change.key for change in (step.changes if step.changes[0] in new else new)}
    how = not_written() if len(left) == len(step.changes) else say("to be added, if the program takes it")
    changes = tuple(
        replace(change, file="", line=None, how=how, left_to_user=True) if change.key in left else change
        for change in step.changes
    )
    caveats, none = tuple(dict.fromkeys((*step.caveats, said))), len(left) == len(changes)
    return replace(step, changes=changes, caveats=caveats, no_place=none)


def not_written() -> str:
    """How a change is made that no file carries."""
    return say("not written into the script")


def no_place_because(why: str) -> str:
    """The caveat of a step that no file may carry."""
    return say("no place to write it: {why}", why=why)


def _cannot_be_written(why: str) -> str:
    """The caveat of a step whose edit was refused."""
    return say("cannot be written into the script: {why}", why=why)


def _try(
    script: Script, launch_index: int, wanted: Sequence[EditRequest], making: Making | None
) -> tuple[Rewrite, ...] | str:
    """The rewrites, or the sentence of the refusal."""
    try:
        return making(script, wanted)[0] if making and wanted else rewrite(script, launch_index, wanted)
    except EditRefused as refusal:
        return str(refusal)


def _placed_step(
    step: PlanStep, together: tuple[Rewrite, ...] | str, script: Script, launch_index: int, making: Making | None
) -> PlanStep:
    if not is_written(step) or not step.changes:
        return step
    beside = step.selected and not isinstance(together, str)
    rewrites = together if beside else _try(script, launch_index, wanted_of(step), making)
    if isinstance(rewrites, str):
        refused = _cannot_be_written(rewrites)
        return replace(step, caveats=(*(c for c in step.caveats if c != refused), refused), no_place=True)
    return replace(
        step, changes=tuple(_placed_change(change, rewrites, _is_variable(step, change)) for change in step.changes)
    )


def _is_variable(step: PlanStep, change: Change) -> bool:
    """Whether it is a variable of the environment, by itself or beside a setting."""
    return change.variable or step.kind == "environment"


def _placed_change(change: Change, rewrites: Sequence[Rewrite], variable: bool) -> Change:
    if change.left_to_user:
        return change
    for done in rewrites:
        span = done.touched.get(change.key) or done.touched.get(change.key.lstrip("-"))
        if span is not None:
            line, inside = _before(done, span)
            return replace(change, file=span.path, line=line, how=_how(done.document.kind, variable, inside))
    return replace(change, file=str(rewrites[0].document.path)) if rewrites else change


def _how(kind: DocumentKind, variable: bool, inside: bool) -> str:
    """What is done at that line, in words."""
    if inside:
        return say("edited in place")
    if variable:
        return say("exported before the command")
    if kind == "shell":
        return say("added as an override")
    return say("argument added to the call" if kind == "python" else "added to the file")


def _before(done: Rewrite, span: Span) -> tuple[int, bool]:
    """The line of the file as it is where the new bytes of `span` go, and whether they replace bytes of it."""
    moved = 0
    for edit in sorted(done.edits, key=lambda e: (e.start, e.end)):
        begin = edit.start + moved
        if span.start < begin:
            break
        if span.start <= begin + len(edit.new):
            at = edit.start - (edit.start == edit.end and done.document.data[: edit.start].endswith(b"\n"))
            return done.document.data.count(b"\n", 0, max(at, 0)) + 1, edit.start < edit.end
        moved += len(edit.new) - (edit.end - edit.start)
    return done.document.data.count(b"\n", 0, span.start - moved) + 1, False


def fits_name(script: Path) -> Path:
    """run.sh → run.fits.sh; a name without a suffix gets .fits at its end."""
    return script.with_name(f"{script.stem}.fits{script.suffix}")


def report_name(destination: Path) -> Path:
    """run.fits.sh → run.fits.md."""
    return destination.with_suffix(".md") if destination.suffix else destination.with_name(destination.name + ".md")
