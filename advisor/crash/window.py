"""Holds the bytes of a log that are in memory, with their place in it, and cuts them into lines where they are read.

A line here is what stands between newlines or carriage returns; carriage returns do not count in line numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.crash.lines import SEGMENT_LIMIT, LogLine, read_line, segments
from advisor.regex import regex

_BLOCK = 256
"""Bytes in which line breaks are looked for backwards at a time."""
_BREAKS = regex(rb"[\r\n]+")
LineAt = tuple[int, LogLine]
"""(bytes from the start of the log, line)"""


class ByteWindow:
    """Bytes of a log from offset `start`, whose first byte stands on line `number`.

    What is read next is written straight behind the last byte: `room`, then `extend`. Only what is kept when the room
    is used up is ever copied.
    """

    def __init__(self, data: bytes | bytearray = b"", start: int = 0, number: int = 1) -> None:
        self.data = data
        self.size = len(data)
        """Bytes of `data` that are filled."""
        self.start = start
        self.number = number
        self._mark = (0, number)
        self._read: dict[int, list[LogLine]] = {}

    @property
    def end(self) -> int:
        """Offset in the log behind the last byte."""
        return self.start + self.size

    def room(self, length: int) -> memoryview:
        """Place for `length` bytes behind the last one."""
        if len(self.data) < self.size + length:
            larger = bytearray(max(self.size + length, 2 * len(self.data)))
            larger[: self.size] = memoryview(self.data)[: self.size]
            self.data = larger
        return memoryview(self.data)[self.size : self.size + length]

    def extend(self, count: int) -> None:
        """`count` bytes were written there."""
        self.size += count

    def drop(self, count: int) -> None:
        """Forget the first `count` bytes. Nobody may be reading a view of the others meanwhile: they move."""
        self.number = self.number_at(count)
        left = self.size - count
        with memoryview(self.data) as view:
            view[:left] = view[count : self.size]
        self.size = left
        self.start += count
        self._mark = (0, self.number)
        self._read = {offset: lines for offset, lines in self._read.items() if offset >= self.start}

    def copy(self, begin: int, end: int) -> bytes:
        """data[begin:end], to be kept."""
        return bytes(memoryview(self.data)[begin:end])

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
        limit = min(position + SEGMENT_LIMIT, self.size)
        newline = self.data.find(b"\n", position, limit)
        limit = newline if newline >= 0 else limit
        carriage = self.data.find(b"\r", position, limit)
        return carriage if carriage >= 0 else limit

    def next_break(self, position: int) -> int:
        """Where the next newline or carriage return stands; `size` where none is left."""
        newline = self.data.find(b"\n", position, self.size)
        limit = newline if newline >= 0 else self.size
        carriage = self.data.find(b"\r", position, limit)
        return carriage if carriage >= 0 else limit

    def lines_at(self, begin: int, end: int, number: int) -> list[LogLine]:
        """The line at data[begin:end]; several where a message was logged with literal line breaks."""
        cached = self._read.get(self.start + begin)
        if cached is not None and end < self.size:
            return cached
        lines = [read_line(part, number) for part in segments(self.copy(begin, end))]
        self._read[self.start + begin] = lines
        return lines

    def below(self, end: int, number: int) -> Iterator[LineAt]:
        """Lines after the one that ends at `end`, which stands on line `number`, in order."""
        size = self.size
        while end < size:
            if (breaks := _BREAKS.match(self.data, end, size)) is not None:
                number += self.data.count(b"\n", end, breaks.end())
                end = breaks.end()
            if end >= size:
                return
            begin, end = end, self.end_of(end)
            for line in self.lines_at(begin, end, number) if begin < end else ():
                yield self.start + begin, line

    def above(self, begin: int, number: int) -> Iterator[LineAt]:
        """Lines before the one that begins at `begin`, which stands on line `number`, nearest first."""
        while begin > 0:
            before = begin
            if self.data[begin - 1] in b"\r\n":
                block = self.copy(max(begin - _BLOCK, 0), begin)
                left = len(block.rstrip(b"\r\n"))
                number -= block.count(b"\n", left)
                before -= len(block) - left
            begin = self.bounds(before)[0] if before > 0 else 0
            for line in reversed(self.lines_at(begin, before, number)) if begin < before else ():
                yield self.start + begin, line

    def lines(self, begin: int, end: int) -> Iterator[LineAt]:
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
