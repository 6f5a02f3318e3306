"""The stretch of a log that is in memory: bytes with their place in the log, cut into lines only where somebody looks.

A line here is what stands between newlines or carriage returns; carriage returns do not count in line numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.crash.lines import SEGMENT_LIMIT, Line, read_line, segments

Placed = tuple[int, Line]
"""(bytes from the start of the log, line)"""


class Window:
    """Bytes of a log from offset `start`, whose first byte stands on line `number`."""

    def __init__(self, data: bytes = b"", start: int = 0, number: int = 1) -> None:
        self.data = data
        self.start = start
        self.number = number
        self._mark = (0, number)
        self._read: dict[int, list[Line]] = {}

    def extend(self, chunk: bytes) -> None:
        """Append what was read next."""
        self.data += chunk

    def drop(self, count: int) -> None:
        """Forget the first `count` bytes."""
        self.number = self.number_at(count)
        self.data = self.data[count:]
        self.start += count
        self._mark = (0, self.number)
        self._read = {offset: lines for offset, lines in self._read.items() if offset >= self.start}

    def number_at(self, position: int) -> int:
        """The 1-based line number at a position of `data`; cheap when positions rise."""
        at, number = self._mark
        if position < at:
            return number - self.data.count(b"\n", position, at)
        number += self.data.count(b"\n", at, position)
        self._mark = (position, number)
        return number

    def bounds(self, position: int) -> tuple[int, int]:
        """Begin and end of the line around a position; at most SEGMENT_LIMIT to either side."""
        floor = max(position - SEGMENT_LIMIT, 0)
        newline = self.data.rfind(b"\n", floor, position)
        carriage = self.data.rfind(b"\r", max(newline, floor), position)
        found = max(newline, carriage)
        return (found + 1 if found >= 0 else floor), self.end_of(position)

    def end_of(self, position: int) -> int:
        """Where the line that holds `position` ends (exclusive, before its line break)."""
        limit = min(position + SEGMENT_LIMIT, len(self.data))
        newline = self.data.find(b"\n", position, limit)
        limit = newline if newline >= 0 else limit
        carriage = self.data.find(b"\r", position, limit)
        return carriage if carriage >= 0 else limit

    def lines_at(self, begin: int, end: int, number: int) -> list[Line]:
        """The line at data[begin:end]; several where a message was logged with literal line breaks."""
        cached = self._read.get(self.start + begin)
        if cached is not None and end < len(self.data):
            return cached
        lines = [read_line(part, number) for part in segments(self.data[begin:end])]
        self._read[self.start + begin] = lines
        return lines

    def below(self, end: int, number: int) -> Iterator[Placed]:
        """Lines after the one that ends at `end`, which stands on line `number`, in order."""
        size = len(self.data)
        while end < size:
            if self.data[end] == 10:
                number += 1
                end += 1
            elif self.data[end] == 13:
                end += 1
            if end >= size:
                return
            begin, end = end, self.end_of(end)
            for line in self.lines_at(begin, end, number) if begin < end else ():
                yield self.start + begin, line

    def above(self, begin: int, number: int) -> Iterator[Placed]:
        """Lines before the one that begins at `begin`, which stands on line `number`, nearest first."""
        while begin > 0:
            before = begin - 1
            if self.data[before] == 10:
                number -= 1
            elif self.data[before] != 13:
                before = begin
            begin = self.bounds(before)[0] if before > 0 else 0
            for line in reversed(self.lines_at(begin, before, number)) if begin < before else ():
                yield self.start + begin, line

    def lines(self, begin: int, end: int) -> Iterator[Placed]:
        """All lines that touch data[begin:end]."""
        position = self.bounds(max(begin, 0))[0]
        number = self.number_at(position)
        stop = self.end_of(position)
        for line in self.lines_at(position, stop, number):
            yield self.start + position, line
        for offset, line in self.below(stop, number):
            if offset - self.start >= end:
                return
            yield offset, line
