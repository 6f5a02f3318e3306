"""The selected steps as edits of the launch script: new bytes, and proof that nothing else moved. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.plan.plan import Change, Plan, PlanStep
from advisor.script.document import EditRefused, Rewrite, Wanted
from advisor.script.edit import rewrite
from advisor.script.launch import Script
from advisor.script.proof import check

WRITABLE = frozenset({"setting", "environment", "data"})
"""Kinds of steps that a file carries."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Edits on documents, their new bytes, and what was proven. `refused`: why there are none."""

    rewrites: tuple[Rewrite, ...]
    proof: tuple[str, ...]
    refused: str = ""
    by_hand: tuple[str, ...] = ()
    """Selected steps that no file carries (versions, machines): one sentence each."""


def make_patch(plan: Plan, script: Script | None, launch_index: int) -> Patch:
    """Edits for all selected steps. Never raises for an edit that cannot be made: `refused` says why."""
    by_hand = tuple(_by_hand(step) for step in plan.selected() if step.kind not in WRITABLE)
    wanted = [w for step in plan.selected() if step.kind in WRITABLE for w in wanted_of(step)]
    if script is None:
        return Patch((), (), "there is no launch script to write", by_hand)
    if not wanted:
        return Patch((), (), "", by_hand)
    try:
        rewrites = rewrite(script, launch_index, wanted)
    except EditRefused as refusal:
        return Patch((), (), str(refusal), by_hand)
    checks = check(script, launch_index, wanted, rewrites)
    failed = [f"{c.what}: {c.detail}" for c in checks if c.held is False]
    if failed:
        return Patch((), (), "the patch was not proven: " + "; ".join(failed), by_hand)
    return Patch(rewrites, tuple(c.what for c in checks if c.held), "", by_hand)


def wanted_of(step: PlanStep) -> list[Wanted]:
    """The edits one step asks for, each with the comment that will stand in the file."""
    kind = "environment" if step.kind == "environment" else "setting"
    return [
        Wanted(
            change.key,
            change.new,
            f"{step.id}: {_brief(change)}",
            "environment" if kind == "environment" else "setting",
        )
        for change in step.changes
    ]


def _brief(change: Change) -> str:
    new = "removed" if change.new is None else change.new
    return f"{change.key.lstrip('-')} {change.old if change.old is not None else '(unset)'} -> {new}"


def _by_hand(step: PlanStep) -> str:
    if step.kind == "version" and step.changes:
        change = step.changes[0]
        pinned = change.new if change.new and change.new[0] in "<>=~!" else f"=={change.new}"
        return f'{step.title}: pip install "{change.key}{pinned}"'
    return f"{step.title}: {step.why}"


def placed(plan: Plan, script: Script | None, launch_index: int) -> Plan:
    """The plan with file and line of every change: where the new value would stand beside the other selected ones."""
    if script is None:
        return plan
    together = _try(
        script, launch_index, [w for step in plan.selected() if step.kind in WRITABLE for w in wanted_of(step)]
    )
    steps = tuple(
        replace(step, changes=tuple(_placed_change(change, together) for change in step.changes))
        if step.selected and step.kind in WRITABLE and not isinstance(together, str)
        else _placed_step(step, script, launch_index)
        for step in plan.steps
    )
    return replace(plan, steps=steps)


def _try(script: Script, launch_index: int, wanted: Sequence[Wanted]) -> tuple[Rewrite, ...] | str:
    """The rewrites, or the sentence of the refusal."""
    try:
        return rewrite(script, launch_index, wanted) if wanted else ()
    except EditRefused as refusal:
        return str(refusal)


def _placed_step(step: PlanStep, script: Script, launch_index: int) -> PlanStep:
    if step.kind not in WRITABLE or not step.changes:
        return step
    rewrites = _try(script, launch_index, wanted_of(step))
    if isinstance(rewrites, str):
        refused = f"cannot be written into the script: {rewrites}"
        return replace(step, caveats=(*(c for c in step.caveats if c != refused), refused), selected=False)
    return replace(step, changes=tuple(_placed_change(change, rewrites) for change in step.changes))


def _placed_change(change: Change, rewrites: Sequence[Rewrite]) -> Change:
    for done in rewrites:
        span = done.touched.get(change.key) or done.touched.get(change.key.lstrip("-"))
        if span is not None:
            inside = any(edit.start < edit.end and b"\n" not in edit.new for edit in done.edits)
            return replace(
                change, file=span.path, line=span.line, how="edited in place" if inside else "added as an override"
            )
    return replace(change, file=str(rewrites[0].document.path)) if rewrites else change


def fits_name(script: Path) -> Path:
    """run.sh → run.fits.sh; a name without a suffix gets .fits at its end."""
    return script.with_name(f"{script.stem}.fits{script.suffix}")


def report_name(destination: Path) -> Path:
    """run.fits.sh → run.fits.md."""
    return destination.with_suffix(".md") if destination.suffix else destination.with_name(destination.name + ".md")
