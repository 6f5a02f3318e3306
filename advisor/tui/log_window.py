"""A few hundred lines of a log around one line, however large the log is: nothing else of it is kept."""

from __future__ import annotations

import io
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO

from msgspec import Struct, field

from advisor.crash.sources import Source
from advisor.hostile import clean_line

BLOCK = 4 * 2**20
NEAR = 2000
"""Lines that are counted forward before it is tried from the end."""
BACKWARD = 96 * 2**20
"""Bytes from the end within which a line is looked for from there."""
LONGEST = 64 * 2**10
"""Bytes kept of one line; the rest of it is skipped."""
Stop = Callable[[], bool]


def _never() -> bool:
    return False


class Window(Struct, frozen=True):
    """Consecutive lines. `first` is the 1-based number of the first one."""

    first: int
    lines: tuple[str, ...]
    ends: bool
    """Nothing follows the last line."""


class LogWindows(Struct):
    """Windows of one log. Remembers where some lines begin, so that the second look is quick.

    Raises OSError or LogError where the log cannot be read (it may have moved since it was diagnosed).
    """

    source: Source
    _lines: list[int] = field(default_factory=lambda: [0])
    _offsets: list[int] = field(default_factory=lambda: [0])
    _in_all: int | None = None
    """Lines of the whole log, where that is known and was found to be right."""

    def around(self, number: int, reach: int, stop: Stop = _never) -> Window:
        """Up to `reach` lines on either side of line `number`. `stop` is asked once a block.

        O(bytes before the window), as fast as newlines are counted.
        """
        with self.source.open() as stream:
            first = self._begins(stream, number, reach, stop)
            wanted = number + reach - first + 1
            lines = _lines_of(self._skip(stream, first - 1, stop), stream)
            found = tuple(shown(raw) for raw in islice(lines, wanted))
            return Window(first, found, ends=next(lines, None) is None)

    def count_from_end(self, lines: int, number: int, looks_right: Callable[[str], bool], stop: Stop = _never) -> bool:
        """Trust that the log has `lines` lines, and find those near its end by counting back from there.

        False, and nothing trusted, where line `number` is too far from the end, or does not look right when it is
        found that way: the log may have grown since its lines were counted.
        """
        with self.source.open() as stream:
            offset = _line_from_end(stream, lines - number, stop) if _goes_back(stream) else None
            if offset is None:
                return False
            stream.seek(offset)
            if not looks_right(shown(stream.read(LONGEST).partition(b"\n")[0])):
                return False
        self._in_all = lines
        return True

    def offset_of(self, number: int, stop: Stop = _never) -> int | None:
        """The byte at which line `number` begins; None where the log only goes forward."""
        with self.source.open() as stream:
            if not _goes_back(stream):
                return None
            self._anchored(stream, number - 1, stop)
            rest = self._skip(stream, number - 1, stop)
            return stream.tell() - len(rest)

    def _begins(self, stream: BinaryIO, number: int, reach: int, stop: Stop) -> int:
        """The first line of a window around `number`: nearer to it where what is further has to be counted for long."""
        for near in (reach, reach // 10, reach // 100, 0):
            first = max(1, number - near)
            if self._anchored(stream, first - 1, stop):
                return first
        return max(1, number - reach)

    def _anchored(self, stream: BinaryIO, lines: int, stop: Stop) -> bool:
        """Whether the place after `lines` lines is at hand: a short way from a known one, or found from the end."""
        if lines - self._lines[bisect_right(self._lines, lines) - 1] < NEAR:
            return True
        offset = None
        if self._in_all is not None and _goes_back(stream):
            offset = _line_from_end(stream, self._in_all - lines - 1, stop)
            stream.seek(0)
        if offset is not None:
            insort(self._lines, lines)
            self._offsets.insert(self._lines.index(lines), offset)
        return offset is not None

    def _skip(self, stream: BinaryIO, lines: int, stop: Stop) -> bytes:
        """Pass `lines` lines; what was read beyond them comes back."""
        passed = offset = 0
        if _goes_back(stream):
            known = bisect_right(self._lines, lines) - 1
            passed, offset = self._lines[known], self._offsets[known]
            stream.seek(offset)
        while block := stream.read(BLOCK):
            count = block.count(b"\n")
            if passed + count >= lines:
                return block[_after_newline(block, lines - passed) :]
            if stop():
                break
            passed, offset = passed + count, offset + len(block)
            if count and passed > self._lines[-1]:  # where the line begins that the next block continues
                self._lines.append(passed)
                self._offsets.append(offset - (len(block) - block.rfind(b"\n") - 1))
        return b""


def _line_from_end(stream: BinaryIO, after: int, stop: Stop) -> int | None:
    """Where the line begins that has `after` lines after it; None beyond BACKWARD bytes from the end."""
    end = stream.seek(0, io.SEEK_END)
    if end:
        stream.seek(end - 1)
        after += stream.read(1) == b"\n"  # the newline that ends the last line has no line after it
    place, left = end, after
    while place > 0 and end - place < BACKWARD and not stop():
        start = max(0, place - BLOCK)
        stream.seek(start)
        block = stream.read(place - start)
        count = block.count(b"\n")
        if count > left:
            return start + _before_newline(block, left) + 1
        place, left = start, left - count
    return 0 if place == 0 and left == 0 else None


def _before_newline(block: bytes, number: int) -> int:
    """Offset of the newline that has `number` newlines after it in `block`."""
    at = len(block)
    for _ in range(number + 1):
        at = block.rindex(b"\n", 0, at)
    return at


def _goes_back(stream: object) -> bool:
    """A plain file; decompressors only go forward at a reasonable price."""
    return isinstance(stream, io.FileIO | io.BufferedReader | io.BytesIO)


def _lines_of(rest: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """The lines of what was read already and of the stream after it, each cut to LONGEST bytes."""
    kept = b""
    while rest:
        *whole, last = rest.split(b"\n")
        for part in whole:
            yield (kept + part)[:LONGEST]
            kept = b""
        kept = (kept + last)[:LONGEST]
        rest = stream.read(BLOCK) or b""
    if kept:
        yield kept


def _after_newline(block: bytes, number: int) -> int:
    """Offset just after the `number`-th newline of `block`; 0 for none."""
    at = 0
    for _ in range(number):
        at = block.index(b"\n", at) + 1
    return at


def shown(raw: bytes) -> str:
    """One log line as a terminal would have left it: of a redrawn progress line only the last picture, clean."""
    text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
    return clean_line(text.expandtabs(8).rsplit("\r", 1)[-1])
