"""Scan a stream of log bytes in two stages: literals over bytes at grep's speed, then regexes on lines around a hit.

Memory is bounded whatever the log: a window of about 1.5 MiB of bytes, the beginning and the end as lines, and the
first and last few finds of each signature with the lines around them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice

from msgspec import Struct, field

from advisor.crash.context import AFTER, BEFORE, Contexts
from advisor.crash.keep import Find, Flood, Kept
from advisor.crash.lines import SEGMENT_LIMIT, Line, without_codes
from advisor.crash.match import Matched, Surroundings, match_around
from advisor.crash.patterns import Catalogue, Ready
from advisor.crash.search import Searcher
from advisor.crash.sources import Reader, Source
from advisor.crash.talk import Talk
from advisor.crash.window import Window

CHUNK = 256 << 10
"""Bytes read and searched at a time."""
_ROOM = 8 * CHUNK
"""Bytes of the window: what is still of use is moved to its beginning only where this is used up."""
MILE = 64 << 20
"""Bytes between two places of which it is remembered how many lines stand before them."""
HEAD = 512 << 10
TAIL = 256 << 10
_LINES = 8_000
"""Lines kept of the beginning and of the end."""
_NEAR_AFTER = AFTER + 2 * SEGMENT_LIMIT
"""Bytes that are there behind a hit when it is looked at, or the log ends: all that is kept after a find."""
_NEWLINE = 10
_FLOOD, _FLOOD_OF_CAUSES = 500, 20_000
"""After so many lines with the same anchors only some of the later ones, and the last, are looked at."""
_EVERY = 32
_UNBROKEN = 16
"""Stretches of one endless line that are looked at; what follows in it is passed over."""
_ALIKE, _SHAPES = 3, 4_096
"""Lines that read alike and were looked at in vain before the next ones are not; how many such."""
_ANY_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_QUIET = ("warning", "telemetry")
Told = Callable[[int], None]
"""Called now and then with the bytes read so far."""


class Scanned(Struct):
    """What a scan kept of one log."""

    name: str
    finds: list[Find] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    head: list[Line] = field(default_factory=list)
    around: list[Line] = field(default_factory=list)
    """Lines before and after finds, in order."""
    tail: list[Line] = field(default_factory=list)
    lines_read: int = 0
    bytes_read: int = 0
    miles: list[tuple[int, int]] = field(default_factory=list)
    """(lines before, offset) of some lines' beginnings, MILE or more apart: the way to a line of a very long log."""


def scan(source: Source, catalogue: Catalogue, told: Told | None = None) -> Scanned:
    """Read a whole log. Raises LogError where it cannot be read. Time is linear in its size."""
    run = _Scan(catalogue)
    searcher = Searcher(catalogue.triggers)
    with Reader(source) as reader:
        while run.step(reader, searcher):
            if told is not None:
                told(run.searched)
    return run.finish(source.name)


class _Scan:
    """One pass over one log: what is read is searched for literals, then the lines of the hits are looked at."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.window = Window()
        self.window.room(_ROOM).release()
        self.head = bytearray()
        self.pending: deque[int] = deque()
        self.searched = 0
        """Offset up to which all hits are known."""
        self.done = -1
        """Offset up to which hits are accounted for."""
        self.unbroken = 0
        """Looks in a row at a line too long to see both ends of."""
        self.counts: dict[str, int] = {}
        self.kept: dict[str, Kept] = {}
        self.contexts = Contexts()
        self.floods: dict[tuple[Ready, ...], Flood] = {}
        self.vain: dict[int, int] = {}
        """Lines on which nothing matched, by what they read like but for their numbers → how many."""
        self.talk = Talk()
        self.miles: list[tuple[int, int]] = []

    def step(self, reader: Reader, searcher: Searcher) -> bool:
        """Go on with what can be read next; False at the end of the log."""
        window = self.window
        if len(window.data) - window.size < CHUNK:
            self._forget()
        begin = window.size
        room = window.room(CHUNK)
        window.extend(reader.read_into(room))
        if len(self.head) < HEAD:
            self.head += room[: min(HEAD - len(self.head), window.size - begin)]
        room.release()
        begin = self._passed_over(begin)
        if begin < window.size:
            self.pending.extend(searcher.search(window, begin))
        more = self.searched < window.end
        self.searched = window.end
        self._look(self.searched - _NEAR_AFTER)
        return more

    def _forget(self) -> None:
        """Make room by what nobody will look at any more."""
        window = self.window
        oldest = min(self.pending[0] if self.pending else self.searched, self.searched - TAIL)
        spare = oldest - BEFORE - SEGMENT_LIMIT - window.start
        if spare > 0:
            window.drop(spare)
            self._pass_mile()

    def _pass_mile(self) -> None:
        """Remember the first line that begins in the window, where the last one remembered is a mile back."""
        window = self.window
        if window.start - (self.miles[-1][1] if self.miles else 0) < MILE:
            return
        newline = window.data.find(b"\n", 0, window.size)
        if newline >= 0:
            self.miles.append((window.number, window.start + newline + 1))

    def _passed_over(self, begin: int) -> int:
        """Where in the window the search has to go on: an endless line is passed over to its end, if it has one."""
        window = self.window
        last = self.done - window.start
        if self.unbroken <= _UNBROKEN or last < 0:
            return begin
        end = window.next_break(last)
        if end >= window.size:
            self.done = window.end
        return max(begin, end)

    def finish(self, name: str) -> Scanned:
        """Look at the rest, and put together what was kept."""
        window = self.window
        self._look(self.searched + 1)
        self._last_of_floods()
        size = window.size
        scanned = Scanned(name, counts=self.counts, bytes_read=window.end, miles=self.miles)
        ends_open = size > 0 and window.data[size - 1] != _NEWLINE
        scanned.lines_read = window.number_at(size) - 1 + ends_open
        covered = len(self.head) - window.start
        if covered < size:
            scanned.tail = list(deque((line for _, line in window.lines(max(size - TAIL, covered), size)), _LINES))
        del window
        self.window = Window()  # its room is wanted now for lines
        head, self.head = Window(self.head), bytearray()
        scanned.head = [line for _, line in islice(head.lines(0, head.size), _LINES)] if head.size else []
        finds = [find for one in self.kept.values() for find in one.finds()]
        scanned.finds = sorted(finds, key=lambda find: (find.offset, find.first.number))
        scanned.around = self.contexts.give(scanned.finds)
        return scanned

    def _look(self, until: int) -> None:
        pending = self.pending
        while pending and pending[0] < until:
            offset = pending.popleft()
            if offset > self.done:
                self._look_at(offset)

    def _look_at(self, offset: int) -> None:
        """Test the signatures on the line at `offset`."""
        window = self.window
        at = offset - window.start
        if self.unbroken and window.next_break(max(self.done - window.start, 0)) < at:
            self.unbroken = 0
        begin, end = window.bounds(at)
        self.done = window.start + end
        self.unbroken = self.unbroken + 1 if end - begin > SEGMENT_LIMIT else 0
        if self.unbroken > _UNBROKEN:
            return
        raw = window.copy(begin, end)
        alike = raw.translate(_ANY_DIGIT)
        shape = hash(alike)
        if self.vain.get(shape, 0) >= _ALIKE or self.talk.is_old(alike, self.counts):
            return
        candidates = self.catalogue.candidates(without_codes(raw))
        if candidates and self._is_flood(candidates, window.start + begin, raw):
            return
        matched = self._matches(window, begin, end, candidates) if candidates else []
        if not matched and len(self.vain) < _SHAPES:
            self.vain[shape] = self.vain.get(shape, 0) + 1
        elif len(matched) == 1:
            self.talk.note(alike, matched[0])

    def _matches(self, window: Window, begin: int, end: int, candidates: tuple[Ready, ...]) -> list[Matched]:
        """Test the signatures on every line between two ends; those that matched."""
        around = Surroundings(window, begin, end, window.number_at(begin))
        every = [around, *(Surroundings(window, begin, end, around.number, i) for i in range(1, len(around.own)))]
        return [found for one in every if (found := self._test(one, candidates)) is not None]

    def _test(self, around: Surroundings, candidates: tuple[Ready, ...]) -> Matched | None:
        matched = match_around(around, candidates)
        if matched is None:
            return None
        window = self.window
        last = matched.lines[-1][0]
        self.done = max(self.done, window.start + window.end_of(last - window.start))
        signature = matched.ready.signature
        self.counts[signature.id] = self.counts.get(signature.id, 0) + 1 + matched.lines[0][1].repeats
        kept = self.kept.setdefault(signature.id, Kept(signature))
        if kept.wants_context():
            self.contexts.take(window, signature, matched.lines[0][0], last)
        kept.add(matched)
        return matched

    def _is_flood(self, candidates: tuple[Ready, ...], offset: int, raw: bytes) -> bool:
        """Whether so many lines like this one came that it is only counted; every now and then one is looked at."""
        flood = self.floods.get(candidates)
        if flood is None:
            quiet = all(ready.signature.role in _QUIET for ready in candidates)
            flood = self.floods[candidates] = Flood(quiet)
        flood.seen += 1
        if flood.seen <= (_FLOOD if flood.quiet else _FLOOD_OF_CAUSES) or flood.seen % _EVERY == 0:
            return False
        flood.last.append((offset, self.window.number_at(offset - self.window.start), raw[:SEGMENT_LIMIT]))
        flood.skipped += 1
        return True

    def _last_of_floods(self) -> None:
        """Look at the last lines that were only counted."""
        for candidates, flood in self.floods.items():
            matched = None
            for offset, number, raw in flood.last:
                window = Window(raw, offset, number)
                matched = match_around(Surroundings(window, 0, len(raw), number), candidates) or matched
                if matched is not None:
                    self.kept.setdefault(matched.ready.signature.id, Kept(matched.ready.signature)).add(matched)
            if matched is not None:
                name = matched.ready.signature.id
                self.counts[name] = self.counts.get(name, 0) + flood.skipped
