"""Keeps where text of a bash script stands: bytes of a document, or a string that a command runs as shell text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from advisor.language import say

Context = Literal["plain", "double", "single", "ansi", "heredoc", "brace", "nested"]
"""What surrounds a literal: it decides how a new value must be quoted. "nested": a string that is run as shell text."""


class ByteRange(Struct, frozen=True):
    """Bytes `start:end` of document number `doc`, between the quotes where there are any."""

    doc: int
    start: int
    end: int
    context: Context = "plain"

    def overlaps(self, other: ByteRange) -> bool:
        """Whether an edit of one touches the other; empty places count where they stand."""
        if self.doc != other.doc:
            return False
        if self.start == self.end or other.start == other.end:
            return self.start <= other.end and other.start <= self.end
        return self.start < other.end and other.start < self.end


class Piece(Struct, frozen=True):
    """A run of bytes of a value and where it comes from. `place` is set where these very bytes stand in a document;
    `deps` are literals that a computed text derives from. `reason` is not empty where the text is not known; `text` is
    then at best a guess, used only to look for files."""

    text: bytes
    place: ByteRange | None = None
    deps: tuple[ByteRange, ...] = ()
    reason: str = ""
    quoted: bool = True

    @property
    def exact(self) -> bool:
        """Byte n of the text is byte n of the place."""
        return self.place is not None and self.place.end - self.place.start == len(self.text)

    def sources(self) -> tuple[ByteRange, ...]:
        """Every literal that has a part in this text."""
        return self.deps if self.place is None else (self.place, *self.deps)

    def cut(self, start: int, end: int) -> Piece:
        """The part `start:end`, still with its place where bytes correspond."""
        if start == 0 and end == len(self.text):
            return self
        if self.place is not None and self.exact:
            place = ByteRange(self.place.doc, self.place.start + start, self.place.start + end, self.place.context)
            return Piece(self.text[start:end], place, self.deps, self.reason, self.quoted)
        return Piece(self.text[start:end], None, self.sources(), self.reason, self.quoted)


ShellValue = tuple[Piece, ...]


def joined(pieces: Iterable[Piece]) -> bytes:
    """The bytes of a value, guesses included."""
    return b"".join(piece.text for piece in pieces)


def known(pieces: Iterable[Piece]) -> bool:
    """Whether every byte of a value is known."""
    return not any(piece.reason for piece in pieces)


def why_unknown(pieces: Iterable[Piece]) -> str:
    """The first reason why a value is not known; "" where it is."""
    return next((piece.reason for piece in pieces if piece.reason), "")


def sources(pieces: Iterable[Piece]) -> tuple[ByteRange, ...]:
    """Every literal that has a part in a value, once."""
    return tuple(dict.fromkeys(place for piece in pieces for place in piece.sources()))


def cut(pieces: ShellValue, start: int, end: int | None = None) -> ShellValue:
    """Bytes `start:end` of a value as pieces."""
    out: list[Piece] = []
    at = 0
    for piece in pieces:
        low, high = max(start - at, 0), len(piece.text) if end is None else min(end - at, len(piece.text))
        if low < high or (low == high and not piece.text and low == 0):
            out.append(piece.cut(low, high))
        at += len(piece.text)
    return tuple(out)


def without_end(body: ShellValue, blanks: bytes) -> ShellValue:
    """A value without such bytes at its end; a part that is not known counts as text."""
    while blanks and body and not body[-1].reason:
        last = body[-1]
        end = len(last.text.rstrip(blanks))
        if end:
            return (*body[:-1], last.cut(0, end))
        body = body[:-1]
    return body


def trimmed_end(body: ShellValue) -> ShellValue:
    """Without the newlines at the end, as `$( … )` gives it."""
    return tuple(piece for piece in without_end(body, b"\n") if piece.text or piece.reason)


def unknown(reason: str, deps: tuple[ByteRange, ...] = (), guess: bytes = b"") -> Piece:
    """A text that cannot be known from the files."""
    return Piece(guess, None, deps, reason)


_LONGEST_VALUE = 300_000
_MOST_PIECES = 5_000


def bounded(value: ShellValue) -> ShellValue:
    """A value, or that it is too long to be followed (`A=$A$A` forty times)."""
    if len(value) > _MOST_PIECES or sum(len(piece.text) for piece in value) > _LONGEST_VALUE:
        return (unknown(say("a value too long to follow")),)
    return value


class NotGiven(str):
    """The reason for an argument of the script, which runs without any."""


class NotSet(str):
    """The reason for a variable that only the outside can give."""

    __slots__ = ()

    @classmethod
    def of(cls, name: bytes) -> NotSet:
        return cls(say("${name} is not set in the script", name=name.decode()))


class OneWord(str):
    """Why a value is not known that is one word, whatever it is: a path, a number, a name."""


class Varies(str):
    """The reason for a value that every run has anew: a draw, a task of a job array, a row of a table."""

    __slots__ = ()


class _StartFolder(str):
    """The reason for a path that begins where the script is started from."""

    __slots__ = ()


def started(path: bytes, known_end: bytes) -> ShellValue:
    """`$0` of a script at `path`: where it stands depends on how it is started, the last bytes of it may not."""
    beginning = path.removesuffix(known_end)
    tail = () if not known_end else (Piece(known_end),)
    why = _StartFolder(say("where the script is started from"))
    return (unknown(why, (), beginning if beginning != path or not tail else b""), *tail)


def last_component(path: ShellValue) -> ShellValue | None:
    """What follows the last slash of a path whose beginning is not known; None where that is not known either."""
    tail: list[Piece] = []
    for piece in reversed(path):
        at = piece.text.rfind(b"/") + 1
        if piece.reason:
            whole = isinstance(piece.reason, _StartFolder) and at == len(piece.text)
            return tuple(tail) if whole and tail and not any(b"/" in p.text for p in tail) else None
        tail.insert(0, piece.cut(at, len(piece.text)))
        if at:
            break
    return tuple(tail)


class Segment(Struct, frozen=True):
    """Bytes of a `Text` from `start` on, and the piece they come from (its length gives the end)."""

    start: int
    piece: Piece


class Text(Struct, frozen=True):
    """Shell text to be parsed: a whole document, a part of one, or a string built at run time. `holes` are pieces that
    are not known; they stand in `data` as `HOLE`, their number and a byte 2."""

    data: bytes
    segments: tuple[Segment, ...]
    nested: bool = False
    holes: tuple[Piece, ...] = ()
    starts: tuple[int, ...] = ()
    home: ByteRange | None = None
    """The word that is run as this text, quotes and all, where it stands in a document."""

    def place(self, start: int, end: int, context: Context) -> ByteRange | None:
        """Where bytes `start:end` stand in a document; None where they are no one run of its bytes."""
        index = 0 if len(self.segments) == 1 else bisect_right(self.starts, start) - 1
        if index < 0:
            return None
        segment = self.segments[index]
        piece = segment.piece
        origin = piece.place
        if origin is None or end > segment.start + len(piece.text) or not piece.exact:
            return None
        low = origin.start + start - segment.start
        return ByteRange(origin.doc, low, low + end - start, "nested" if self.nested else context)

    def deps(self, start: int, end: int) -> tuple[ByteRange, ...]:
        """The literals that bytes `start:end` derive from."""
        if len(self.segments) == 1:
            place = self.place(start, end, "plain")
            return self.segments[0].piece.sources() if place is None else (place,)
        return sources(self.pieces(start, end))

    def pieces(self, start: int, end: int) -> tuple[Piece, ...]:
        """Bytes `start:end`, each run of them with its own place."""
        low = max(bisect_right(self.starts, start) - 1, 0)
        high = bisect_right(self.starts, max(end - 1, start))
        return tuple(
            one.piece.cut(max(start - one.start, 0), min(end - one.start, len(one.piece.text)))
            for one in self.segments[low:high]
        )

    def part(self, start: int, end: int) -> Text:
        """Bytes `start:end` as a text of their own (a command substitution)."""
        pieces = cut(tuple(segment.piece for segment in self.segments), start, end)
        segments, at = [], 0
        for piece in pieces:
            segments.append(Segment(at, piece))
            at += len(piece.text)
        return Text(self.data[start:end], tuple(segments), self.nested, self.holes, tuple(s.start for s in segments))


HOLE = b"\x01"


def document_text(doc: int, data: bytes) -> Text:
    piece = Piece(data, ByteRange(doc, 0, len(data)))
    return Text(data, (Segment(0, piece),), starts=(0,))


def nested_text(pieces: ShellValue, home: ByteRange | None = None) -> Text:
    """A string that a command runs as shell text (`eval`, `bash -c`). Unknown pieces become holes."""
    segments: list[Segment] = []
    holes: list[Piece] = []
    out: list[bytes] = []
    at = 0
    for piece in pieces:
        stands = piece
        if piece.reason:
            stands = Piece(HOLE + b"%d\x02" % len(holes), None, piece.sources(), piece.reason)
            holes.append(piece)
        elif HOLE in piece.text:
            stands = Piece(piece.text.replace(HOLE, b"?"), None, piece.sources())
        segments.append(Segment(at, stands))
        out.append(stands.text)
        at += len(stands.text)
    return Text(b"".join(out), tuple(segments), True, tuple(holes), tuple(s.start for s in segments), home)


@lru_cache(maxsize=16)
def line_starts(data: bytes) -> list[int]:
    """Byte offsets at which lines begin. Kept for the last few texts, because it is asked for line by line."""
    out, at = [0], data.find(b"\n")
    while at >= 0:
        out.append(at + 1)
        at = data.find(b"\n", at + 1)
    return out


def line_at(starts: Sequence[int], offset: int) -> int:
    """1-based line of a byte offset."""
    return bisect_left(starts, offset + 1)
