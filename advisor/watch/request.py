"""Holds what `watch` was asked for and has opened and started, for the launcher and the recorder. Plain classes: the
command starts before msgspec is loaded."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from advisor.watch.output_relay import OutputRelay
from advisor.watch.system_logs import KernelLog, KillCounts

if TYPE_CHECKING:
    from advisor.watch.pty_relay import PtyRelay

Notify = Callable[[str], None]
"""Shows one sentence to the user."""


class WatchRequest(NamedTuple):
    """What was asked for."""

    argv: tuple[str, ...]
    folder: Path | None = None
    """None: a name of its own is found for it."""
    alert: float | None = None
    knowledge: tuple[Path, ...] = ()
    on_alert: Callable[[str, float], None] | None = None
    """Gets the gauge's name and how full it is, at the alert's level."""
    on_steps: Callable[[Path], None] | None = None
    """Gets the record's folder when half as many steps again were counted as at the last time."""
    attempt: bytes = b""
    """What `attempt.json` of the record says; nothing: there is none."""


class Beginning(NamedTuple):
    """When something began, by the clock on the wall and by the one that nobody sets."""

    wall: float
    """Epoch seconds."""
    steady: float
    """Of `time.monotonic`."""

    @classmethod
    def now(cls) -> Beginning:
        return cls(time.time(), time.monotonic())

    def earliest(self) -> float:
        """Epoch seconds before which nothing of it was written, also where the clock was set back meanwhile."""
        return min(self.wall, time.time() - (time.monotonic() - self.steady))


class OpenedRecord(NamedTuple):
    """What was opened before the command began."""

    samples: int
    """Descriptor of the record's file."""
    kernel: KernelLog
    before: KillCounts
    begun: Beginning


class RunningCommand(NamedTuple):
    """The command under way."""

    pid: int
    signals: int
    """Descriptor from which our signals are read."""
    pty: PtyRelay | None = None
    """Holds its pseudo-terminal."""
    output: OutputRelay | None = None
    """Holds those of its streams that are none."""
    has_errors_file: bool = False
    """Its standard error has a file of its own."""
