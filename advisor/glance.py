"""The first look at a crash, in a process of its own: what the ends of the logs prove, while the app is still loading.

The child is forked before anything heavy is imported, so both cores are at work; it sends what it found through a pipe
and is gone.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from advisor.crash.evidence import Crash
    from advisor.knowledge import Knowledge
    from advisor.knowledge.schema import FrameRule, Progress
    from advisor.machine.inventory import Machine

END = 1 << 20
"""Bytes at the end of each log that are looked at."""
PATIENCE = 2.0
"""Seconds after which the app does without the glance."""
_LARGEST = 8 << 20


class Sight(Struct, frozen=True):
    """What is to be looked at, and how the user described the machine."""

    logs: tuple[Path, ...]
    knowledge: tuple[Path, ...] = ()
    gpus: str | None = None
    nodes: int | None = None
    host_ram: str | None = None


class Glance(Struct, frozen=True):
    """What the ends of the logs prove, and the machine as it was described."""

    crash: Crash
    machine: Machine
    titles: Mapping[str, str]
    """Signature id → what such a line means."""


def phase_marks(knowledge: Knowledge) -> tuple[list[FrameRule], list[Progress]]:
    """What the frameworks' own files tell of phases."""
    frames = [rule for framework in knowledge.frameworks for rule in framework.frames]
    return frames, [mark for framework in knowledge.frameworks for mark in framework.progress]


def glance_at(sight: Sight) -> Glance | None:
    """The ends of long logs, and short ones whole; None where there is nothing that can be read twice.

    Raises LogError, KnowledgeError, ValueError or OSError.
    """
    from advisor.crash.read import preview, read_logs
    from advisor.knowledge import open_knowledge
    from advisor.machine.describe import described

    if not all(log.is_file() or log.is_dir() for log in sight.logs):  # a pipe gives what it has only once
        return None
    knowledge = open_knowledge(sight.knowledge)
    marks = phase_marks(knowledge)
    crash = preview(sight.logs, knowledge.signatures, *marks, length=END) or read_logs(
        sight.logs, knowledge.signatures, *marks
    )
    if crash.preliminary and crash.verdict != "oom":
        return None  # so short an end proves nothing by its silence
    box = described(knowledge.gpus, gpus=sight.gpus, nodes=sight.nodes, host_ram=sight.host_ram)
    seen = {one.signature for one in crash.evidence}
    titles = {one.id: one.title for one in knowledge.signatures.signatures if one.id in seen}
    return Glance(crash, box, titles)


class Looking:
    """A child that glances at logs."""

    def __init__(self, sight: Sight) -> None:
        self._pid, self._pipe = 0, -1
        if not sight.logs or any(str(log) == "-" for log in sight.logs):
            return
        self._pipe, other = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._pipe)
            _send(other, sight)
        os.close(other)

    @property
    def is_looking(self) -> bool:
        """There is something to wait for."""
        return self._pid != 0

    def result(self, patience: float = PATIENCE) -> Glance | None:
        """What was found; None where there is nothing to tell in time. Only the first call waits and answers."""
        if self._pid == 0:
            return None
        data, until = b"", monotonic() + patience
        while len(data) < _LARGEST and select.select([self._pipe], [], [], max(0.0, until - monotonic()))[0]:
            piece = os.read(self._pipe, 1 << 16)
            if not piece:
                break
            data += piece
        else:
            data = b""
        self._end()
        return _received(data)

    def _end(self) -> None:
        os.close(self._pipe)
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        self._pid = 0


def _received(data: bytes) -> Glance | None:
    if not data:
        return None
    import msgspec

    from advisor.crash.evidence import Crash
    from advisor.machine.inventory import Machine

    crash, machine, titles = msgspec.json.decode(data, type=tuple[Crash, Machine, dict[str, str]])
    return Glance(crash, machine, titles)


def _send(pipe: int, sight: Sight) -> None:
    """In the child: look, tell, and be gone. Whatever goes wrong is found again, and told, by the reading itself."""
    try:
        with open(os.devnull, "r+b", buffering=0) as nothing:
            for descriptor in (0, 1, 2):
                os.dup2(nothing.fileno(), descriptor)
        found = glance_at(sight)
        if found is not None:
            import msgspec

            with os.fdopen(pipe, "wb") as out:
                out.write(msgspec.json.encode((found.crash, found.machine, found.titles)))
    finally:
        os._exit(0)
