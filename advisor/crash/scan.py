"""Scan a stream of log bytes in two stages: literals over bytes at grep's speed, then regexes on the lines around each hit.

Memory is bounded whatever the log: a window of about 1.5 MiB of bytes, the first and last half MiB as lines, and the first and
last few finds of each signature with the lines around them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import ahocorasick_rs

from advisor.crash.lines import SEGMENT_LIMIT, Line, read_line, segments
from advisor.crash.patterns import Catalogue, Field, Ready, fields_of
from advisor.crash.sources import Source, read_chunks
from advisor.knowledge.schema import Signature

BEFORE = 96 << 10
AFTER = 24 << 10
HEAD = 512 << 10
TAIL = 256 << 10
_NEAR_BEFORE, _NEAR_AFTER = 6 << 10, 24 << 10
_FIRST_KEPT, _LAST_KEPT, _WITH_CONTEXT = 20, 20, 8
_BACK_CHARACTERS = 1_500
_FLOOD = 5_000
"""After so many finds of one signature its later ones are only counted."""


@dataclass(frozen=True, slots=True)
class Find:
    """A signature that matched, with its surroundings."""

    signature: Signature
    fields: dict[str, Field]
    first: Line
    last_number: int
    text: str
    """The printed lines it covers."""
    offset: int
    """Bytes from the start of the (decompressed) log."""
    before: tuple[Line, ...] = ()
    after: tuple[Line, ...] = ()


@dataclass(slots=True)
class Scanned:
    """What a scan kept of one log."""

    name: str
    finds: list[Find] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    head: list[Line] = field(default_factory=list)
    tail: list[Line] = field(default_factory=list)
    lines_read: int = 0
    bytes_read: int = 0


@dataclass(slots=True)
class _Kept:
    """The first and the last finds of one signature."""

    first: list[Find] = field(default_factory=list)
    last: deque[Find] = field(default_factory=lambda: deque(maxlen=_LAST_KEPT))

    def add(self, find: Find) -> None:
        (self.first if len(self.first) < _FIRST_KEPT else self.last).append(find)


class _Window:
    """The bytes at hand, where they start in the log and in lines, and their lines as far as they were looked at."""

    def __init__(self) -> None:
        self.data = b""
        self.start = 0
        self.number = 1
        self._mark = (0, 1)
        self._lines: dict[int, list[Line]] = {}

    def extend(self, chunk: bytes) -> None:
        self.data += chunk

    def drop(self, count: int) -> None:
        """Forget the first `count` bytes."""
        self.number += self.data.count(b"\n", 0, count)
        self.data = self.data[count:]
        self.start += count
        self._mark = (0, self.number)
        self._lines = {offset: lines for offset, lines in self._lines.items() if offset >= self.start}

    def number_at(self, position: int) -> int:
        """The 1-based line number at a position of `data`."""
        at, number = self._mark
        if position < at:
            return self.number + self.data.count(b"\n", 0, position)
        number += self.data.count(b"\n", at, position)
        self._mark = (position, number)
        return number

    def lines(self, begin: int, end: int) -> list[tuple[int, Line]]:
        """(log offset, line) of the physical lines that touch data[begin:end], redraws and literal line breaks split."""
        position = self._line_start(max(begin, 0))
        number = self.number_at(position)
        found: list[tuple[int, Line]] = []
        while position < min(end, len(self.data)):
            stop = self.data.find(b"\n", position)
            stop = len(self.data) if stop < 0 else stop
            found.extend((self.start + position, line) for line in self._physical(position, stop, number))
            position, number = stop + 1, number + 1
        return found

    def _line_start(self, position: int) -> int:
        floor = max(position - SEGMENT_LIMIT, 0)
        found = self.data.rfind(b"\n", floor, position)
        return found + 1 if found >= 0 else floor

    def _physical(self, position: int, stop: int, number: int) -> list[Line]:
        cached = self._lines.get(self.start + position)
        if cached is not None and stop < len(self.data):
            return cached
        raw = self.data[position : min(stop, position + 2 * SEGMENT_LIMIT)]
        lines = [read_line(part, number) for part in segments(raw)[-200:]]
        self._lines[self.start + position] = lines
        return lines


def scan(source: Source, catalogue: Catalogue) -> Scanned:
    """Read a whole log. Raises LogError where it cannot be read. Time is linear in its size."""
    scanned = Scanned(source.name)
    kept: dict[str, _Kept] = {}
    window = _Window()
    matcher = ahocorasick_rs.BytesAhoCorasick(
        list(catalogue.triggers), matchkind=ahocorasick_rs.MatchKind.LeftmostFirst
    )
    overlap = max(map(len, catalogue.triggers), default=1) - 1
    searched, done = 0, -1
    pending: deque[int] = deque()
    head = bytearray()
    for chunk in _with_end(read_chunks(source)):
        if chunk is not None:
            if len(head) < HEAD:
                head += chunk[: HEAD - len(head)]
            window.extend(chunk)
        fresh = max(searched - overlap, window.start)
        view = memoryview(window.data)[fresh - window.start :]
        pending.extend(fresh + begin for _, begin, _ in matcher.find_matches_as_indexes(view))
        view.release()
        searched = window.start + len(window.data)
        ready_until = searched if chunk is None else searched - AFTER - _NEAR_AFTER
        while pending and pending[0] < ready_until:
            done = max(done, _examine(pending.popleft(), done, window, catalogue, kept, scanned.counts))
        if chunk is None:
            break
        oldest = min(pending[0] if pending else searched, searched - TAIL)
        spare = oldest - BEFORE - window.start - SEGMENT_LIMIT
        if spare > 0:
            window.drop(spare)
    _finish(scanned, window, bytes(head), kept)
    return scanned


def _with_end(chunks: Iterator[bytes]) -> Iterator[bytes | None]:
    yield from chunks
    yield None


def _finish(scanned: Scanned, window: _Window, head: bytes, kept: dict[str, _Kept]) -> None:
    size = len(window.data)
    scanned.bytes_read = window.start + size
    ends_open = bool(window.data) and not window.data.endswith(b"\n")
    scanned.lines_read = window.number - 1 + window.data.count(b"\n") + ends_open
    opening = _Window()
    opening.extend(head)
    scanned.head = [line for _, line in opening.lines(0, len(head))]
    covered = len(head) - window.start
    scanned.tail = [line for _, line in window.lines(max(size - TAIL, covered), size)] if covered < size else []
    finds = (find for one in kept.values() for find in [*one.first, *one.last])
    scanned.finds = sorted(finds, key=lambda find: (find.offset, find.first.number))


def _examine(
    offset: int, done: int, window: _Window, catalogue: Catalogue, kept: dict[str, _Kept], counts: dict[str, int]
) -> int:
    """Test the signatures on the line at `offset`. Returns the offset up to which lines are accounted for."""
    if offset <= done:
        return done
    position = offset - window.start
    near = window.lines(position - _NEAR_BEFORE, position + _NEAR_AFTER)
    starts = [start for start, _ in near]
    at = bisect_right(starts, offset) - 1
    if at < 0:
        return done
    line_offset = starts[at]
    indexes = [i for i, start in enumerate(starts) if start == line_offset]
    end = _line_end(window, line_offset)
    lines = [line for _, line in near]
    for index in indexes:
        matched = match_at(lines, index, catalogue)
        if matched is None:
            continue
        ready, match, first, last = matched
        end = max(end, _line_end(window, starts[last]))
        key = ready.signature.id
        counts[key] = counts.get(key, 0) + 1 + lines[first].repeats
        if counts[key] > _FLOOD:
            continue
        store = kept.setdefault(key, _Kept())
        with_context = len(store.first) < _WITH_CONTEXT
        before, after = _context(window, starts[first], starts[last], with_context)
        text = "\n".join(line.printed for line in lines[first : last + 1])
        found = fields_of(ready.signature, match)
        store.add(Find(ready.signature, found, lines[first], lines[last].number, text, starts[first], before, after))
    return end


def _line_end(window: _Window, offset: int) -> int:
    stop = window.data.find(b"\n", offset - window.start, offset - window.start + 2 * SEGMENT_LIMIT)
    return window.start + stop if stop >= 0 else offset + 2 * SEGMENT_LIMIT


def _context(window: _Window, first: int, last: int, wanted: bool) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    if not wanted:
        return (), ()
    begin, end = first - window.start, last - window.start
    around = window.lines(begin - BEFORE, end + AFTER)
    before = tuple(line for offset, line in around if offset < first)
    after = tuple(line for offset, line in around if offset > last)
    return before, after


Match = tuple[Ready, "re.Match[str]", int, int]


def match_at(lines: list[Line], index: int, catalogue: Catalogue) -> Match | None:
    """The first signature that matches a message covering lines[index]: (signature, match, first line, last line)."""
    line = lines[index]
    for ready in catalogue.candidates(line.text):
        found = _single(ready, lines, index) if ready.signature.span_lines <= 1 else _joined(ready, lines, index)
        if found is not None:
            return found
    return None


def _single(ready: Ready, lines: list[Line], index: int) -> Match | None:
    match = ready.regex.search(lines[index].text)
    return (ready, match, index, index) if match else None


def _joined(ready: Ready, lines: list[Line], index: int) -> Match | None:
    """Match a message that may be split over lines: first with this line leading, then with lines above it."""
    ahead = _following(lines, index, ready.signature.span_lines)
    for members in ([index, *ahead], [*_leading(lines, index, ready.signature.span_lines), index, *ahead]):
        offsets, text = _join(lines, members)
        for match in ready.regex.finditer(text):
            first = members[bisect_right(offsets, match.start()) - 1]
            last = members[bisect_right(offsets, max(match.end() - 1, match.start())) - 1]
            if first <= index <= last:
                return ready, match, first, last
    return None


def _join(lines: list[Line], members: list[int]) -> tuple[list[int], str]:
    offsets: list[int] = []
    size = 0
    for member in members:
        offsets.append(size)
        size += len(lines[member].text)
    return offsets, "".join(lines[member].text for member in members)


def _following(lines: list[Line], index: int, span: int) -> list[int]:
    """Lines below that may go on with the message: of the same process, or without a prefix."""
    mine = lines[index].process
    stop = min(len(lines), index + span * 3)
    same = [i for i in range(index + 1, stop) if lines[i].process in (mine, "")]
    return same[: span - 1]


def _leading(lines: list[Line], index: int, span: int) -> list[int]:
    """Lines above whose message this one may go on with, enough of them to hold its beginning."""
    mine = lines[index].process
    found: list[int] = []
    size = 0
    for i in range(index - 1, max(index - span * 3, -1), -1):
        if lines[i].process != mine and not (
            mine == "" and (not found or lines[i].process == lines[found[-1]].process)
        ):
            continue
        found.append(i)
        size += len(lines[i].text)
        if size > _BACK_CHARACTERS or len(found) >= span - 1:
            break
    return found[::-1]
