"""Plots a gauge over time as lines of bars beside their scale. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.language import say
from advisor.tui.ui_text import Row, Tone, Toned, heading, line, pad_left, span
from advisor.units import show_bytes, show_gib

AXIS = 8
"""Columns left of a curve, for its scale."""
_STEPS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*%#"


def drawn(values: Sequence[int | None], height: int, most: int, plain_ascii: bool = False) -> list[str]:
    """A curve as `height` lines of bars, the highest first. What passes no eighth of a line still shows one."""
    steps, lines = _ASCII if plain_ascii else _STEPS, []
    for row in range(height - 1, -1, -1):
        signs = []
        for value in values:
            eighths = 0 if not value else max(1, round(value * height * 8 / most)) - row * 8
            signs.append(steps[min(8, max(0, eighths))])
        lines.append("".join(signs))
    return lines


def plot(
    title: str,
    values: Sequence[int | None],
    total: int | None,
    most: int,
    size: tuple[int, int],
    plain_ascii: bool = False,
    tone: Tone = "plain",
) -> list[Row]:
    """A heading and the curve beside its scale of `most` bytes. `size`: lines of the curve, columns of all."""
    height, width = size
    right = say("of {size}", size=show_bytes(total)) if total else ""
    out = [heading(title, right, width)]
    for at, signs in enumerate(drawn(values, height, most, plain_ascii)):
        scale = show_gib(most * (height - at) / height) if at in (0, height // 2) else ""
        out.append(Row(line(span(pad_left(scale, AXIS - 1), "dim"), " ", Toned(signs, tone))))
    return out
