"""One watched run from start to end: signals, stops and the exit code as without us, readings in between."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic as clock
from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.watch.child import FORWARDED
from advisor.watch.outlet import Outlet
from advisor.watch.terminal import Terminal, attributes_of, copy_size, give_foreground, set_attributes

if TYPE_CHECKING:
    from advisor.watch.keeper import Kept
    from advisor.watch.pourer import Poured
    from advisor.watch.sampler import Sampler

_SOON, _LATER = 0.03, 0.15
"""Seconds until the next look at a file that nobody tells of: in a flood, and (at the next reading) in silence."""
_FLOOD = 4096
"""Bytes between two looks from which on the next one is soon."""


class Course(Struct):
    """The command while it runs. `status` is what waitpid returned, None: never known."""

    pid: int
    woken: int
    """Where signals wait: each is a byte to read."""
    outlets: list[Outlet]
    kept: Kept | None = None
    poured: Poured | None = None
    terminal: Terminal | None = None
    """The user's, where standard input is one."""
    status: int | None = None
    over: bool = False
    _given: bool = False
    """The terminal was given to the command's group."""
    _modes_due: bool = False
    """Begun in the background: the command's terminal has not got the modes of the user's yet."""
    _told: bytes = b""
    _keys: bytearray = field(default_factory=bytearray)
    _broken_told: set[int] = field(default_factory=set)
    """Places of the outlets whose reader has gone, as the command was told."""
    _moved: bool = True
    """There was output at the last look."""
    _floods: bool = False
    """There was much, or a reader that is slow."""
    _look: float = 0.0
    """When to look again."""
    _ears: select.poll = field(default_factory=select.poll)
    _heard: dict[int, int] = field(default_factory=dict)
    """What `_ears` listens to: descriptor → events."""

    # --- the loop --------------------------------------------------------------------------------------------------

    def run(self, sampler: Sampler) -> None:
        """Until the command has ended and all its output is shown."""
        self._heard = {self.woken: select.POLLIN}
        self._ears.register(self.woken, select.POLLIN)
        try:
            self._foreground()
            self._modes_due = self.terminal is not None and not self.terminal.is_raw
            self._reap()
            while not self.over:
                self._turn(sampler)
            self._last_output()
        finally:
            signal.set_wakeup_fd(-1)
            if self.terminal is not None:
                self.terminal.restore()
            if self._given and self.terminal is not None:
                give_foreground(self.terminal.fd, os.getpgrp())

    def _turn(self, sampler: Sampler) -> None:
        if self.kept is not None:
            self._foreground()
            self._listen_to(self.kept)
        wait = sampler.wait(clock())
        if self._floods:
            wait = min(wait, _SOON)
        events = self._ears.poll(wait * 1000)
        if events:
            self._serve([fd for fd, _ in events])
        now = clock()
        if events or self._moved or (self.kept is None and now >= self._look):  # a keeper tells of output
            self._pump()
            self._look = now + _LATER
        sampler.tick(now)

    def _serve(self, events: Sequence[int]) -> None:
        """Signals, the keeper's words and the user's keys."""
        if self.woken in events:
            self._signals()
        if self.kept is None:
            return
        if self.kept.told in events:
            self._hear(self.kept)
        if self.terminal is not None and self.terminal.fd in events:
            self._take_keys(self.terminal)
        if self._keys:
            self._give_keys(self.kept)

    def _pump(self) -> None:
        self.outlets[0].cooked = self._is_cooked()
        moved = [outlet.pump() for outlet in self.outlets]
        self._moved = any(moved)
        self._floods = (self.kept is None and sum(moved) >= _FLOOD) or (
            self._moved and any(outlet.waits for outlet in self.outlets)
        )
        for place, outlet in enumerate(self.outlets):
            if outlet.broken and place not in self._broken_told:
                self._broken_told.add(place)
                if self.poured is not None and place >= len(self.outlets) - len(self.poured.ends):
                    self.poured.lose_reader(place - len(self.outlets) + len(self.poured.ends))

    def _is_cooked(self) -> bool:
        return self.kept is not None and (self.terminal is None or not self.terminal.is_raw)

    def _listen_to(self, kept: Kept) -> None:
        """Register what is to be heard from now on, where it is other than before."""
        wanted = {self.woken: select.POLLIN, kept.told: select.POLLIN}
        if self.terminal is not None and self.terminal.is_raw and len(self._keys) < 4096:
            wanted[self.terminal.fd] = select.POLLIN
        if self._keys:
            wanted[kept.master] = select.POLLOUT
        if wanted == self._heard:
            return
        for fd in self._heard:
            self._ears.unregister(fd)
        for fd, what in wanted.items():
            self._ears.register(fd, what)
        self._heard = wanted

    # --- the terminal ----------------------------------------------------------------------------------------------

    def _foreground(self) -> None:
        """Take the terminal if the shell has given it to us: at once, or later, by a "fg" of which nobody tells."""
        terminal = self.terminal
        if terminal is None or self.kept is None or terminal.is_raw or self.status is not None:
            return
        if not terminal.in_foreground():
            return
        modes = attributes_of(terminal.fd)
        if self._modes_due and modes is not None:  # what was copied at the start were the shell's own
            set_attributes(self.kept.master, modes)
        self._modes_due = False
        terminal.make_raw()
        self._resize()

    def _take_keys(self, terminal: Terminal) -> None:
        try:
            data = os.read(terminal.fd, 1024)
        except OSError:
            data = b""
        if not data:  # the terminal was hung up
            terminal.restore()
            self.terminal = None
        self._keys += data

    def _give_keys(self, kept: Kept) -> None:
        with suppress(OSError):
            poll = select.poll()
            poll.register(kept.master, select.POLLOUT)
            if poll.poll(0):
                del self._keys[: os.write(kept.master, self._keys[:256])]

    # --- signals ---------------------------------------------------------------------------------------------------

    def _signals(self) -> None:
        with suppress(BlockingIOError):
            for number in os.read(self.woken, 512):
                if number == signal.SIGCHLD:
                    self._reap()
                elif number == signal.SIGWINCH:
                    self._resize()
                elif number == signal.SIGCONT:
                    self._foreground()
                elif number in FORWARDED:
                    self._send(number)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _resize(self) -> None:
        if self.kept is not None:
            copy_size(1, self.kept.master)

    def _reap(self) -> None:
        if self.kept is not None:
            return
        with suppress(ChildProcessError):
            while not self.over:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
                if pid == 0:
                    return
                self._changed(status)

    def _hear(self, kept: Kept) -> None:
        """What the keeper tells; its end is that of the run."""
        try:
            data = os.read(kept.told, 1 << 16)
        except BlockingIOError:
            return
        *lines, self._told = (self._told + data).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"status":
                self._changed(int(number), by_keeper=True)
            elif word == b"size":
                self.outlets[0].until = int(number)
        if not data:
            self.over = True

    def _changed(self, status: int, by_keeper: bool = False) -> None:
        if os.WIFCONTINUED(status):
            return
        if os.WIFSTOPPED(status):
            self._stopped(os.WSTOPSIG(status))
            return
        self.status = status
        self.over = self.over or not by_keeper
        if self.terminal is not None:  # what is typed from now on is the shell's
            self.terminal.restore()

    def _stopped(self, number: int) -> None:
        """The command was stopped: so are we, and the shell gets its terminal, until we go on."""
        if number in (signal.SIGTTIN, signal.SIGTTOU) and self._gave_terminal():
            return
        for outlet in self.outlets:
            outlet.pump()
        if self.terminal is not None:
            self.terminal.restore()
        if self._given and self.terminal is not None:
            give_foreground(self.terminal.fd, os.getpgrp())
        os.kill(os.getpid(), signal.SIGSTOP)
        self._go_on()

    def _gave_terminal(self) -> bool:
        """The command wants the terminal: it gets it where it is ours to give."""
        if self.terminal is None or self.kept is not None or self._given or not self.terminal.in_foreground():
            return False
        give_foreground(self.terminal.fd, self.pid)
        self._given = True
        self._send(signal.SIGCONT)
        return True

    def _go_on(self) -> None:
        self._foreground()
        self._resize()
        if self._given and self.terminal is not None:
            self._given = self.terminal.in_foreground()
            if self._given:
                give_foreground(self.terminal.fd, self.pid)
        self._send(signal.SIGCONT)

    def _last_output(self) -> None:
        self.outlets[0].cooked = self._is_cooked()
        if self.poured is not None:
            sizes = self.poured.sizes()
            for outlet, size in zip(self.outlets[::-1], sizes[::-1], strict=False):
                outlet.until = size
        for outlet in self.outlets:
            outlet.drain()
