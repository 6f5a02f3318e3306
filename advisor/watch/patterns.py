"""The patterns by which phases and steps are known in a run's output: from the knowledge, and kept ready for watching.

A watched run must not pay for reading the knowledge. What the watcher needs of it is kept in the user's cache; where it
is not there yet, a process of its own reads the knowledge, so that the watcher neither waits nor carries it.
"""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from advisor.folders import cache_file, keep, knowledge_folder, own_bytes, own_knowledge
from advisor.watch.literals import required
from advisor.words import Phase

STEP = "training-step"
"""The signature that knows a trainer's own count."""
_KEPT = "watch-patterns.json"


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

    def phase_of(self, line: str) -> Phase | None:
        """The phase that the first pattern means that knows the line."""
        for one in self.phases:
            if (not one.words or any(word in line for word in one.words)) and re.search(one.pattern, line):
                return one.phase
        return None


def patterns_of(knowledge: tuple[Path, ...] = ()) -> Patterns:
    """From the knowledge: the crash room's progress marks and its step signature."""
    return _patterns(_told(knowledge))


class Fetching(Struct):
    """Patterns on their way from another process."""

    pid: int
    read: int
    _said: bytearray = field(default_factory=bytearray)

    def take(self) -> Patterns | None:
        """What arrived; None: not yet. Patterns without entries where the knowledge cannot be read."""
        try:
            while data := os.read(self.read, 1 << 16):
                self._said += data
        except BlockingIOError:
            return None
        os.close(self.read)
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        return _patterns(json.loads(self._said)) if self._said else Patterns()


def fetch(knowledge: tuple[Path, ...] = ()) -> Patterns | Fetching:
    """The patterns where they are kept; else begin to read them."""
    stamp = "" if knowledge or own_knowledge() is not None else _stamp()
    kept = _kept(stamp) if stamp else None
    return _read_apart(knowledge, stamp) if kept is None else kept


def _kept(stamp: str) -> Patterns | None:
    file = cache_file(_KEPT)
    if file is None:
        return None
    try:
        told = json.loads(own_bytes(file))
        return _patterns(told) if told["stamp"] == stamp else None
    except (OSError, ValueError, LookupError, TypeError):  # not there, or not ours
        return None


def _read_apart(knowledge: tuple[Path, ...], stamp: str) -> Fetching:
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.set_wakeup_fd(-1)  # the watcher's own
            _let_go_of_streams()
            os.nice(10)
            _tell(write, knowledge, stamp)
        finally:
            os._exit(0)
    os.close(write)
    os.set_blocking(read, False)
    return Fetching(pid, read)


def _let_go_of_streams() -> None:
    """Whoever reads the run's output waits until nobody holds it: that must not be us."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)


def _tell(write: int, knowledge: tuple[Path, ...], stamp: str) -> None:
    """Kept first: whoever reads the pipe to its end then only waits for our exit."""
    data = json.dumps({"stamp": stamp, **_told(knowledge)})
    file = cache_file(_KEPT) if stamp else None
    if file is not None:
        keep(file, data.encode())
    with os.fdopen(write, "w") as pipe:
        pipe.write(data)


def _stamp() -> str:
    """Names, sizes and times of what the patterns are made of."""
    folder = str(knowledge_folder())
    made_of = [*_files(folder, ".yaml"), *_files(os.path.join(folder, "frameworks"), ".yaml")]
    made_of += _files(os.path.join(os.path.dirname(os.path.dirname(__file__)), "crash"), "patterns.py")
    return "\n".join(sorted(made_of))


def _files(folder: str, ending: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.stat()) for entry in entries if entry.name.endswith(ending)]
    except OSError:
        return []
    return [f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in found]


def _told(knowledge: tuple[Path, ...]) -> dict[str, object]:
    from advisor.crash.patterns import expand
    from advisor.knowledge import open_knowledge

    known = open_knowledge(knowledge)
    marks = [*known.signatures.progress, *(mark for one in known.frameworks for mark in one.progress)]
    step = next((one for one in known.signatures.signatures if one.id == STEP), None)
    return {
        "phases": list({mark.pattern: mark.phase for mark in reversed(marks)}.items())[::-1],
        "step": expand(step) if step is not None else "",
        "words": list(step.within) if step is not None else [],
    }


def _patterns(told: dict[str, object]) -> Patterns:
    phases = cast("list[tuple[str, Phase]]", told["phases"])
    words = cast("list[str]", told["words"])
    every = tuple(PhasePattern(pattern, phase, required(pattern)) for pattern, phase in phases)
    return Patterns(every, str(told["step"]), tuple(words))
