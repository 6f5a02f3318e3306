"""Reads a few hundred lines of a log around one line, however large the log is, and searches it block by block."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO

from msgspec import Struct, field

from advisor.crash.sources import LogSource
from advisor.hostile import clean_line

BLOCK = 4 * 2**20
LONGEST = 64 * 2**10
"""Bytes kept of one line; the rest of it is skipped."""
Stop = Callable[[], bool]


def _never() -> bool:
    return False


class LogWindow(Struct, frozen=True):
    """Consecutive lines. `first` is the 1-based number of the first one."""

    first: int
    lines: tuple[str, ...]
    ends: bool
    """Nothing follows the last line."""


class LogWindows(Struct):
    """Windows of one log. Remembers where some lines begin, so that the second look is quick.

    Raises OSError or LogError where the log cannot be read (it may have moved since it was diagnosed).
    """

    source: LogSource
    _lines: list[int] = field(default_factory=lambda: [0])
    _offsets: list[int] = field(default_factory=lambda: [0])

    def around(self, number: int, reach: int, stop: Stop = _never) -> LogWindow:
        """Up to `reach` lines on either side of line `number`. `stop` is asked once a block.

        O(bytes before the window), as fast as newlines are counted.
        """
        first = max(1, number - reach)
        with self.source.open() as stream:
            lines = _lines_of(self._skip(stream, first - 1, stop), stream)
            found = tuple(shown(raw) for raw in islice(lines, number + reach - first + 1))
            return LogWindow(first, found, ends=next(lines, None) is None)

    def trust(self, miles: Sequence[tuple[int, int]], number: int, looks_right: Callable[[str], bool]) -> bool:
        """Take over (lines before, offset) of some lines, where line `number` looks right when it is found by them.

        False, and nothing taken over, where it does not: the log may be another one than when its lines were counted.
        """
        known = self._lines, self._offsets
        self._lines, self._offsets = ([0, *column] for column in zip(*miles, strict=True)) if miles else known
        if miles and not any(looks_right(text) for text in self.around(number, 0).lines):
            self._lines, self._offsets = known
            return False
        return True

    def offset_of(self, number: int, stop: Stop = _never) -> int | None:
        """The byte at which line `number` begins; None where the log only goes forward."""
        with self.source.open() as stream:
            if not _goes_back(stream):
                return None
            rest = self._skip(stream, number - 1, stop)
            return stream.tell() - len(rest)

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


OVERLAP = 4096
"""Bytes of a block that are looked at again with the next one; what is searched for is shorter."""


def next_hit(windows: LogWindows, wanted: str, line: int, stop: Stop) -> int | None:
    """The first line after `line` that holds `wanted`; None where there is none. Small letters match large ones too."""
    needle, fold = _needle(wanted)
    offset = windows.offset_of(line + 1, stop)
    with windows.source.open() as stream:
        number = line + 1
        if offset is None:  # a packed log is read from its beginning
            number = 1
        else:
            stream.seek(offset)
        kept = b""
        while not stop():
            block = stream.read(BLOCK)
            if not block:
                return None
            data = kept + (block.lower() if fold else block)
            at = data.find(needle)
            while at >= 0:
                found = number + data.count(b"\n", 0, at)
                if found > line:
                    return found
                at = data.find(needle, at + 1)
            cut = max(0, len(data) - OVERLAP)
            number += data.count(b"\n", 0, cut)
            kept = data[cut:]
    return None


def hit_before(windows: LogWindows, wanted: str, line: int, stop: Stop) -> int | None:
    """The last line before `line` that holds `wanted`; None where there is none, or the log only goes forward."""
    needle, fold = _needle(wanted)
    offset = windows.offset_of(line, stop)
    if offset is None:
        return None
    number, kept = line, b""
    with windows.source.open() as stream:
        while offset > 0 and not stop():
            start = max(0, offset - BLOCK)
            stream.seek(start)
            block = stream.read(offset - start)
            data = (block.lower() if fold else block) + kept
            at = data.rfind(needle)
            if at >= 0:
                return number - data.count(b"\n", at, len(block))
            number -= block.count(b"\n")
            offset, kept = start, data[:OVERLAP]
    return None


def _needle(wanted: str) -> tuple[bytes, bool]:
    """What to look for, and whether capitals do not matter: where it has none of its own."""
    text = wanted[:200]
    return text.encode(), text == text.lower()
