"""Plots a record: as a table (CSV) and as a picture (SVG)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import TextIO

from advisor.language import say
from advisor.units import show_bytes, show_clock, show_gib
from advisor.watch.recording import Band, Curve, Recording, axis_top, downsampled, phase_bands, plotted_series
from advisor.words import PHASE_TITLES, Phase

WIDTH, LEFT, RIGHT, PANEL, GAP, TOP = 960, 64, 34, 220, 62, 72
_COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b8860b", "#2a9d8f", "#8d5524", "#5c6b73")
_BANDS: dict[Phase, str] = {
    "model_load": "#e9ecef",
    "rollout_init": "#dbe4ee",
    "rollout_generate": "#d7ecd9",
    "weight_sync": "#fde8c9",
    "log_prob": "#e5dbf0",
    "actor_update": "#fbd9d3",
    "critic_update": "#f8d7e8",
    "optimizer_step": "#f3e3c3",
    "checkpoint": "#d3e8ef",
    "validation": "#e3f0c9",
    "data": "#eeeeee",
}


def write_csv(recording: Recording, file: TextIO) -> int:
    """One row for each change of a gauge: seconds, phase, kind, name, pid, bytes (empty: ended). Returns the rows."""
    rows = list(_rows(recording))
    csv.writer(file).writerows([("seconds", "phase", "kind", "name", "pid", "bytes", "capacity_bytes"), *rows])
    return len(rows)


def _rows(recording: Recording) -> Iterator[tuple[object, ...]]:
    phases = phase_bands(recording)
    points = sorted(
        (at, place, size)
        for place, one in enumerate(recording.series)
        for at, size in zip(one.times, one.sizes, strict=True)
    )
    now = 0
    for at, place, size in points:
        while now + 1 < len(phases) and phases[now].end <= at:
            now += 1
        gauge = recording.series[place].gauge
        phase = phases[now].phase if phases else "unknown"
        name = f"'{gauge.name}" if gauge.name[:1] in "=+-@" else gauge.name  # a table program must not compute it
        yield f"{at:.1f}", phase, gauge.kind, name, gauge.pid or "", size if size >= 0 else "", gauge.total or ""


def svg(recording: Recording) -> str:
    """Cards above, host below, over time; phases as bands behind them. Every text in it is escaped."""
    length = max(recording.length, 0.1)
    columns = WIDTH - LEFT - RIGHT
    curves = [downsampled(one, columns, 0.0, length) for one in plotted_series(recording)]
    panels = [(say("GPU memory, GiB"), [one for one in curves if one.kind == "gpu"])]
    panels.append((say("Host memory, GiB"), [one for one in curves if one.kind != "gpu"]))
    panels = [(title, many) for title, many in panels if many]
    height = TOP + len(panels) * (PANEL + GAP) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{escape(" ".join(recording.command)[:110])}</text>',
        *_band_legend(phase_bands(recording)),
    ]
    for place, (title, many) in enumerate(panels):
        parts += _panel(title, many, phase_bands(recording), length, TOP + place * (PANEL + GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _band_legend(phases: Sequence[Band]) -> Iterator[str]:
    x = LEFT
    for phase in dict.fromkeys(band.phase for band in phases if band.phase in _BANDS):
        yield f'<rect x="{x}" y="30" width="12" height="12" fill="{_BANDS[phase]}"/>'
        yield f'<text x="{x + 16}" y="40" fill="#444444">{phase}</text>'
        x += 30 + 7 * len(phase)


def _panel(title: str, curves: Sequence[Curve], phases: Sequence[Band], length: float, top: int) -> Iterator[str]:
    high = axis_top(curves) * 1.05
    wide = WIDTH - LEFT - RIGHT

    def across(at: float) -> float:
        return LEFT + wide * at / length

    def up(size: float) -> float:
        return top + PANEL - PANEL * size / high

    for band in phases:
        if band.phase in _BANDS:
            begin, end = across(band.begin), across(band.end)
            yield (
                f'<rect x="{begin:.1f}" y="{top}" width="{max(end - begin, 0.5):.1f}" height="{PANEL}" '
                f'fill="{_BANDS[band.phase]}"><title>{escape(PHASE_TITLES[band.phase])}</title></rect>'
            )
    yield f'<rect x="{LEFT}" y="{top}" width="{wide}" height="{PANEL}" fill="none" stroke="#888888"/>'
    yield f'<text x="{LEFT}" y="{top - 4}">{escape(title)}</text>'
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        size = high * share
        yield f'<text x="{LEFT - 6}" y="{up(size) + 4:.1f}" text-anchor="end">{show_gib(size)}</text>'
        at = length * share
        yield f'<text x="{across(at):.1f}" y="{top + PANEL + 14}" text-anchor="middle">{show_clock(at)}</text>'
    for total in sorted({one.total for one in curves if one.total}):
        yield (
            f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{up(total):.1f}" y2="{up(total):.1f}" stroke="#aa0000" '
            f'stroke-dasharray="4 3"><title>{show_bytes(total)}</title></line>'
        )
    for place, one in enumerate(curves):
        colour = _COLOURS[place % len(_COLOURS)]
        yield f'<path d="{_path(one, up)}" fill="none" stroke="{colour}" stroke-width="1.4"/>'
        yield (
            f'<text x="{LEFT + 130 + (place % 4) * 180}" y="{top - 4 - place // 4 * 13}" fill="{colour}">'
            f"{escape(one.name[:28])}</text>"
        )


def _path(one: Curve, up: Callable[[float], float]) -> str:
    """A line through the values that are known, begun anew behind each gap."""
    before = (None, *one.values)
    return " ".join(
        f"{'M' if before[column] is None else 'L'}{LEFT + column} {up(value):.1f}"
        for column, value in enumerate(one.values)
        if value is not None
    )
