"""Which lines are of one run: a log that holds several is cut where the next begins, logs of several are set apart."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from advisor.crash.course import Opening, beginnings, opening
from advisor.crash.lines import Line


class Part(Struct, frozen=True):
    """The lines of one run: of these logs (by order of reading), from line `begin` up to, not including, `end`."""

    logs: frozenset[int]
    begin: int = 0
    end: int | None = None

    def covers(self, log: int, number: int) -> bool:
        """Whether a line belongs to it."""
        return log in self.logs and self.begin <= number and (self.end is None or number < self.end)


def parts(lines: Sequence[Sequence[Line]], changed: Sequence[float]) -> list[Part]:
    """The runs that the logs tell of, oldest first. `changed`: when each log was last written to, 0 where unknown."""
    return [part for group in _groups(lines, changed) for part in _cut(group, lines)]


def _cut(group: frozenset[int], lines: Sequence[Sequence[Line]]) -> list[Part]:
    """The logs of one start; a single log may hold several runs."""
    if len(group) > 1:
        return [Part(group)]
    (log,) = group
    begins = beginnings(lines[log])
    return [Part(group, begin, end) for begin, end in zip((0, *begins), (*begins, None), strict=True)]


def _groups(lines: Sequence[Sequence[Line]], changed: Sequence[float]) -> list[frozenset[int]]:
    """Logs of one run together, the oldest run first; a log that starts none goes with the newest."""
    every = frozenset(range(len(lines)))
    openings = [opening(one) for one in lines] if len(lines) > 1 else []
    started = [log for log, one in enumerate(openings) if one.started]
    groups: list[list[int]] = []
    for log in sorted(started, key=lambda log: _when(openings, changed, log)):
        if groups and not any(openings[log].is_apart(openings[other]) for other in groups[-1]):
            groups[-1].append(log)
        else:
            groups.append([log])
    if len(groups) < 2:
        return [every]
    return [*map(frozenset, groups[:-1]), every.difference(*groups[:-1])]


def _when(openings: Sequence[Opening], changed: Sequence[float], log: int) -> tuple[str, float, int]:
    """Logs are put in order by the times they print; where one prints none, by when they were written to."""
    stamped = all(one.first for one in openings if one.started)
    return (openings[log].first if stamped else "", changed[log], log)
