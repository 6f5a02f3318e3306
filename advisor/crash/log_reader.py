"""Reads the bytes of one log, decompressed, over holes, up to where it breaks off; joins lines that a screen broke."""

from __future__ import annotations

import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import BinaryIO, cast

from advisor.crash.sources import SAMPLE, LogError, LogSource, refuse_binary, text_source
from advisor.hostile import clean_line
from advisor.language import say
from advisor.words import os_words

_AHEAD = 4 << 20
"""Bytes of a file the system is asked to have ready: 1.3 s for a gigabyte that no memory holds, against 2.0 to 2.9 s
by its own measure."""
_TAR_END = 1024
"""Bytes of zeros with which a tar archive ends."""
_HOLE = 1 << 20
"""Bytes that a file system may leave out without a hole to speak of."""


class LogReader:
    """Reads one source from its beginning to its end, decompressed, into room that the caller has. A compressed file
    that breaks off ends where it does, and `broke_off` says so; one of which nothing can be read raises LogError, as
    does a binary file. Holes of a file are passed over. `with` closes it."""

    broke_off: str = ""

    def __init__(self, source: LogSource) -> None:
        self._name = source.name
        self._begun = source.is_part
        self._is_tar, self._end = False, b""
        try:
            self._stream = source.open()
            self._left = self._most = _length(self._stream)
            self._sparse = _has_holes(self._stream)
            self._ask_ahead = _asker(self._stream)
        except OSError as problem:
            raise self._refusal(problem) from problem
        # what reads no more than is at hand: asking for more loses the end of a packed file that breaks off
        fill = getattr(self._stream, "readinto1", None) or getattr(self._stream, "readinto", None)
        self._fill = cast("Callable[[memoryview], int | None]", fill)

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read_into(self, room: memoryview) -> int:
        """Fill `room` as far as there is something to read; returns how many bytes. 0 only at the end."""
        filled = 0
        if self._sparse:
            self._over_a_hole()
        while filled < len(room) and (count := self._read(room[filled : filled + self._left])):
            if not self._begun:
                refuse_binary(bytes(room[:SAMPLE]), count, self._name)
                self._is_tar = bytes(room[257:262]) == b"ustar"
            self._begun = True
            self._left -= count
            filled += count
        self._ask_ahead()
        if self._is_tar and filled:
            self._end = bytes(room[max(filled - _TAR_END, 0) : filled])
        elif self._is_tar and self._end.strip(b"\0") and not self.broke_off:
            self._breaks_off()
        return filled

    def _read(self, room: memoryview) -> int:
        try:
            return self._fill(room) or 0 if room else 0
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as problem:
            if not self._begun:
                raise self._refusal(problem) from problem
            self._breaks_off()
            return 0

    def _breaks_off(self) -> None:
        self.broke_off = say(
            "The end of {file} is missing: it breaks off, and what it says after {count} bytes cannot be read.",
            file=clean_line(self._name),
            count=f"{self._most - self._left:,}",
        )

    def _over_a_hole(self) -> None:
        """Go on where something was written: a log that was cut while it was written to begins with a hole."""
        at = self._stream.tell()
        try:
            data = os.lseek(self._stream.fileno(), at, os.SEEK_DATA)
        except OSError:  # nothing but a hole is left
            data = self._stream.seek(0, os.SEEK_END)
        self._left = max(self._left - (data - at), 0)

    def _refusal(self, problem: Exception) -> LogError:
        reason = clean_line(str(problem), 200) or type(problem).__name__
        if isinstance(problem, OSError) and problem.strerror:
            reason = os_words(problem)
        return LogError(say("{file}: cannot be read ({reason})", file=clean_line(self._name), reason=reason))


def _length(stream: BinaryIO) -> int:
    """Bytes to read: of a plain file what it holds now, whatever is written to it meanwhile; else all there will be."""
    if not isinstance(stream, io.FileIO):
        return sys.maxsize
    found = os.fstat(stream.fileno())
    if not stat.S_ISREG(found.st_mode) or not found.st_size:
        return sys.maxsize
    return found.st_size - stream.tell()


def _has_holes(stream: BinaryIO) -> bool:
    """Whether a plain file says that it is longer than what lies on the disk of it."""
    if not isinstance(stream, io.FileIO) or not hasattr(os, "SEEK_DATA"):
        return False
    found = os.fstat(stream.fileno())
    return stat.S_ISREG(found.st_mode) and found.st_blocks * 512 + _HOLE < found.st_size


def _asker(stream: BinaryIO) -> Callable[[], None]:
    """What asks the system to fetch from the disk what is read next, so that nobody waits for it."""
    if not isinstance(stream, io.FileIO) or not hasattr(os, "posix_fadvise") or not stream.seekable():
        return lambda: None
    asked = stream.tell()

    def ask() -> None:
        nonlocal asked
        wanted = stream.tell() + _AHEAD
        if wanted - asked >= _AHEAD // 2:
            os.posix_fadvise(stream.fileno(), asked, wanted - asked, os.POSIX_FADV_WILLNEED)
            asked = wanted

    return ask


_WRAPPED = 1 << 20
"""Bytes of a log that somebody may have copied from a screen."""
_NARROWEST = 60
"""Characters of the narrowest terminal."""
_FULL_LINES = 3
"""Lines of exactly the greatest width from which on that width is the terminal's."""
_SIGNS = 6
"""Different characters that a line has at least; a ruler has fewer."""


def unwrapped(sources: Sequence[LogSource]) -> list[LogSource] | None:
    """The same logs with their lines whole; None where none of them was wrapped."""
    texts = [_text(source) for source in sources]
    whole = [join_wrapped(text) if text is not None else None for text in texts]
    if not any(whole):
        return None
    return [text_source(text, one.name, one.path) if text else one for one, text in zip(sources, whole, strict=True)]


def join_wrapped(text: str) -> str | None:
    """The text with what was wrapped put together; None where no width shows that it was."""
    lines = text.split("\n")
    width = max(map(len, lines))
    full = {line for line in lines if len(line) == width and len(set(line)) >= _SIGNS}
    if width < _NARROWEST or len(full) < _FULL_LINES:
        return None
    out: list[str] = []
    pieces = 0
    for number, line in enumerate(lines):
        if pieces:
            out[-pieces] += line
            out.append("")
        else:
            out.append(line)
        pieces = pieces + 1 if line in full and number + 1 < len(lines) else 0
    return "\n".join(out)


def _text(source: LogSource) -> str | None:
    if source.path is None or source.is_part or not 0 < (source.size or 0) <= _WRAPPED:
        return None
    room = bytearray(_WRAPPED)
    try:
        with LogReader(source) as reader:
            return room[: reader.read_into(memoryview(room))].decode("utf-8", "surrogateescape")
    except LogError:
        return None
