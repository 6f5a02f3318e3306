"""Downsamples a record for a plot: each gauge to so many columns by its highest value, phases as bands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from advisor.watch.gauges import shown_name
from advisor.watch.recording import Recording, Series
from advisor.words import Phase


class Band(Struct, frozen=True):
    """A phase from one moment to the next, in seconds."""

    begin: float
    end: float
    phase: Phase


class Curve(Struct, frozen=True):
    """One gauge in equal columns of time; None: nothing known there. Bytes."""

    name: str
    kind: str
    total: int | None
    values: tuple[int | None, ...]


def phase_bands(recording: Recording) -> tuple[Band, ...]:
    """Phases in order, neighbours alike joined; before the first mark the phase is not known."""
    marks: list[tuple[float, Phase]] = [(0.0, "unknown"), *recording.phases, (recording.length, "unknown")]
    found: list[Band] = []
    for (begin, phase), (end, _) in pairwise(marks):
        if end <= begin:
            continue
        if found and found[-1].phase == phase:
            found[-1] = Band(found[-1].begin, end, phase)
        else:
            found.append(Band(begin, end, phase))
    return tuple(found)


def downsampled(series: Series, columns: int, begin: float, end: float) -> Curve:
    """The highest value in each of `columns` slices between two moments; a value stays until the next."""
    values: list[int | None] = [None] * columns
    span = max(end - begin, 1e-9)
    current: int | None = None
    place = 0
    for column in range(columns):
        until = begin + span * (column + 1) / columns
        best = current
        while place < len(series.times) and series.times[place] < until:
            size = series.sizes[place]
            current = size if size >= 0 else None
            if current is not None and (best is None or current > best):
                best = current
            place += 1
        values[column] = best
    return Curve(shown_name(series.gauge.name), series.gauge.kind, series.gauge.total, tuple(values))


def plotted_series(recording: Recording) -> list[Series]:
    """The gauges worth a curve, cards first: those that a run can die of."""
    kinds = ("gpu", "limit", "host", "store", "shm")
    every = [one for kind in kinds for one in recording.of_kind(kind) if one.peak]
    limited = any(one.gauge.kind == "limit" and one.gauge.total for one in every)
    return [one for one in every if one.gauge.kind != "limit" or limited]


def axis_top(curves: Sequence[Curve]) -> int:
    """What an axis must reach: capacities where they are known, else the highest values."""
    return max((max(one.total or 0, *(value or 0 for value in one.values)) for one in curves), default=1) or 1
