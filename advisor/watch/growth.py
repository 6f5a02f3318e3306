"""Estimates whether memory grows from step to step: a slope, how sure it is, and whether that is a leak.

A leak must pass four tests, since each alone is fooled by something that training runs do:
the slope by Theil and Sen is many of its standard errors above zero (Newey and West's, so that values which hang
together do not count as many); it makes a material share of the level over what was seen; the low values rise with it
(a sawtooth comes back to its floor), also in the second half alone (caches that fill up stop growing); and a line fits
better than one jump from level to level, or what is left without the jump passes all of this. Source: Sen 1968; Newey
and West 1987.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import sqrt

from msgspec import Struct

LEAST = 8
"""Steps before anything can be said."""
MOST = 120
"""Points that are fitted; of more, neighbours are put together by their median."""
SURE = 4.0
"""Standard errors."""
MATERIAL = 0.04
"""Of the level, over all that was seen."""
_Z95 = 1.96
_FAR = 4.0
"""Medians of the distances from the line: what lies farther is a spike."""
_FLOOR_RISE, _LATE_RISE = 0.4, 0.3
"""Of the slope: so much must the lowest third of the values rise by, and the second half alone."""
_LEAST_RISE = 0.1
"""Of the slope, should its error be as large: what "the slow end" is at least."""
_BANDWIDTH = 0.75
"""Lags of Newey and West's estimator, times the root of the number of points."""
_LEAST_SPREAD = 0.5
"""Of the variance without lags: correlation of neighbours the other way round never makes a slope surer than this."""


class Growth(Struct, frozen=True):
    """Bytes a step, with the half-width of its 95 % interval."""

    per_step: float
    uncertainty: float
    level: float
    """Bytes at the last step, on the line."""
    steps: int
    leaks: bool

    @property
    def is_known(self) -> bool:
        return self.steps >= LEAST

    def steps_left(self, capacity: int) -> tuple[float, float] | None:
        """Steps until `capacity` is reached, at the slope's fast and slow end; None where it does not leak."""
        if not self.leaks or self.per_step <= 0:
            return None
        room = max(0.0, capacity - self.level)
        slow = max(self.per_step - self.uncertainty, _LEAST_RISE * self.per_step)
        return room / (self.per_step + self.uncertainty), room / slow


def median(values: Iterable[float]) -> float:
    """The middle one. (`statistics` takes longer to load than all of this.)"""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def growth_of(values: Sequence[float]) -> Growth:
    """Of one value a step, in order."""
    count = len(values)
    if count < 3:
        return Growth(0.0, 0.0, values[-1] if values else 0.0, count, False)
    size = -(-count // MOST)
    points = [median(values[at : at + size]) for at in range(0, count - count % size or count, size)]
    slope = _theil_sen(points)
    base = median(value - slope * place for place, value in enumerate(points))
    rest = [value - base - slope * place for place, value in enumerate(points)]
    far = _FAR * median(abs(one) for one in rest)  # spikes are drawn in to where their neighbours may lie
    points = [base + slope * place + max(-far, min(far, one)) for place, one in enumerate(rest)]
    error = _standard_error(points, slope, base)
    level = base + slope * (len(points) - 1)
    leaks = count >= LEAST and _rises_throughout(points, slope, error, base)
    if leaks:
        jump = _jump(points)
        leaks = _line_error(points, slope, base) < jump.error or _leaks_beside(jump, points)
    return Growth(slope / size, _Z95 * error / size, level, count, leaks)


def _rises_throughout(points: Sequence[float], slope: float, error: float, base: float) -> bool:
    count = len(points)
    if slope <= SURE * error or slope * count < MATERIAL * max(abs(base), 1.0):
        return False
    third = max(2, count // 3)
    floor_rise = _floor(points[-third:]) - _floor(points[:third])
    if floor_rise < _FLOOR_RISE * slope * (count - third):
        return False
    half = points[count // 2 :]
    return len(half) < 4 or _theil_sen(half) >= _LATE_RISE * slope


def _leaks_beside(jump: _Jump, points: Sequence[float]) -> bool:
    """Whether what is left still leaks when the jump is taken out: each side long enough to tell rises on its own."""
    sides = (points[: jump.at], points[jump.at :])
    slopes = [_theil_sen(side) for side in sides if len(side) >= LEAST]
    if not sides[1] or not slopes or min(slopes) <= 0:
        return False
    height = median(sides[1]) - median(sides[0]) - min(slopes) * len(points) / 2
    level = [*sides[0], *(value - height for value in sides[1])]
    slope = _theil_sen(level)
    base = median(value - slope * place for place, value in enumerate(level))
    error = _standard_error(level, slope, base)
    return _rises_throughout(level, slope, error, base) and _line_error(level, slope, base) < _jump(level).error


def _theil_sen(points: Sequence[float]) -> float:
    pairs = combinations(enumerate(points), 2)
    slopes = [(high - low) / (later - early) for (early, low), (later, high) in pairs]
    return median(slopes) if slopes else 0.0


def _standard_error(points: Sequence[float], slope: float, base: float) -> float:
    """Of a slope whose residuals hang together over a few steps."""
    count = len(points)
    middle = (count - 1) / 2
    rest = [value - base - slope * place for place, value in enumerate(points)]
    mean = sum(rest) / count
    score = [(place - middle) * (one - mean) for place, one in enumerate(rest)]
    lags = max(1, round(_BANDWIDTH * sqrt(count)))
    total = plain = sum(one * one for one in score)
    for lag in range(1, min(lags, count - 1) + 1):
        weight = 1 - lag / (lags + 1)
        total += 2 * weight * sum(score[at] * score[at - lag] for at in range(lag, count))
    spread = sum((place - middle) ** 2 for place in range(count))
    return sqrt(max(total, plain * _LEAST_SPREAD) * count / max(1, count - 2)) / spread


def _floor(points: Sequence[float]) -> float:
    """The mean of the lowest third."""
    lowest = sorted(points)[: max(1, len(points) // 3)]
    return sum(lowest) / len(lowest)


def _line_error(points: Sequence[float], slope: float, base: float) -> float:
    return sum((value - base - slope * place) ** 2 for place, value in enumerate(points))


class _Jump(Struct, frozen=True):
    """The best two levels for a series: from which place on the second one, and their squared error."""

    at: int
    error: float


def _jump(points: Sequence[float]) -> _Jump:
    count = len(points)
    total, squares = sum(points), sum(value * value for value in points)
    best, left, left_squares = _Jump(count, squares - total * total / count), 0.0, 0.0
    for at in range(1, count):
        left += points[at - 1]
        left_squares += points[at - 1] ** 2
        right, right_squares = total - left, squares - left_squares
        error = left_squares - left * left / at + right_squares - right * right / (count - at)
        if error < best.error:
            best = _Jump(at, error)
    return best
