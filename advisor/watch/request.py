"""Holds what `watch` was asked for and has opened and started, for the launcher and the recorder. Plain classes: the
command starts before msgspec is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from advisor.watch.kernel_log import KernelLog, KillCounts
from advisor.watch.output_relay import OutputRelay

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
    chain: Mapping[str, Any] = {}
    """What the record says of the attempt that this one follows; {}: it is the first, or the only one."""


class OpenedRecord(NamedTuple):
    """What was opened before the command began."""

    samples: int
    """Descriptor of the record's file."""
    kernel: KernelLog
    before: KillCounts
    begun: float
    """Epoch seconds."""


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


class RecordedEnd(NamedTuple):
    """How a command that was recorded ended. `status` as waitpid gives it; None where nobody knows."""

    status: int | None
    stopped_by: int = 0
    """The signal or key by which somebody asked it to end; 0: nobody did."""
    left: Mapping[int, int] = {}
    """Its processes that are still there: process id → when it began, in the kernel's ticks."""
