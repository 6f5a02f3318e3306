"""Scan a stream of log bytes in two stages: literals over bytes at grep's speed, then regexes on lines around a hit.

Memory is bounded whatever the log: a window of about 1.5 MiB of bytes, the beginning and the end as lines, and the
first and last few finds of each signature with the lines around them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import ahocorasick_rs

from advisor.crash.lines import SEGMENT_LIMIT, Line
from advisor.crash.match import Matched, Surroundings, match_around
from advisor.crash.patterns import Catalogue, Field, fields_of
from advisor.crash.sources import Source, read_chunks
from advisor.crash.window import Window
from advisor.knowledge.schema import Signature

BEFORE = 96 << 10
AFTER = 24 << 10
HEAD = 512 << 10
TAIL = 256 << 10
_LINES, _CONTEXT_LINES = 8_000, 3_000
"""Lines kept of the beginning and of the end, and of what stands before or after a find."""
_NEAR_AFTER = 24 << 10
_FIRST_KEPT, _LAST_KEPT, _WITH_CONTEXT = 20, 20, 8
_TELLING = ("cause", "hint", "pointer")
"""Roles whose surroundings are kept: traceback, table, what led there."""
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


def scan(source: Source, catalogue: Catalogue) -> Scanned:
    """Read a whole log. Raises LogError where it cannot be read. Time is linear in its size."""
    scanned = Scanned(source.name)
    kept: dict[str, _Kept] = {}
    window = Window()
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


def _finish(scanned: Scanned, window: Window, head: bytes, kept: dict[str, _Kept]) -> None:
    size = len(window.data)
    scanned.bytes_read = window.start + size
    ends_open = bool(window.data) and not window.data.endswith(b"\n")
    scanned.lines_read = window.number_at(size) - 1 + ends_open
    opening = Window()
    opening.extend(head)
    scanned.head = [line for _, line in islice(opening.lines(0, len(head)), _LINES)] if head else []
    covered = len(head) - window.start
    if covered < size:
        scanned.tail = list(deque((line for _, line in window.lines(max(size - TAIL, covered), size)), _LINES))
    finds = (find for one in kept.values() for find in [*one.first, *one.last])
    scanned.finds = sorted(finds, key=lambda find: (find.offset, find.first.number))


def _examine(
    offset: int, done: int, window: Window, catalogue: Catalogue, kept: dict[str, _Kept], counts: dict[str, int]
) -> int:
    """Test the signatures on the line at `offset`. Returns the offset up to which the log is accounted for."""
    if offset <= done:
        return done
    begin, end = window.bounds(offset - window.start)
    number = window.number_at(begin)
    until = window.start + end
    around = Surroundings(window, begin, end, number)
    for index in range(len(around.own)):
        matched = match_around(around if index == 0 else Surroundings(window, begin, end, number, index), catalogue)
        if matched is None:
            continue
        last_offset = matched.lines[-1][0]
        until = max(until, window.start + window.end_of(last_offset - window.start))
        _keep(matched, window, kept, counts)
    return until


def _keep(matched: Matched, window: Window, kept: dict[str, _Kept], counts: dict[str, int]) -> None:
    signature = matched.ready.signature
    first_offset, first = matched.lines[0]
    counts[signature.id] = counts.get(signature.id, 0) + 1 + first.repeats
    if counts[signature.id] > _FLOOD:
        return
    store = kept.setdefault(signature.id, _Kept())
    wanted = len(store.first) < _WITH_CONTEXT and signature.role in _TELLING
    last_offset, last = matched.lines[-1]
    before, after = _context(window, first_offset, last_offset) if wanted else ((), ())
    text = "\n".join(line.printed for _, line in matched.lines)
    fields = fields_of(signature, matched.match)
    store.add(Find(signature, fields, first, last.number, text, first_offset, before, after))


def _context(window: Window, first: int, last: int) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    begin, end = first - window.start, last - window.start
    above = (line for offset, line in window.lines(begin - BEFORE, begin) if offset < first)
    below = (line for offset, line in window.lines(end, end + AFTER) if offset > last)
    return tuple(deque(above, _CONTEXT_LINES)), tuple(islice(below, _CONTEXT_LINES))
