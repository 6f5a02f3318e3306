"""Follows a command to its end with nothing but its output and signals: for where the recorder itself fails.

Plain functions of the standard library: it has to work where nothing else does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from advisor.watch.request import RunningCommand
from advisor.watch.spawn import FORWARDED

_LOOK_S = 0.1
"""Seconds between two looks."""
_CHUNK = 1 << 16


class ShownLog(NamedTuple):
    """A log of the command's output, and how far it has been shown."""

    source: int
    target: int | None
    """None: its reader has gone."""
    place: int = 0

    def show(self, until: int | None = None) -> ShownLog:
        """What is new, up to byte `until`."""
        place, target = self.place, self.target
        try:
            while target is not None:
                most = _CHUNK if until is None else min(_CHUNK, until - place)
                data = os.pread(self.source, most, place) if most > 0 else b""
                if not data:
                    break
                place += os.write(target, data)
        except OSError:
            target = None
        return ShownLog(self.source, target, place)


def follow_plainly(command: RunningCommand, logs: Sequence[ShownLog]) -> int | None:
    """Show the output and pass signals on until the command has ended; its status, None where it is not known."""

    def pass_on(number: int, _: object) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(command.pid, number)

    for number in FORWARDED:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    told = b""
    while True:
        before = len(told)
        over, status, told = _looked(command, told)
        logs = [log.show() for log in logs]
        if over:
            break
        if len(told) == before:
            time.sleep(_LOOK_S)
    sizes = [] if command.output is None else command.output.sizes()
    ends = [None] * (len(logs) - len(sizes)) + [*sizes]
    for log, end in zip(logs, ends, strict=True):
        log.show(end)
    return status


def _looked(command: RunningCommand, told: bytes) -> tuple[bool, int | None, bytes]:
    """Whether it has ended, how, and what the relay of its pseudo-terminal has told."""
    if command.pty is None:
        with suppress(ChildProcessError):
            pid, status = os.waitpid(command.pid, os.WNOHANG)
            return pid != 0, status if pid else None, told
        return True, None, told
    over = False
    with suppress(BlockingIOError):
        data = os.read(command.pty.events, _CHUNK)
        over, told = not data, told + data
    words = [line.partition(b" ") for line in told.split(b"\n")[:-1]]
    ends = [int(number) for word, _, number in words if word == b"status"]
    ends = [status for status in ends if os.WIFEXITED(status) or os.WIFSIGNALED(status)]
    return over, ends[-1] if ends else None, told
