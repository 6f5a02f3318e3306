"""Switches the user's terminal to raw while the command is in the foreground, and back at every other moment."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from contextlib import suppress
from typing import Any

Attributes = list[Any]
_INPUT = termios.BRKINT | termios.ICRNL | termios.INLCR | termios.IGNCR | termios.INPCK | termios.ISTRIP | termios.IXON
_LOCAL = termios.ECHO | termios.ECHONL | termios.ICANON | termios.IEXTEN | termios.ISIG
"""Flags of input and line discipline that are off in raw mode."""


class Terminal:
    """The terminal on one descriptor. (No Struct: the keeper starts before anything large is loaded.)"""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._before: Attributes | None = None

    @property
    def is_raw(self) -> bool:
        """Whether keys go through untouched."""
        return self._before is not None

    def in_foreground(self) -> bool:
        """Whether the shell has given this terminal to our process group."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError:
            return False

    def make_raw(self) -> None:
        """Pass every key through; `restore` ends it. Only for a group in the foreground."""
        before = attributes_of(self.fd)
        if before is None or self._before is not None:
            return
        self._before = before
        raw = [*before[:6], list(before[6])]
        raw[0] &= ~_INPUT
        raw[1] &= ~termios.OPOST
        raw[2] = (raw[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        raw[3] &= ~_LOCAL
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        with suppress(termios.error):
            termios.tcsetattr(self.fd, termios.TCSADRAIN, raw)

    def restore(self) -> None:
        if self._before is not None:
            set_attributes(self.fd, self._before)
        self._before = None


def attributes_of(fd: int) -> Attributes | None:
    """As `termios` has them; None where there is no terminal any more."""
    try:
        return termios.tcgetattr(fd)
    except termios.error:
        return None


def set_attributes(fd: int, attributes: Attributes) -> None:
    """At once, whoever has the foreground."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(termios.error, OSError):
        termios.tcsetattr(fd, termios.TCSANOW, attributes)
    signal.signal(signal.SIGTTOU, before)


def restore_if_raw(fd: int, attributes: Attributes) -> None:
    """The same, where the terminal is as `make_raw` left it: a shell may have taken it meanwhile."""
    with suppress(termios.error):
        now = termios.tcgetattr(fd)
        if not now[1] & termios.OPOST and not now[3] & termios.ISIG:
            set_attributes(fd, attributes)


def copy_size(source: int, target: int) -> None:
    """Rows and columns of one terminal for another."""
    with suppress(OSError):
        size = fcntl.ioctl(source, termios.TIOCGWINSZ, struct.pack("4H", 0, 0, 0, 0))
        fcntl.ioctl(target, termios.TIOCSWINSZ, size)


def give_foreground(fd: int, group: int) -> None:
    """Make a process group of this session the one that may read the terminal."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    with suppress(OSError):
        os.tcsetpgrp(fd, group)
    signal.signal(signal.SIGTTOU, before)
