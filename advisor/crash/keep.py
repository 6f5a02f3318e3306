"""What a scan keeps of the lines that matched: the first and the last of each signature, and some in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from msgspec import Struct, field

from advisor.crash.lines import Line
from advisor.crash.match import Matched
from advisor.crash.patterns import Field, fields_of
from advisor.knowledge.schema import Signature

_FIRST, _LAST, _BETWEEN = 20, 20, 120
_WITH_CONTEXT = 8
_TELLING = ("cause", "hint", "pointer")
"""Roles whose surroundings are kept: traceback, table, what led there."""


class Find(Struct, frozen=True):
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


class Flood(Struct):
    """Lines with the same anchors."""

    quiet: bool
    """They are warnings or readings."""
    seen: int = 0
    skipped: int = 0
    last: deque[tuple[int, int, bytes]] = field(default_factory=lambda: deque(maxlen=_LAST))
    """(offset, line number, bytes) of the last ones that were only counted."""


class Kept:
    """The finds of one signature that are kept. Of readings also some in between, evenly thinned."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._first: list[Matched] = []
        self._between: list[Matched] = []
        self._last: deque[Matched] = deque(maxlen=_LAST)
        self._seen = 0
        self._stride = 1

    def wants_context(self) -> bool:
        """Whether the surroundings of the next find are to be kept."""
        return len(self._first) < _WITH_CONTEXT and self._signature.role in _TELLING

    def add(self, matched: Matched) -> None:
        """Keep it, or let go of one that is in the way."""
        if len(self._first) < _FIRST:
            self._first.append(matched)
            return
        if len(self._last) == _LAST and self._signature.role == "telemetry":
            self._thin(self._last[0])
        self._last.append(matched)

    def finds(self) -> Iterator[Find]:
        """What was kept, in order."""
        for matched in (*self._first, *self._between, *self._last):
            yield _find(matched)

    def _thin(self, matched: Matched) -> None:
        self._seen += 1
        if self._seen % self._stride == 0:
            self._between.append(matched)
        if len(self._between) > _BETWEEN:
            self._between = self._between[1::2]
            self._stride *= 2


def _find(matched: Matched) -> Find:
    offset, first = matched.lines[0]
    text = "\n".join(line.printed for _, line in matched.lines)
    fields = fields_of(matched.ready.signature, matched.match)
    return Find(matched.ready.signature, fields, first, matched.lines[-1][1].number, text, offset)
