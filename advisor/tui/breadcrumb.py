"""The line on top: where in the sitting we are, and which run this is."""

from __future__ import annotations

from typing import Literal, get_args

from advisor.session import State
from advisor.tui.ui_text import Line, Span, Tone, crop, line, span, spread, width_of

Stage = Literal["machine", "run", "crash", "questions", "plan", "save"]
STAGES: tuple[Stage, ...] = get_args(Stage)
DONE, HERE, AHEAD = "✓", "●", "·"


def breadcrumb(state: State | None, at: Stage, question: int, width: int) -> Line:
    """` Machine ✓  Run ✓  Crash ●  Questions ·  Plan ·  Save ·            easyr1 · GRPO`; `question` counts from 0."""
    total = len(state.diagnosis.path) if state else 0
    left: list[Span] = []
    for stage in STAGES:
        text, tone = _crumb(stage, at, f"{question + 1}/{total}" if stage == at == "questions" and total else "")
        left.append(span(text, tone))
        left.append(Span("  "))
    crumbs, name = tuple(left[:-1]), line(span(run_name(state), "dim"))
    return spread(crumbs, name, width) if width_of(crumbs) + width_of(name) < width else crop(crumbs, width)


def _crumb(stage: Stage, at: Stage, count: str) -> tuple[str, Tone]:
    place, here = STAGES.index(stage), STAGES.index(at)
    if place == here:
        return f"{stage.capitalize()} {count or HERE}", "strong"
    return f"{stage.capitalize()} {DONE if place < here else AHEAD}", "dim"


def run_name(state: State | None) -> str:
    """Like "easyr1 · GRPO"; "" before anything is known."""
    if state is None:
        return ""
    known = [word for word in (state.run.framework, state.run.algorithm.upper()) if word.lower() != "unknown"]
    return " · ".join(known)
