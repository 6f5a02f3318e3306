"""What an answer or a toggle changed, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.language import clauses, say, say_count
from advisor.tui.memory_bars import fit_words
from advisor.units import show_bytes

if TYPE_CHECKING:
    from advisor.session import State


def after_answer(before: State, after: State) -> str:
    """Like "cause changed from … to …; 2 steps are new, 1 is gone"; says so where nothing follows from the answer."""
    parts = []
    if before.diagnosis.cause != after.diagnosis.cause:
        old_title, new_title = before.diagnosis.title, after.diagnosis.title
        parts.append(say("cause changed from “{before}” to “{after}”", before=old_title, after=new_title))
    old, new = ({step.id for step in state.plan.steps} for state in (before, after))
    if new - old:
        parts.append(say_count("{number} step new in the plan", "{number} steps new in the plan", len(new - old)))
    if old - new:
        parts.append(say_count("{number} step gone from it", "{number} steps gone from it", len(old - new)))
    if not parts and [s.id for s in before.plan.steps] != [s.id for s in after.plan.steps]:
        parts.append(say("the order of the plan changed"))
    was, now = before.ledger.peak("gpu"), after.ledger.peak("gpu")
    if was is not None and now is not None and was.expected != now.expected:
        sizes = {"before": show_bytes(was.expected), "after": show_bytes(now.expected)}
        parts.append(say("at its fullest a GPU needs {after}, not {before}", **sizes))
    return clauses(parts) or say("nothing else changed: same cause, same plan")


def after_toggle(before: State, after: State) -> str:
    """Like "also switched: …" where a conflict switched others; "" where only the asked one moved."""
    was = {step.id: step.selected for step in before.plan.steps}
    moved = [step for step in after.plan.steps if was.get(step.id) != step.selected]
    others = [say("{step} on" if step.selected else "{step} off", step=step.title) for step in moved[1:]]
    parts = [say("also switched: {steps}", steps=clauses(others))] if others else []
    if before.plan.fits != after.plan.fits:
        parts.append(fit_words(after.plan).text)
    return clauses(parts)
