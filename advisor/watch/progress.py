"""Reads phases and steps from a run's output as it passes, by the patterns of the knowledge."""

from __future__ import annotations

import re
import select
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

from msgspec import Struct, field

from advisor.hostile import clean
from advisor.regex import regex
from advisor.watch.phase_patterns import Fetching, Patterns, fetch, patterns_of
from advisor.watch.record_files import LONGEST
from advisor.words import Phase

_DIGITS = regex(r"[\d█▏▎▍▌▋▊▉#]+| {2,}")
_SHAPES = 4096
_LONG = 1000
"""Characters of a line that are looked at."""
_FLOOD = 16_384
"""Bytes at once that are cut into lines."""
_MOST = 200
"""Lines looked at each time; of more, the last ones."""


class ProgressMark(Struct, frozen=True):
    """A phase that begins, or what a counter shows: a step ("step" 12, "done" 4, "epoch" 0.25), or LONGEST."""

    phase: Phase | None = None
    counter: str = ""
    count: float = 0.0


class OutputProgress(Struct):
    """Lines of output, as they come in pieces, and the marks in them."""

    patterns: Patterns | None = None
    """None: not known yet; lines wait."""
    phase: Phase | None = None
    fetching: Fetching | None = None
    """The patterns, where they are still on their way."""
    knowledge: tuple[Path, ...] = ()
    """Of the user's own, from which they come too."""
    has_news: bool = False
    """Output came since the last look at it."""
    _rest: str = ""
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST))
    _shapes: dict[str, Phase | None] = field(default_factory=dict)
    _counts: dict[str, float] = field(default_factory=dict)

    @classmethod
    def by(cls, knowledge: tuple[Path, ...]) -> OutputProgress:
        """By the patterns of the knowledge, which may still be on their way."""
        found = fetch(knowledge)
        return cls(fetching=found, knowledge=knowledge) if isinstance(found, Fetching) else cls(found)

    def is_ready(self) -> bool:
        if self.patterns is None and self.fetching is not None:
            self.patterns = self.fetching.take()
        return self.patterns is not None

    def await_ready(self, seconds: float) -> None:
        """For a run that ended before the patterns were there: its last lines are still to be understood. The process
        that reads them runs at low priority, on a busy machine for long: then they are read here."""
        until = monotonic() + seconds
        while not self.is_ready() and self.fetching is not None and monotonic() < until:
            select.select([self.fetching.read], [], [], 0.1)
        if self.patterns is None and self.fetching is not None and seconds:
            from advisor.knowledge import KnowledgeError

            with suppress(KnowledgeError):
                self.patterns = patterns_of(self.knowledge)

    def feed(self, data: bytes) -> None:
        """More output; of a flood, its end."""
        self.has_news = True
        if len(data) > _FLOOD:
            data, self._rest = data[-_FLOOD:], ""
        *whole, rest = re.split(r"[\r\n]+", self._rest + data.decode("utf-8", "replace"))
        self._rest = rest[-_LONG:]
        self._lines.extend(whole[-_MOST:])

    def marks(self) -> Iterator[ProgressMark]:
        """What the lines since the last call tell; a phase only where it changes, a count only where it moves."""
        if not self.is_ready() or self.patterns is None:
            return
        self.has_news = False
        if self._rest and "%|" in self._rest:  # a progress bar ends its line only at its end
            self._lines.append(self._rest)
        while self._lines:
            line = clean(self._lines.popleft(), _LONG)
            if not line:
                continue
            if self.patterns.step and any(word in line for word in self.patterns.step_words):
                counted = re.search(self.patterns.step, line)
                for name, text in counted.groupdict().items() if counted is not None else ():
                    yield from self._moved(name.rstrip("_"), _number(text))
            for pattern, words in self.patterns.longest:
                if any(word in line for word in words) and (found := re.search(pattern, line)):
                    yield from self._moved(LONGEST, _number(found.group(1)))
            phase = self._phase_of(line, self.patterns)
            if phase is not None and phase != self.phase:
                self.phase = phase
                yield ProgressMark(phase=phase)

    def _phase_of(self, line: str, patterns: Patterns) -> Phase | None:
        shape = _DIGITS.sub("0", line)
        if shape in self._shapes:
            return self._shapes[shape]
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        self._shapes[shape] = patterns.phase_of(line)
        return self._shapes[shape]

    def _moved(self, counter: str, count: float | None) -> Iterator[ProgressMark]:
        if count is not None and self._counts.get(counter) != count:
            self._counts[counter] = count
            yield ProgressMark(counter=counter, count=count)


def _number(text: str | None) -> float | None:
    if not text:
        return None
    try:
        return float(text.removesuffix("k")) * (1000 if text.endswith("k") else 1)
    except ValueError:
        return None
