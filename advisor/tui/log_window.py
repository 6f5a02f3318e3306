"""A few hundred lines of a log around one line, however large the log is: nothing else of it is kept."""

from __future__ import annotations

import gzip
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from advisor.hostile import clean_line

BLOCK = 4 * 2**20
LONGEST = 64 * 2**10
"""Bytes kept of one line; the rest of it is skipped."""
Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive lines. `first` is the 1-based number of the first one."""

    first: int
    lines: tuple[str, ...]
    ends: bool
    """Nothing follows the last line."""


@dataclass(slots=True)
class LogWindows:
    """Windows of one log. Remembers where blocks of lines begin, so that the second look is quick.

    Raises OSError where the file cannot be read (it may have moved since it was diagnosed).
    """

    path: Path
    _lines: list[int] = field(default_factory=lambda: [0])
    _offsets: list[int] = field(default_factory=lambda: [0])

    def around(self, number: int, reach: int, stop: Stop = lambda: False) -> Window:
        """Up to `reach` lines on either side of line `number`. `stop` is asked once a block."""
        first = max(1, number - reach)
        with self._open() as file:
            self._seek(file, first, stop)
            lines: list[str] = []
            while len(lines) < number + reach - first + 1:
                raw = file.readline(LONGEST)
                if not raw:
                    return Window(first, tuple(lines), ends=True)
                lines.append(shown(raw))
                while len(raw) == LONGEST and not raw.endswith(b"\n"):
                    raw = file.readline(LONGEST)
            return Window(first, tuple(lines), ends=not file.readline(1))

    def _open(self) -> BinaryIO:
        if self.path.suffix == ".gz":
            return cast(BinaryIO, gzip.open(self.path))
        return self.path.open("rb")

    def _seek(self, file: BinaryIO, first: int, stop: Stop) -> None:
        """Stand at the beginning of line `first`, or at the end. O(bytes before it), as fast as newlines count."""
        known = bisect_right(self._lines, first - 1) - 1
        passed, offset = self._lines[known], self._offsets[known]
        file.seek(offset)
        while passed < first - 1 and not stop():
            block = file.read(BLOCK)
            if not block:
                return
            count = block.count(b"\n")
            if passed + count >= first - 1:
                file.seek(offset + _after_newline(block, first - 1 - passed))
                return
            passed, offset = passed + count, offset + len(block)
            if count:  # remember where the line begins that the next block continues
                self._remember(passed, offset - (len(block) - block.rfind(b"\n") - 1))

    def _remember(self, lines: int, offset: int) -> None:
        if lines > self._lines[-1]:
            self._lines.append(lines)
            self._offsets.append(offset)


def _after_newline(block: bytes, number: int) -> int:
    """Offset just after the `number`-th newline of `block`."""
    at = 0
    for _ in range(number):
        at = block.index(b"\n", at) + 1
    return at


def shown(raw: bytes) -> str:
    """One log line as a terminal would have left it: of a redrawn progress line only the last picture, clean."""
    text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
    return clean_line(text.expandtabs(8).rsplit("\r", 1)[-1])
