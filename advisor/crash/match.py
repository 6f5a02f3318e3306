"""Matches signatures on the line a literal was found in and on those around it, and lets floods of lines alike pass."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from itertools import chain

from msgspec import Struct, field

from advisor.crash.lines import SEGMENT_LIMIT, ByteWindow, LineAt
from advisor.crash.patterns import Ready

_BELOW_CHARACTERS, _ABOVE_CHARACTERS = 4_000, 1_500
_WIDE = 160
"""Pieces of a wrapped message that are this wide show its beginning within one line up or down."""
_TAIL = 160
"""A message after which its line goes on for longer than any clause of one is complete."""
_LITERAL_LINES = 4
"""Lines that a literal of a message may be broken over."""
_ALIKE, _SHAPES = 3, 2_000
"""Tries in vain on lines that read alike but for their numbers, and on how many different lines in one log."""
_DIGITS = str.maketrans("123456789", "000000000")
_TELLING = ("cause", "hint", "pointer")
_FOREIGN, _FOREIGN_WIDE = 8, 2
"""Lines of other processes that may stand between two pieces of one message, and between two wide ones."""


class SignatureMatch(Struct, frozen=True):
    """A signature that matched, and the lines its message covers, in order."""

    ready: Ready
    match: re.Match[str]
    lines: tuple[LineAt, ...]
    part: int = 0
    """Which part of its physical line was tested: a message may be logged with literal line breaks."""

    @property
    def column(self) -> int:
        """Orders the matches of one physical line."""
        return self.part * SEGMENT_LIMIT + self.match.start()


class _ProcessLines:
    """Lines of one process taken from a stream of lines as far as they are asked for. `process` None: that of the first
    line that names one (what a line without a prefix goes on with)."""

    def __init__(self, lines: Iterator[LineAt], process: str | None, characters: int, foreign: int) -> None:
        self._lines, self._process = lines, process
        self._left, self._most_foreign = characters, foreign
        self._foreign = 0
        self._found: list[LineAt] = []

    def take(self, count: int) -> list[LineAt]:
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

    def __init__(self, window: ByteWindow, begin: int, end: int, number: int, index: int = 0) -> None:
        offset = window.start + begin
        self.index = index
        self.own = window.lines_at(begin, end, number)
        self.line = self.own[index]
        self.placed: LineAt = (offset, self.line)
        self.is_wide = len(self.line.text) > _WIDE
        foreign = _FOREIGN_WIDE if self.is_wide else _FOREIGN
        after = chain(((offset, line) for line in self.own[index + 1 :]), window.below(end, number))
        before = chain(((offset, line) for line in reversed(self.own[:index])), window.above(begin, number))
        self._below = _ProcessLines(after, self.line.process, _BELOW_CHARACTERS, foreign)
        self._above = _ProcessLines(before, self.line.process or None, _ABOVE_CHARACTERS, foreign)

    def below(self, count: int) -> list[LineAt]:
        """At most `count` lines that may go on with the message: of the same process, or without a prefix."""
        return self._below.take(count)

    def above(self, count: int) -> list[LineAt]:
        """At most `count` lines whose message this one may go on with, in order."""
        return self._above.take(count)[::-1]


def tries_in_vain() -> Throttle:
    """Remembers, for one log, on which lines no message could be put together."""
    return Throttle(_ALIKE, _SHAPES, sparing=True)


def match_around(around: Surroundings, candidates: Sequence[Ready], vain: Throttle) -> SignatureMatch | None:
    """The first of the signatures, look-alikes first, whose message covers the line."""
    for ready in candidates:
        alone = ready.regex.search(around.line.text)
        if ready.signature.span_lines > 1:
            found = _joined(ready, around, alone, vain)
        else:
            found = SignatureMatch(ready, alone, (around.placed,), around.index) if alone else None
        if found is not None:
            return found
    return None


def beside(found: SignatureMatch, around: Surroundings, candidates: Sequence[Ready]) -> Iterator[SignatureMatch]:
    """Further messages on the line of one that only points elsewhere: text pasted without its line breaks."""
    signature = found.ready.signature
    if signature.verdict != "not_oom" or signature.role not in ("pointer", "hint") or len(found.lines) > 1:
        return
    taken = [found.match.span()]
    for ready in candidates:
        match = ready.regex.search(around.line.text) if ready.signature.role in _TELLING else None
        if match is not None and all(match.end() <= begin or end <= match.start() for begin, end in taken):
            taken.append(match.span())
            yield SignatureMatch(ready, match, (around.placed,), around.index)


def _joined(ready: Ready, around: Surroundings, alone: re.Match[str] | None, vain: Throttle) -> SignatureMatch | None:
    """A message that may go on below; failing that, one that began above. `alone`: what its line shows of it."""
    text = around.line.text
    if alone is not None and len(text) - alone.end() > _TAIL:
        return SignatureMatch(ready, alone, (around.placed,), around.index)
    shape = ready, hash(text.translate(_DIGITS))
    if alone is None and vain.exhausted(shape, around.placed[0]):
        return None
    found = _pieced(ready, around, alone is not None)
    if found is None:
        vain.note(shape)
    return found


def _pieced(ready: Ready, around: Surroundings, stands_alone: bool) -> SignatureMatch | None:
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


def _within(ready: Ready, around: Surroundings, above: list[LineAt], below: list[LineAt]) -> SignatureMatch | None:
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
            return SignatureMatch(ready, match, tuple(members[first : last + 1]), around.index)
    return None


_STRETCH = 1 << 16
"""Bytes of a log in which one more try is allowed once no more lines can be remembered."""
_FLOOD, _FLOOD_OF_CAUSES = 500, 20_000
"""After so many lines with the same anchors only some of the later ones, and the last, are looked at."""
_EVERY, _LAST = 32, 20
"""Of a flood, one line in so many is looked at, and so many of its last lines."""


class Throttle:
    """Counts by key how often something was noted, for up to `most` keys; noted `allowed` times, a key is exhausted.
    With `sparing`, once no more keys can be remembered, any key is exhausted but for one a stretch of the log."""

    def __init__(self, allowed: int, most: int, sparing: bool = False) -> None:
        self._allowed, self._most, self._sparing = allowed, most, sparing
        self._noted: dict[Hashable, int] = {}
        self._last = 0

    @property
    def full(self) -> bool:
        """Whether no more keys can be remembered, nor looks be counted."""
        return len(self._noted) >= self._most

    def exhausted(self, key: Hashable, offset: int = 0) -> bool:
        """Whether the key had its share. `offset`: where in the log it stands."""
        if not (self._sparing and self.full):
            return self._noted.get(key, 0) >= self._allowed
        if offset - self._last < _STRETCH:
            return True
        self._last = offset
        return False

    def note(self, key: Hashable) -> None:
        """Count the key once more, unless full."""
        if not self.full:
            self._noted[key] = self._noted.get(key, 0) + 1


class Flood(Struct):
    """Lines with the same anchors. `allowed`: how many are all looked at."""

    allowed: int
    seen: int = 0
    skipped: int = 0
    last: deque[tuple[int, int, bytes]] = field(default_factory=lambda: deque(maxlen=_LAST))
    """(offset, line number, bytes) of the last ones that were only counted."""

    def passes(self) -> bool:
        """Count one more line; whether it is looked at."""
        self.seen += 1
        return self.seen <= self.allowed or self.seen % _EVERY == 0


def flood_of(candidates: Sequence[Ready]) -> Flood:
    """A flood of lines that hold the anchors of these signatures: warnings and readings are throttled sooner."""
    quiet = all(ready.signature.role in ("warning", "telemetry") for ready in candidates)
    return Flood(_FLOOD if quiet else _FLOOD_OF_CAUSES)
