"""Starts a command as a shell would: in a process group of its own, with the signals it would have had.

Plain functions of the standard library: the command starts before msgspec is loaded.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import struct
import termios
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

FORWARDED = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP")
    if hasattr(signal, name)
)
"""Signals that the watcher passes on."""
_TOUCHED = (*FORWARDED, signal.SIGTTOU, signal.SIGTTIN, signal.SIGPIPE, signal.SIGCONT, signal.SIGWINCH, signal.SIGCHLD)
_PYTHONS_OWN = (signal.SIGPIPE, getattr(signal, "SIGXFSZ", signal.SIGPIPE))
"""Python ignores these for itself; the process that started it did not."""


def ignored_signals() -> frozenset[int]:
    """Signals that were ignored when we were started (nohup), and stay so for the command."""
    return frozenset(
        number for number in _TOUCHED if number not in _PYTHONS_OWN and signal.getsignal(number) == signal.SIG_IGN
    )


def wakeup_pipe() -> int:
    """A pipe into which every signal that is caught writes its number: its end to read."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def catch_signals(ignored: Iterable[int]) -> int:
    """From now on signals wait in a `wakeup_pipe`. What is ignored stays so."""
    read = wakeup_pipe()
    for number in {*FORWARDED, signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT} - set(ignored):
        signal.signal(number, lambda *_: None)
    return read


def release_signals() -> None:
    """What `catch_signals` caught does again what it does in any program; what is ignored stays so."""
    for number in {*FORWARDED, signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT} - ignored_signals():
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)


class NotStartedError(OSError):
    """The system refuses to start the command itself, as it would without us."""


def spawn(argv: Sequence[str], wire: Callable[[], None], ignored: Iterable[int] = ()) -> int:
    """Start `argv` in its own process group; `wire` runs in the new process and sets up its descriptors. Returns the
    process id. Raises NotStartedError where it cannot be started, OSError where no process can be."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(argv, wire, frozenset(ignored), write)
    os.close(write)
    with suppress(OSError):  # whichever of the two comes first
        os.setpgid(pid, pid)
    error = os.read(read, 16)
    os.close(read)
    if error:
        os.waitpid(pid, 0)
        raise NotStartedError(int(error), os.strerror(int(error)), argv[0])
    return pid


def _become(argv: Sequence[str], wire: Callable[[], None], ignored: frozenset[int], errors: int) -> None:
    """The new process: never returns. (`os._exit`: what Python does at its end is the parent's to do.)"""
    try:
        os.setpgid(0, 0)
        wire()
        become(argv, ignored)
    except OSError as error:
        os.write(errors, str(error.errno or errno.EIO).encode())
    finally:
        os._exit(127)


def become(argv: Sequence[str], ignored: Iterable[int] | None = None) -> NoReturn:
    """Put the command in the place of this process, with the signals it would have had. Raises OSError. `ignored`:
    signals that it ignores; None: those that we were started with."""
    kept = ignored_signals() if ignored is None else frozenset(ignored)
    signal.set_wakeup_fd(-1)
    for number in {*_TOUCHED, *_PYTHONS_OWN}:
        signal.signal(number, signal.SIG_IGN if number in kept else signal.SIG_DFL)
    _execute(list(argv))


def _execute(argv: list[str]) -> NoReturn:
    """Execute as a shell does: a script without an interpreter line is run by a shell. Raises OSError."""
    if not argv[0]:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - it is what `watch` is for
    except OSError as error:
        file = shutil.which(argv[0])
        if error.errno != errno.ENOEXEC or file is None:
            raise
        shell = "bash" if os.path.basename(os.environ.get("SHELL", "")) == "bash" else "sh"
        os.execvp(shell, [shell, file, *argv[1:]])  # noqa: S606 - likewise


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
