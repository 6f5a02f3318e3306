"""Reads phases and steps from a run's output as it passes, by the patterns of the knowledge."""

from __future__ import annotations

import os
import re
import select
import signal
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode, encode

from advisor.folders import cache_file, keep, knowledge_folder, own_bytes, own_knowledge
from advisor.hostile import clean
from advisor.regex import regex
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


STEP = "training-step"
"""The signature that knows a trainer's own count."""
_LEAST_WORD = 3
"""Characters of a word that is worth looking for."""


class PhasePattern(Struct, frozen=True):
    """A line that it matches begins `phase`."""

    pattern: str
    phase: Phase
    words: tuple[str, ...] = ()
    """One of these stands in every such line; () where that cannot be told."""


class Patterns(Struct, frozen=True):
    """In order of trust; each is compiled when a line may match it."""

    phases: tuple[PhasePattern, ...] = ()
    step: str = ""
    step_words: tuple[str, ...] = ()
    """One of these stands in every line that counts steps."""
    longest: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns of the longest answer of a step, each with words of which one stands in its line."""

    def phase_of(self, line: str) -> Phase | None:
        for one in self.phases:
            if (not one.words or any(word in line for word in one.words)) and re.search(one.pattern, line):
                return one.phase
        return None


class _Cache(Struct, frozen=True):
    """What stands in the cache, and goes through the pipe."""

    stamp: str
    patterns: Patterns


def patterns_of(knowledge: tuple[Path, ...] = ()) -> Patterns:
    """From the knowledge: the crash room's progress marks and its step signature."""
    from advisor.crash.patterns import expand
    from advisor.knowledge import open_knowledge

    known = open_knowledge(knowledge)
    marks = [*known.signatures.progress, *(mark for one in known.frameworks for mark in one.progress)]
    phases = reversed({mark.pattern: mark.phase for mark in reversed(marks)}.items())
    step = next((one for one in known.signatures.signatures if one.id == STEP), None)
    return Patterns(
        tuple(PhasePattern(pattern, phase, required_words(pattern)) for pattern, phase in phases),
        expand(step) if step is not None else "",
        tuple(step.within) if step is not None else (),
        tuple((one.pattern, one.within) for one in known.signatures.answers),
    )


class Fetching(Struct):
    """Patterns on their way from another process."""

    pid: int
    read: int
    _received: bytearray = field(default_factory=bytearray)

    def take(self) -> Patterns | None:
        """What arrived; None: not yet. Patterns without entries where the knowledge cannot be read."""
        try:
            while data := os.read(self.read, 1 << 16):
                self._received += data
        except BlockingIOError:
            return None
        os.close(self.read)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        return decode(self._received, type=_Cache).patterns if self._received else Patterns()


def fetch(knowledge: tuple[Path, ...] = ()) -> Patterns | Fetching:
    """The patterns from the cache; else begin to read them in a process of their own."""
    stamp = "" if knowledge or own_knowledge() is not None else _stamp()
    file = cache_file("watch-patterns.json") if stamp else None
    if file is not None:
        with suppress(OSError, MsgspecError):  # not there, or not ours
            cached = decode(own_bytes(file), type=_Cache)
            if cached.stamp == stamp:
                return cached.patterns
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)  # the watcher's own
            nothing = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):  # a reader of the run's output waits until nobody holds it: that must not be us
                os.dup2(nothing, fd)
            os.nice(10)
            data = encode(_Cache(stamp, patterns_of(knowledge)))
            if file is not None:  # first: the reader of the pipe then only waits for our exit
                keep(file, data)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(data)
        finally:
            os._exit(0)  # what the parent has to do at its end is not the child's
    os.close(write)
    os.set_blocking(read, False)
    return Fetching(pid, read)


def _stamp() -> str:
    """Names, sizes and times of what the patterns are made of; "" where that cannot be told."""
    folder, crash = knowledge_folder(), Path(__file__).parents[1] / "crash"
    made_of = [*folder.glob("*.yaml"), *folder.glob("frameworks/*.yaml"), *crash.glob("*.py"), Path(__file__)]
    with suppress(OSError):
        found = [(path, path.stat()) for path in sorted(made_of)]
        return "\n".join(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in found)
    return ""


# --- words that a regex requires: a cheap test before it is even compiled ------------------------------------------

_ESCAPE, _CLASS, _GROUP = regex(r"\\(.)"), regex(r"\[\^?\]?[^\]]*\]"), regex(r"\([^()]*\)")
_OPTIONAL = regex(r".(?:[?*]|\{[^}]*\})", re.DOTALL)
_UNKNOWN = "\0"
_LITERAL = 0xE000
"""Added to the code of an escaped punctuation mark (private use in Unicode), so that it is no syntax any more."""


def required_words(pattern: str) -> tuple[str, ...]:
    """One word for each alternative at the top level; () where some alternative has none, so that all must be tried.
    Careful rather than clever: groups, classes and what may be absent count as unknown."""
    if "(?i" in pattern:
        return ()
    text = _ESCAPE.sub(lambda m: _UNKNOWN if m[1].isalnum() else chr(_LITERAL + ord(m[1])), pattern)
    text, shorter = "", _CLASS.sub(_UNKNOWN, text)
    while shorter != text:  # the innermost groups first
        text, shorter = shorter, _GROUP.sub(_UNKNOWN, shorter)
    words = []
    for alternative in _OPTIONAL.sub(_UNKNOWN, text).split("|"):
        word = max(re.split(r"[\0+?*.^$]", alternative), key=len)
        words.append("".join(chr(ord(c) - _LITERAL) if ord(c) - _LITERAL in range(128) else c for c in word))
    return tuple(words) if all(len(word) >= _LEAST_WORD for word in words) else ()
