"""Loads the patterns by which phases and steps are known in a run's output, from a cache or from the knowledge.

A watched run must not pay for reading the knowledge. What the watcher needs of it is kept in the user's cache; where it
is not there yet, a process of its own reads the knowledge, so that the watcher neither waits nor carries it.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import suppress
from pathlib import Path

from msgspec import MsgspecError, Struct, field
from msgspec.json import decode, encode

from advisor.folders import cache_file, keep, knowledge_folder, own_bytes, own_knowledge
from advisor.regex import regex
from advisor.words import Phase

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
