"""Holds the command's pseudo-terminal in a process of its own, so that the run outlives a watcher that is killed.

The relay leads the session of the pseudo-terminal, starts the command as its foreground group (whose job control thus
works: its parent is in the same session and another group), writes all that the command prints to the log file, and
sends the watcher events through a pipe, one line each: "pid N", "error ERRNO", "." (there is something new in the log),
"status N" (what waitpid returned: stopped, gone on or ended), "size N" (the last line: so many bytes of the log are the
watcher's to show; what is printed later, by a process that the command left behind, the relay shows itself). A watcher
that vanishes changes nothing for the command: the relay gives the terminal back as it was, says where the output goes,
and goes on writing it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from advisor.language import say
from advisor.watch.output_relay import written
from advisor.watch.spawn import FORWARDED, Attributes, NotStartedError, restore_if_raw, spawn, wakeup_pipe

_CHUNK = 1 << 16
_CATCH_UP = 64
"""Chunks that are relayed at most before a stop or the end is told."""
_LAST_OUTPUT_S = 0.3
"""Seconds after the command's end in which its last output is waited for."""


class PtyRelay(NamedTuple):
    """The watcher's side."""

    pid: int
    """Of the command."""
    relay: int
    """Process id of the relay."""
    master: int
    """The pseudo-terminal: keys are written here, the window's size is set here."""
    events: int
    """The pipe on which the relay sends its events."""


class Wiring(NamedTuple):
    """Which of the command's three streams are the pseudo-terminal; what else they are."""

    log: int
    """Descriptor of the log file, opened for appending."""
    log_name: str
    stdin_is_terminal: bool
    stderr: int | None
    """Another file for standard error; None: the pseudo-terminal."""
    terminal: int
    """The user's terminal."""
    attributes: Attributes | None
    strange: tuple[int, ...] = ()
    """Descriptors of the watcher's that say by their end that it has gone: not to be held here too."""


def start_pty_relay(argv: Sequence[str], pair: tuple[int, int], wiring: Wiring, ignored: frozenset[int]) -> PtyRelay:
    """Start relay and command under a pseudo-terminal, given as `os.openpty` has it. Raises NotStartedError where the
    command cannot be started, OSError where the relay cannot."""
    master, slave = pair
    if wiring.attributes is not None:
        termios.tcsetattr(slave, termios.TCSANOW, wiring.attributes)
    size = fcntl.ioctl(wiring.terminal, termios.TIOCGWINSZ, bytes(8))
    fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
    events, send = os.pipe()
    leads = os.getsid(0) == os.getpid()
    relay = os.fork()
    if relay == 0:
        os.close(events)
        try:
            _PtyRelayProcess(wiring, master, slave, send, leads).run(argv, ignored)
        finally:
            os._exit(0)  # what the parent has to do at its end is not the child's
    os.close(slave)
    os.close(send)
    first = b""
    while not first.endswith(b"\n") and (byte := os.read(events, 1)):
        first += byte
    word, _, value = first.decode().strip().partition(" ")
    if word != "pid":
        os.waitpid(relay, 0)
        if not value:  # the relay itself failed
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        number = int(value)
        raise NotStartedError(number, os.strerror(number), argv[0])
    os.set_blocking(events, False)
    return PtyRelay(int(value), relay, master, events)


class _PtyRelayProcess:
    """The process apart. `ended`: when the command had; `alone`: the watcher is gone; `shows`: it left as it should."""

    def __init__(self, wiring: Wiring, master: int, slave: int, events: int, watcher_leads: bool) -> None:
        self.wiring, self.master, self.slave, self.events = wiring, master, slave, events
        self.watcher_leads = watcher_leads
        """The watcher leads the session of the user's terminal, as the command would have without it."""
        self.pid = 0
        self.ended: float | None = None
        self.alone = self.shows = False
        self._waiting = bytearray()
        """Lines that the pipe had no room for."""

    def run(self, argv: Sequence[str], ignored: frozenset[int]) -> None:
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for number in (*FORWARDED, signal.SIGTTOU, signal.SIGTTIN):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signals = wakeup_pipe()
        try:
            self.pid = spawn(argv, self._wire, ignored)
        except OSError as error:
            os.write(self.events, f"error {error.errno}\n".encode())
            return
        for fd in (self.slave, self.wiring.stderr, *self.wiring.strange):
            if fd is not None:
                os.close(fd)
        for fd in (0, 1, 2):  # of the user's streams only `wiring.terminal` is kept, to give it back if need be
            if fd != self.wiring.terminal:
                os.close(fd)
        os.write(self.events, f"pid {self.pid}\n".encode())
        os.set_blocking(self.events, False)
        self._loop(signals)

    def _wire(self) -> None:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(self.slave, os.getpid())
        if self.wiring.stdin_is_terminal:
            os.dup2(self.slave, 0)
        os.dup2(self.slave, 1)
        os.dup2(self.slave if self.wiring.stderr is None else self.wiring.stderr, 2)

    def _loop(self, signals: int) -> None:
        poll = select.poll()
        poll.register(self.master, select.POLLIN)
        poll.register(signals, select.POLLIN)
        poll.register(self.events, 0)  # only its end is waited for
        while True:
            busy = not self.alone and (self.ended is not None or self._waiting)
            ready = dict(poll.poll(50 if busy else None))
            if self.shows and self.wiring.terminal in ready:
                return  # hung up: so are the processes that the command left behind
            if self.events in ready:
                self._lose_watcher(poll)
            if signals in ready:
                with suppress(BlockingIOError):
                    os.read(signals, 512)
                self._wait()
                ready = dict(poll.poll(0))  # the wait may have read what was there: another read would not return
            if self.master in ready:
                if not self._copy():  # all have closed the terminal; the command may have done so long before its end
                    poll.unregister(self.master)
                    self._wait()
                    while self.ended is None:
                        time.sleep(0.005)
                        self._wait()
                    self._finish(None)
                    return
                if self.ended is not None and self.ended + _LAST_OUTPUT_S > time.monotonic():
                    continue
            self._send(b"")
            if self.ended is not None and self.ended + _LAST_OUTPUT_S <= time.monotonic() and not self.alone:
                self._finish(poll)

    def _copy(self) -> bool:
        """Pass on what the command printed; False where nobody has the other end open any more."""
        try:
            data = os.read(self.master, _CHUNK)
        except OSError:
            return False
        rest = data[written(self.wiring.log, data) :]
        if self.shows:
            written(self.wiring.terminal, data.replace(b"\r\n", b"\n"))
        elif rest and not self.alone:  # on a full disk it is shown at least
            written(self.wiring.terminal, rest)
        if not self.alone:
            self._send(b".\n", droppable=True)
        return bool(data)

    def _wait(self) -> None:
        with suppress(ChildProcessError):
            while self.ended is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
                if pid == 0:
                    return
                self._catch_up()
                self._send(f"status {status}\n".encode())
                if not os.WIFSTOPPED(status) and not os.WIFCONTINUED(status):
                    self.ended = time.monotonic()

    def _catch_up(self) -> None:
        """What was printed before a stop or the end is told of before it: a screen is left before the shell is back."""
        poll = select.poll()
        poll.register(self.master, select.POLLIN)
        for _ in range(_CATCH_UP):
            if not poll.poll(0) or not self._copy():
                return

    def _send(self, line: bytes, droppable: bool = False) -> None:
        if self.alone or (droppable and self._waiting):
            return
        self._waiting += line
        try:
            while self._waiting:
                del self._waiting[: os.write(self.events, self._waiting)]
        except BlockingIOError:
            if droppable:
                self._waiting.clear()
        except OSError:
            self.alone = True

    def _finish(self, poll: select.poll | None) -> None:
        """The command's end has been told; processes that still hold the terminal (in the background) are served."""
        if not self.alone:
            self._send(f"size {os.fstat(self.wiring.log).st_size}\n".encode())
        while self._waiting and not self.alone:
            time.sleep(0.02)
            self._send(b"")
        with suppress(OSError):
            os.close(self.events)
        self.shows = not self.alone
        self.alone = True
        if self.shows and self.watcher_leads:
            with suppress(OSError):  # as the kernel does when the leader of a session ends
                os.killpg(os.tcgetpgrp(self.master), signal.SIGHUP)
        if poll is not None:
            poll.unregister(self.events)
            if self.shows:
                poll.register(self.wiring.terminal, 0)

    def _lose_watcher(self, poll: select.poll) -> None:
        """The watcher was killed: give the user's terminal back, and go on."""
        poll.unregister(self.events)
        self.alone = True
        self._waiting.clear()
        if self.wiring.attributes is not None and self.wiring.stdin_is_terminal:
            restore_if_raw(self.wiring.terminal, self.wiring.attributes)
        if self.ended is None:
            said = say(
                "rl-oom-advisor watch was killed; the run goes on (pid {pid}), its output in {file}",
                pid=self.pid,
                file=self.wiring.log_name,
            )
            with suppress(OSError):
                os.write(self.wiring.terminal, f"\r\n{said}\r\n".encode(errors="replace"))
