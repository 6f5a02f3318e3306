"""A program in a real pseudo-terminal: what it was sent, what it left the terminal in, how it ended."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_MODE = re.compile(rb"\x1b\[\?([\d;]+)([hl])")
_AT_REST = {25: "h", 7: "h"}
"""Modes that are on in a terminal nobody has changed: the cursor is shown, lines wrap. All others are off."""
_SEQUENCE = re.compile(r"\x1b\[[0-9;?<>=$]*[a-zA-Z]|\x1b[\]P][^\x07\x1b]*(?:\x07|\x1b\\)")
_KITTY = re.compile(rb"\x1b\[([<>])\d*u")


def _as_a_shell_starts_it() -> None:
    """With the terminal as its own, and deaf to nothing: the tests themselves may run under nohup."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class PseudoTerminal:
    """Runs `words` as a terminal's foreground program."""

    def __init__(
        self, words: Sequence[str], folder: Path, environ: Mapping[str, str], size: tuple[int, int] = (100, 30)
    ) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        self.written = b""
        self.process = subprocess.Popen(
            list(words),
            stdin=self.theirs,
            stdout=self.theirs,
            stderr=self.theirs,
            cwd=folder,
            env=dict(environ),
            start_new_session=True,
            preexec_fn=_as_a_shell_starts_it,
        )

    def read(self, seconds: float) -> None:
        """What is there, or comes within `seconds`."""
        if select.select([self.ours], [], [], seconds)[0]:
            self.written += os.read(self.ours, 65536)

    @property
    def text(self) -> str:
        """What was written, without sequences."""
        return _SEQUENCE.sub("", self.written.decode("utf-8", "replace"))

    def until(self, words: str, seconds: float = 30.0) -> None:
        """Wait until `words` were written."""
        end = time.monotonic() + seconds
        while words not in self.text:
            assert time.monotonic() < end, f"{words!r} never came:\n{self.text[-3000:]}"
            assert self.process.poll() is None or select.select([self.ours], [], [], 0)[0], self.text[-3000:]
            self.read(0.2)

    def keys(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.ours, keys)

    def ended(self, seconds: float = 30.0) -> int:
        """Wait for the end; the exit code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end:\n{self.text[-3000:]}"
            self.read(0.1)
        while select.select([self.ours], [], [], 0.05)[0]:
            self.read(0)
        return self.process.returncode

    def left_changed(self) -> list[str]:
        """What the terminal was left in that it was not in before."""
        modes: dict[int, str] = {}
        for numbers, state in _MODE.findall(self.written):
            modes.update({int(number): state.decode() for number in numbers.split(b";")})
        found = [f"mode {number} left {state}" for number, state in modes.items() if state != _AT_REST.get(number, "l")]
        pushed = sum({b">": 1, b"<": -1}[sign] for sign in _KITTY.findall(self.written))
        found += [f"{pushed} keyboard protocols left"] if pushed > 0 else []
        after = termios.tcgetattr(self.theirs)
        names = ("input", "output", "control", "local", "speed in", "speed out", "characters")
        return found + [f"stty: {name}" for name, old, new in zip(names, self.before, after, strict=True) if old != new]

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self.theirs)
        os.close(self.ours)
        self.ours = self.theirs = -1

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for fd in (self.ours, self.theirs):
            if fd >= 0:
                os.close(fd)
