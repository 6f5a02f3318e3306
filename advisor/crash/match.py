"""Match signatures on the line a literal was found in, and on the lines around it where a message may be wrapped."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from weakref import WeakKeyDictionary

from msgspec import Struct

from advisor.crash.lines import Line
from advisor.crash.patterns import Ready
from advisor.crash.window import Placed, Window

_BELOW_CHARACTERS, _ABOVE_CHARACTERS = 4_000, 1_500
_WIDE = 160
"""Pieces of a wrapped message that are this wide show its beginning within one line up or down."""
_TAIL = 160
"""A message after which its line goes on for longer than any clause of one is complete."""
_LITERAL_LINES = 4
"""Lines that a literal of a message may be broken over."""
_ALIKE, _SHAPES = 3, 2_000
"""Tries in vain on lines that read alike but for their numbers, and on how many different lines in one log; then, so
that talk of memory cannot make a log endless, one more a stretch of it."""
_STRETCH = 1 << 16
"""Bytes."""
_DIGITS = str.maketrans("123456789", "000000000")
_FOREIGN, _FOREIGN_WIDE = 8, 2
"""Lines of other processes that may stand between two pieces of one message, and between two wide ones."""


class _Vain:
    """Lines of one log that were put together in vain, by what they read like."""

    def __init__(self) -> None:
        self._tried: Counter[tuple[Ready, int]] = Counter()
        self._last = 0

    def tired_of(self, ready: Ready, placed: Placed) -> bool:
        """Whether another try on this line is not worth it."""
        if len(self._tried) < _SHAPES:
            return self._tried[ready, _shape(placed)] >= _ALIKE
        if placed[0] - self._last < _STRETCH:
            return True
        self._last = placed[0]
        return False

    def note(self, ready: Ready, placed: Placed) -> None:
        """One more try in vain."""
        if len(self._tried) < _SHAPES:
            self._tried[ready, _shape(placed)] += 1


def _shape(placed: Placed) -> int:
    return hash(placed[1].text.translate(_DIGITS))


_VAIN: WeakKeyDictionary[Window, _Vain] = WeakKeyDictionary()


class Matched(Struct, frozen=True):
    """A signature that matched, and the lines its message covers, in order."""

    ready: Ready
    match: re.Match[str]
    lines: tuple[Placed, ...]


class _Pieces:
    """Lines of one process taken from a stream of lines as far as they are asked for."""

    def __init__(self, lines: Iterator[Placed], process: str | None, characters: int, foreign: int) -> None:
        self._lines = lines
        self._process = process
        """None: that of the first line that names one (what a line without a prefix goes on with)."""
        self._left = characters
        self._most_foreign = foreign
        self._foreign = 0
        self._found: list[Placed] = []

    def take(self, count: int) -> list[Placed]:
        while len(self._found) < count and self._left > 0 and self._foreign <= self._most_foreign:
            placed = next(self._lines, None)
            if placed is None:
                break
            process = placed[1].process
            if self._process is None and process:
                self._process = process
            if process in (self._process, ""):
                self._found.append(placed)
                self._left -= len(placed[1].text)
                self._foreign = 0
            else:
                self._foreign += 1
        return self._found[:count]


class Surroundings:
    """A line and, when they are asked for, the pieces of its process above and below it."""

    def __init__(self, window: Window, begin: int, end: int, number: int, index: int = 0) -> None:
        self.window = window
        self.begin, self.end, self.number = begin, end, number
        self.own = window.lines_at(begin, end, number)
        self.index = index

    @property
    def line(self) -> Line:
        return self.own[self.index]

    @property
    def placed(self) -> Placed:
        return self.window.start + self.begin, self.line

    def below(self, count: int) -> list[Placed]:
        """At most `count` lines that may go on with the message: of the same process, or without a prefix."""
        return self._below.take(count)

    def above(self, count: int) -> list[Placed]:
        """At most `count` lines whose message this one may go on with, in order."""
        return self._above.take(count)[::-1]

    @property
    def is_wide(self) -> bool:
        return len(self.line.text) > _WIDE

    @property
    def _foreign(self) -> int:
        return _FOREIGN_WIDE if self.is_wide else _FOREIGN

    @cached_property
    def _below(self) -> _Pieces:
        return _Pieces(self._after(), self.line.process, _BELOW_CHARACTERS, self._foreign)

    @cached_property
    def _above(self) -> _Pieces:
        return _Pieces(self._before(), self.line.process or None, _ABOVE_CHARACTERS, self._foreign)

    def _after(self) -> Iterator[Placed]:
        for line in self.own[self.index + 1 :]:
            yield self.window.start + self.begin, line
        yield from self.window.below(self.end, self.number)

    def _before(self) -> Iterator[Placed]:
        for line in reversed(self.own[: self.index]):
            yield self.window.start + self.begin, line
        yield from self.window.above(self.begin, self.number)


def match_around(around: Surroundings, candidates: Sequence[Ready]) -> Matched | None:
    """The first of the signatures, look-alikes first, whose message covers the line."""
    for ready in candidates:
        found = _single(ready, around) if ready.signature.span_lines <= 1 else _joined(ready, around)
        if found is not None:
            return found
    return None


def _single(ready: Ready, around: Surroundings) -> Matched | None:
    match = ready.regex.search(around.line.text)
    return Matched(ready, match, (around.placed,)) if match else None


def _joined(ready: Ready, around: Surroundings) -> Matched | None:
    """A message that may go on below; failing that, one that began above."""
    text = around.line.text
    alone = ready.regex.search(text)
    if alone is not None and len(text) - alone.end() > _TAIL:
        return Matched(ready, alone, (around.placed,))
    vain = _VAIN.setdefault(around.window, _Vain())
    if alone is None and vain.tired_of(ready, around.placed):
        return None
    found = _pieced(ready, around, alone is not None)
    if found is None:
        vain.note(ready, around.placed)
    return found


def _pieced(ready: Ready, around: Surroundings, stands_alone: bool) -> Matched | None:
    """The message put together of the pieces on its lines."""
    span = ready.signature.span_lines - 1
    up, down = _may_cross(ready, around.line.text)
    down = down or stands_alone
    if not up and not down:
        return None
    wide = around.is_wide
    if not stands_alone and not _begins_near(ready, around, (1 if wide else span) if up else 0):
        return None
    if wide and not stands_alone and _within(ready, around, around.above(int(up)), around.below(int(down))) is None:
        return None
    below = around.below(span if down else 0)
    found = _within(ready, around, [], below)
    return found or (_within(ready, around, around.above(1 if wide else span), below) if up else None)


def _begins_near(ready: Ready, around: Surroundings, above: int) -> bool:
    """Whether a literal of the message stands on the line, above it, or from it over the next few lines."""
    literals = ready.signature.within
    if not literals:
        return True
    members = [*around.above(above), around.placed, *around.below(_LITERAL_LINES)]
    text = "".join("".join(line.text for _, line in members).split())
    return any(literal in text for literal in literals)


def _may_cross(ready: Ready, text: str) -> tuple[bool, bool]:
    """Whether an anchor stands so near the beginning, or the end, of its line that a wrap may split the message."""
    up = down = False
    for anchor, most_before, most_after in ready.edges:
        first = text.find(anchor)
        if first >= 0:
            up = up or first <= most_before
            down = down or len(text) - text.rfind(anchor) - len(anchor) <= most_after
    return up, down


def _within(ready: Ready, around: Surroundings, above: list[Placed], below: list[Placed]) -> Matched | None:
    members = [*above, around.placed, *below]
    offsets: list[int] = []
    size = 0
    for _, line in members:
        offsets.append(size)
        size += len(line.text)
    at = len(above)
    text = "".join(line.text for _, line in members)
    for match in ready.regex.finditer(text):
        first = bisect_right(offsets, match.start()) - 1
        last = bisect_right(offsets, max(match.end() - 1, match.start())) - 1
        if first <= at <= last:
            return Matched(ready, match, tuple(members[first : last + 1]))
    return None
