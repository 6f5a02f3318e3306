"""Decides which lines of a log are looked at no more, after many alike that matched nothing or repeated one message."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Sequence

from msgspec import Struct, field

from advisor.crash.patterns import Ready

_STRETCH = 1 << 16
"""Bytes of a log in which one more try is allowed once no more lines can be remembered."""
_SAME_ADVICE, _ADVICE_LINES = 64, 4_096
"""Lines of advice that read or begin alike and are looked at before the next are only counted; how many such."""
_OPENING, _LENGTHS = 160, 8
"""Bytes of a line by whose beginning alone it can be known; of how many different lengths such beginnings may be."""
_FLOOD, _FLOOD_OF_CAUSES = 500, 20_000
"""After so many lines with the same anchors only some of the later ones, and the last, are looked at."""
_EVERY, _LAST = 32, 20
"""Of a flood, one line in so many is looked at, and so many of its last lines."""


class Throttle:
    """Counts by key how often something was noted, for up to `most` keys; noted `allowed` times, a key is exhausted.

    With `sparing`, once no more keys can be remembered, any key is exhausted but for one a stretch of the log.
    """

    def __init__(self, allowed: int, most: int, sparing: bool = False) -> None:
        self._allowed, self._most, self._sparing = allowed, most, sparing
        self._noted: dict[Hashable, int] = {}
        self._last = 0

    @property
    def full(self) -> bool:
        """Whether no more keys can be remembered, nor looks be counted."""
        return len(self._noted) >= self._most

    def exhausted(self, key: Hashable, offset: int = 0) -> bool:
        """Whether the key had its share. `offset`: where in the log it stands."""
        if not (self._sparing and self.full):
            return self._noted.get(key, 0) >= self._allowed
        if offset - self._last < _STRETCH:
            return True
        self._last = offset
        return False

    def note(self, key: Hashable) -> None:
        """Count the key once more, unless full."""
        if not self.full:
            self._noted[key] = self._noted.get(key, 0) + 1


class AdviceLines:
    """Lines that only speak of memory, such as advice and words that a model wrote, with every digit taken as 0.

    A signature that is known by the beginning of its line ("[response] …") says the same of every line that begins so.
    """

    def __init__(self) -> None:
        self._throttle = Throttle(_SAME_ADVICE, _ADVICE_LINES)
        self._signatures: dict[bytes, str] = {}
        """Line, or its beginning → signature."""
        self._lengths: tuple[int, ...] = ()

    def counted(self, alike: bytes, counts: dict[str, int]) -> bool:
        """Whether a line said the same so often that it is only counted, which is done here."""
        for key in (alike, *(alike[:length] for length in self._lengths)):
            if self._throttle.exhausted(key):
                counts[self._signatures[key]] += 1
                return True
        return False

    def note(self, alike: bytes, ready: Ready, match: re.Match[str]) -> None:
        """One more line on which this alone matched."""
        if ready.signature.role == "warning" and ready.signature.memory == "none" and not self._throttle.full:
            key = self._opening(alike, ready, match) or alike
            self._throttle.note(key)
            self._signatures[key] = ready.signature.id

    def _opening(self, alike: bytes, ready: Ready, match: re.Match[str]) -> bytes:
        """The line up to the end of the match; b"" where the signature is known by more than the line's beginning."""
        if match.start() != 0 or not ready.pattern.startswith("^") or match.end() == len(match.string):
            return b""
        matched = match.group().encode()
        begins = alike.find(matched, 0, _OPENING)
        length = begins + len(matched)
        if begins < 0 or (length not in self._lengths and len(self._lengths) == _LENGTHS):
            return b""
        self._lengths = tuple(sorted({length, *self._lengths}))
        return alike[:length]


class Flood(Struct):
    """Lines with the same anchors. `allowed`: how many are all looked at."""

    allowed: int
    seen: int = 0
    skipped: int = 0
    last: deque[tuple[int, int, bytes]] = field(default_factory=lambda: deque(maxlen=_LAST))
    """(offset, line number, bytes) of the last ones that were only counted."""

    def passes(self) -> bool:
        """Count one more line; whether it is looked at."""
        self.seen += 1
        return self.seen <= self.allowed or self.seen % _EVERY == 0


def flood_of(candidates: Sequence[Ready]) -> Flood:
    """A flood of lines that hold the anchors of these signatures: warnings and readings are throttled sooner."""
    quiet = all(ready.signature.role in ("warning", "telemetry") for ready in candidates)
    return Flood(_FLOOD if quiet else _FLOOD_OF_CAUSES)
