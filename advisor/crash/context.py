"""What stands around the finds of a log: stretches of its bytes, each kept once however many finds lie in it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.keep import Find
from advisor.crash.lines import Line
from advisor.crash.window import Placed, Window
from advisor.knowledge.schema import Signature

BEFORE = 96 << 10
"""Bytes kept before what may have been the cause: its traceback, between the lines of other processes."""
BEFORE_HINT = 16 << 10
AFTER = 24 << 10
_MOST = 3 << 20
"""Bytes kept of one log around finds."""
_LINES, _ALL_LINES = 3_000, 30_000
"""Lines given before or after one find, and of one log altogether."""


def reach_before(signature: Signature) -> int:
    """Bytes kept before a find."""
    return BEFORE if signature.role == "cause" else BEFORE_HINT


class _Stretch(Struct):
    start: int
    number: int
    data: bytes

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class Contexts:
    """The surroundings of finds, taken while their bytes are at hand."""

    def __init__(self) -> None:
        self._stretches: list[_Stretch] = []
        self._held = 0
        self._finds: list[tuple[int, int]] = []

    def take(self, window: Window, signature: Signature, first: int, last: int) -> None:
        """Keep what stands around a find that begins at offset `first` and whose last line begins at `last`."""
        if self._held > _MOST:
            return
        position = window.bounds(max(first - reach_before(signature) - window.start, 0))[0]
        end = min(window.end_of(last - window.start) + AFTER, window.size)
        latest = self._stretches[-1] if self._stretches else None
        if latest is not None and latest.start <= window.start + position <= latest.end:
            fresh = window.copy(latest.end - window.start, end) if latest.end - window.start < end else b""
            latest.data += fresh
        else:
            fresh = window.copy(position, end)
            self._stretches.append(_Stretch(window.start + position, window.number_at(position), fresh))
        self._held += len(fresh)
        self._finds.append((first, last))

    def give(self, finds: list[Find]) -> list[Line]:
        """Put the lines before and after them into `finds`; all lines, in order, come back."""
        lasts = dict(self._finds)
        every: list[Line] = []
        for stretch in self._stretches:
            window = Window(stretch.data, stretch.start, stretch.number)
            lines = list(islice(window.lines(0, len(stretch.data)), max(_ALL_LINES - len(every), 0)))
            offsets = [offset for offset, _ in lines]
            for index, find in enumerate(finds):
                if find.offset in lasts and stretch.start <= find.offset < stretch.end:
                    finds[index] = _surrounded(find, lasts[find.offset], lines, offsets)
            every.extend(line for _, line in lines)
        return every


def _surrounded(find: Find, last: int, lines: Sequence[Placed], offsets: Sequence[int]) -> Find:
    until, begin = bisect_left(offsets, find.offset), bisect_right(offsets, last)
    from_ = bisect_left(offsets, find.offset - reach_before(find.signature), 0, until)
    before = tuple(line for _, line in lines[max(from_, until - _LINES) : until])
    end = bisect_left(offsets, last + AFTER)
    return replace(find, before=before, after=tuple(line for _, line in lines[begin : min(end, begin + _LINES)]))
