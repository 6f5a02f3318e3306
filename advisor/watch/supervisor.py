"""Supervises one watched run from start to end: signals, stops and the exit code as without us, readings in between."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress
from time import monotonic as clock
from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.watch.log_tail import LogTail
from advisor.watch.spawn import FORWARDED, Terminal, attributes_of, copy_size, give_foreground, set_attributes

if TYPE_CHECKING:
    from advisor.watch.output_relay import OutputRelay
    from advisor.watch.pty_relay import PtyRelay
    from advisor.watch.sampler import Sampler

_SOON, _LATER = 0.03, 0.15
"""Seconds until the next look at a file that nobody tells of: in a flood, and (at the next reading) in silence."""
_FLOOD = 4096
"""Bytes between two looks from which on the next one is soon."""
_INTERRUPT, _QUIT = b"\x03", b"\x1c"
"""Ctrl-C and Ctrl-\\ as a terminal sends them."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_MOST_KEYS = 4096
"""Bytes that were typed and the command has not read, from which on no more are taken."""


class Supervisor(Struct):
    """The command while it runs. `status` is what waitpid returned, None: never known."""

    pid: int
    signals: int
    """Descriptor from which our signals are read, a byte each."""
    tails: list[LogTail]
    pty: PtyRelay | None = None
    output: OutputRelay | None = None
    terminal: Terminal | None = None
    """The user's, where standard input is one."""
    status: int | None = None
    over: bool = False
    sent: int | None = None
    """The last signal to end that a person sent through us."""
    fault: str = ""
    """What of ours went wrong on the way."""
    _given: bool = False
    """The terminal was given to the command's group."""
    _modes_due: bool = False
    """Begun in the background: the command's terminal has not got the modes of the user's yet."""
    _event: bytes = b""
    """The beginning of a line of the relay's."""
    _keys: bytearray = field(default_factory=bytearray)
    _lost: set[int] = field(default_factory=set)
    """Places of the tails whose reader has gone, as the command was told."""
    _moved: bool = True
    """There was output at the last look."""
    _floods: bool = False
    """There was much, or a reader that is slow."""
    _look: float = 0.0
    """When to look again."""
    _poll: select.poll = field(default_factory=select.poll)
    _polled: dict[int, int] = field(default_factory=dict)
    """What `_poll` listens to: descriptor → events."""

    # --- the loop --------------------------------------------------------------------------------------------------

    def run(self, sampler: Sampler | None) -> None:
        """Until the command has ended and all its output is shown. A fault of the sampler's costs readings only."""
        self._polled = {self.signals: select.POLLIN}
        self._poll.register(self.signals, select.POLLIN)
        try:
            self._take_foreground()
            self._modes_due = self.terminal is not None and not self.terminal.is_raw
            self._reap()
            try:
                self._follow(sampler)
            except Exception as fault:
                if sampler is None:
                    raise
                self.fault = f"{type(fault).__name__}: {fault}"
                self._follow(None)
            self._show_rest()
        finally:
            signal.set_wakeup_fd(-1)
            self._give_back_terminal()

    def _follow(self, sampler: Sampler | None) -> None:
        while not self.over:
            self._turn(sampler)

    def _turn(self, sampler: Sampler | None) -> None:
        if self.pty is not None:
            self._take_foreground()
            self._listen_to(self.pty)
        wait = _LATER if sampler is None else sampler.wait(clock())
        ready = {fd for fd, _ in self._poll.poll(1000 * (min(wait, _SOON) if self._floods else wait))}
        if self.signals in ready:
            self._handle_signals()
        if self.pty is not None and ready:
            if self.pty.events in ready:
                self._handle_events(self.pty)
            if self.terminal is not None and self.terminal.fd in ready:
                self._take_keys(self.terminal)
            if self._keys:
                self._give_keys(self.pty)
        now = clock()
        if ready or self._moved or (self.pty is None and now >= self._look):  # the relay of a pseudo-terminal tells
            self._pump()
            self._look = now + _LATER
        if sampler is not None:
            sampler.tick(now)

    def _pump(self) -> None:
        self.tails[0].cooked = self._is_cooked()
        moved = [tail.pump() for tail in self.tails]
        self._moved = any(moved)
        is_slow = self._moved and any(tail.waits for tail in self.tails)
        self._floods = is_slow or (self.pty is None and sum(moved) >= _FLOOD)
        if self.output is None:
            return
        relayed = len(self.tails) - len(self.output.ends)
        for place, tail in enumerate(self.tails):
            if tail.broken and place not in self._lost:
                self._lost.add(place)
                if place >= relayed:
                    self.output.lose_reader(place - relayed)

    def _is_cooked(self) -> bool:
        return self.pty is not None and (self.terminal is None or not self.terminal.is_raw)

    def _listen_to(self, pty: PtyRelay) -> None:
        """Register what is to be heard from now on, where it is other than before."""
        wanted = {self.signals: select.POLLIN, pty.events: select.POLLIN}
        if self.terminal is not None and self.terminal.is_raw and len(self._keys) < _MOST_KEYS:
            wanted[self.terminal.fd] = select.POLLIN
        if self._keys:
            wanted[pty.master] = select.POLLOUT
        if wanted == self._polled:
            return
        for fd in self._polled:
            self._poll.unregister(fd)
        for fd, what in wanted.items():
            self._poll.register(fd, what)
        self._polled = wanted

    def _show_rest(self) -> None:
        self.tails[0].cooked = self._is_cooked()
        sizes = [] if self.output is None else self.output.sizes()
        for tail, size in zip(self.tails[::-1], sizes[::-1], strict=False):
            tail.until = size
        for tail in self.tails:
            tail.drain()

    # --- the terminal ----------------------------------------------------------------------------------------------

    def _take_foreground(self) -> None:
        """Take the terminal if the shell has given it to us: at once, or later, by a "fg" of which nobody tells."""
        terminal = self.terminal
        if terminal is None or self.pty is None or terminal.is_raw or self.status is not None:
            return
        if not terminal.in_foreground():
            return
        modes = attributes_of(terminal.fd)
        if self._modes_due and modes is not None:  # what was copied at the start were the shell's own
            set_attributes(self.pty.master, modes)
        self._modes_due = False
        terminal.make_raw()
        self._resize()

    def _give_back_terminal(self) -> None:
        if self.terminal is not None:
            self.terminal.restore()
            if self._given:
                give_foreground(self.terminal.fd, os.getpgrp())

    def _take_keys(self, terminal: Terminal) -> None:
        data = b""
        with suppress(OSError):
            data = os.read(terminal.fd, 1024)
        if not data:  # the terminal was hung up
            terminal.restore()
            self.terminal = None
        if _INTERRUPT in data or _QUIT in data:
            self.sent = signal.SIGINT if _INTERRUPT in data else signal.SIGQUIT
        self._keys += data

    def _give_keys(self, pty: PtyRelay) -> None:
        with suppress(OSError):
            poll = select.poll()
            poll.register(pty.master, select.POLLOUT)
            if poll.poll(0):
                del self._keys[: os.write(pty.master, self._keys[:256])]

    def _resize(self) -> None:
        if self.pty is not None:
            copy_size(1, self.pty.master)

    # --- signals ---------------------------------------------------------------------------------------------------

    def _handle_signals(self) -> None:
        with suppress(BlockingIOError):
            for number in os.read(self.signals, 512):
                if number == signal.SIGCHLD:
                    self._reap()
                elif number == signal.SIGWINCH:
                    self._resize()
                elif number == signal.SIGCONT:
                    self._take_foreground()
                elif number in FORWARDED:
                    self.sent = number if number in _ENDING else self.sent
                    self._send(number)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while self.pty is None and not self.over:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
                if pid == 0:
                    return
                self._change(status)

    def _handle_events(self, pty: PtyRelay) -> None:
        """What the relay of the pseudo-terminal tells; its end is that of the run."""
        try:
            data = os.read(pty.events, 1 << 16)
        except BlockingIOError:
            return
        *lines, self._event = (self._event + data).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"status":
                self._change(int(number), by_relay=True)
            elif word == b"size":
                self.tails[0].until = int(number)
        self.over = self.over or not data

    def _change(self, status: int, by_relay: bool = False) -> None:
        if os.WIFSTOPPED(status):
            self._stop(os.WSTOPSIG(status))
        elif not os.WIFCONTINUED(status):
            self.status = status
            self.over = self.over or not by_relay
            if self.terminal is not None:  # what is typed from now on is the shell's
                self.terminal.restore()

    def _stop(self, number: int) -> None:
        """The command was stopped: so are we, and the shell gets its terminal, until we go on."""
        wants_terminal = number in (signal.SIGTTIN, signal.SIGTTOU) and self.pty is None and not self._given
        if wants_terminal and self.terminal is not None and self.terminal.in_foreground():  # it is ours to give
            give_foreground(self.terminal.fd, self.pid)
            self._given = True
            self._send(signal.SIGCONT)
            return
        for tail in self.tails:
            tail.pump()
        self._give_back_terminal()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take_foreground()
        self._resize()
        if self._given and self.terminal is not None:
            self._given = self.terminal.in_foreground()
            if self._given:
                give_foreground(self.terminal.fd, self.pid)
        self._send(signal.SIGCONT)
