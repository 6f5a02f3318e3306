"""Draws the line on top: where in the session we are, and which run this is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from advisor.demo import is_bundled
from advisor.hostile import cells
from advisor.language import Sayings, say
from advisor.line_breaks import cut
from advisor.tui.ui_text import Tone, Toned, TonedLine, crop, line, span, spread, width_of

if TYPE_CHECKING:
    from advisor.state import State

Stage = Literal["machine", "run", "crash", "questions", "plan", "save"]
STAGES: tuple[Stage, ...] = get_args(Stage)
STAGE_TITLES: Sayings[Stage] = Sayings(
    {
        "machine": "Machine",
        "run": "Run",
        "crash": "Crash",
        "questions": "Questions",
        "plan": "Plan",
        "save": "Save",
    }
)
DONE, HERE, AHEAD = "✓", "●", "·"
SEPARATOR = " · "
LEAST_NAME = 6
"""Columns below which a name says nothing."""


def breadcrumb(state: State | None, at: Stage, question: int, width: int) -> TonedLine:
    """` Machine ✓  Run ✓  Crash ●  Questions ·  Plan ·  Save ·            easyr1 · GRPO`; `question` counts from 0."""
    total = len(state.diagnosis.path) if state else 0
    count = f"{question + 1}/{total}" if at == "questions" and total else ""
    name = run_name(state)
    wide, tight = _crumbs(at, count, "  "), _crumbs(at, count, " ")
    crumbs = wide if width_of(wide) + cells(name) < width else tight
    room = width - width_of(crumbs) - 1
    if cells(name) > room:
        name = name.split(SEPARATOR)[0]  # the algorithm goes first
    return spread(crumbs, line(span(cut(name, room), "dim")), width) if room >= LEAST_NAME else crop(crumbs, width)


def stage_at(column: int, crumbs: TonedLine) -> Stage | None:
    """The stage that the line has in this column, counted from 0."""
    end = 0
    for number, part in enumerate(crumbs[: 2 * len(STAGES)]):
        end += cells(part.text)
        if column < end:
            return STAGES[number // 2] if number % 2 == 0 else None
    return None


def _crumbs(at: Stage, count: str, gap: str) -> TonedLine:
    """The stages side by side."""
    out: list[Toned] = []
    for stage in STAGES:
        text, tone = _crumb(stage, at, count if stage == at else "")
        out += [span(text, tone), Toned(gap)]
    return tuple(out[:-1])


def _crumb(stage: Stage, at: Stage, count: str) -> tuple[str, Tone]:
    place, here = STAGES.index(stage), STAGES.index(at)
    if place == here:
        return f"{STAGE_TITLES[stage]} {count or HERE}", "strong"
    return f"{STAGE_TITLES[stage]} {DONE if place < here else AHEAD}", "dim"


def run_name(state: State | None) -> str:
    """Like "easyr1 · GRPO", and that it is the demo; "" before anything is known."""
    if state is None:
        return ""
    words = (
        say("DEMO") if is_bundled(state.asked.script) else "unknown",
        state.run.framework,
        state.run.algorithm.upper(),
    )
    known = [word for word in words if word.lower() not in ("unknown", "given")]  # given answers, method not known
    return SEPARATOR.join(known)
