"""Runs a command as it would run without us and has its record written: `watch`.

The command starts first: all that is needed only for the record is loaded while it runs, msgspec too, which is why what
stands here, in `spawn` and in the relays is made of plain classes.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from advisor.watch.kernel_log import KernelLog, KillCounts
from advisor.watch.output_relay import Stream, start_output_relay, wire_to
from advisor.watch.record_files import ERRORS, OUTPUT, SAMPLES
from advisor.watch.request import Notify, OpenedRecord, RunningCommand, WatchRequest
from advisor.watch.spawn import catch_signals, ignored_signals, spawn

if TYPE_CHECKING:
    pass

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND


class WatchResult(NamedTuple):
    """How the command went. `status` as waitpid gives it; None where only the relay knew and was killed."""

    folder: Path
    status: int | None
    not_started: str = ""
    code: int = 0
    """The shell's $? where the command could not be started."""

    @property
    def was_sent_away(self) -> bool:
        """A signal ended it that people send, and no shortage of memory does."""
        sent = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in sent


def default_folder() -> Path:
    """Where the record goes when none is given: a name with the time, here, or in the temporary folder."""
    name = time.strftime("watch-%Y%m%d-%H%M%S")
    if os.access(Path.cwd(), os.W_OK):
        return Path.cwd() / name
    import tempfile

    return Path(tempfile.gettempdir()) / name


def watch(asked: WatchRequest, tell: Notify) -> WatchResult:
    """Run the command and record it. Raises OSError where no record can be written; the command is not started then."""
    begun = time.time()
    asked.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    samples = os.open(asked.folder / SAMPLES, _APPEND, 0o600)
    log = os.open(asked.folder / OUTPUT, _APPEND, 0o600)
    errors = None if _is_same_file(1, 2) else os.open(asked.folder / ERRORS, _APPEND, 0o600)
    opened = OpenedRecord(samples, KernelLog.open(), KillCounts.now(), begun)
    try:
        command = _start(asked, log, errors)
    except OSError as error:
        from advisor.language import say
        from advisor.words import os_words

        said = say("{command}: {why}", command=asked.argv[0], why=os_words(error))
        return WatchResult(asked.folder, None, said, 127 if isinstance(error, FileNotFoundError) else 126)
    for fd in (log, errors):
        if fd is not None:
            os.close(fd)
    from advisor.watch.recorder import record_run

    return WatchResult(asked.folder, record_run(asked, command, opened, tell))


def _start(asked: WatchRequest, log: int, errors: int | None) -> RunningCommand:
    """Start it, under a pseudo-terminal where standard output is a terminal. Raises OSError."""
    ignored = ignored_signals()
    signals = catch_signals(ignored)
    relayed = [] if errors is None else [Stream(errors, 2)]
    if not os.isatty(1):
        output = start_output_relay([Stream(log, 1), *relayed])
        try:
            pid = spawn(asked.argv, wire_to(output.ends), ignored)
        finally:
            output.close_ends()
        return RunningCommand(pid, signals, output=output, has_errors_file=errors is not None)
    from advisor.watch.pty_relay import Wiring, start_pty_relay
    from advisor.watch.terminal import attributes_of

    wiring = Wiring(log, str(asked.folder / OUTPUT), os.isatty(0), None, 1, attributes_of(1))
    if not relayed:
        pty = start_pty_relay(asked.argv, wiring, ignored)
        return RunningCommand(pty.pid, signals, pty)
    output = start_output_relay(relayed)
    try:
        wiring = wiring._replace(stderr=output.ends[0], strange=(output.ask, output.answer))
        pty = start_pty_relay(asked.argv, wiring, ignored)
    finally:
        output.close_ends()
    return RunningCommand(pty.pid, signals, pty, output, has_errors_file=True)


def _is_same_file(one: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(one, other)
    except OSError:
        return True


def exit_like(status: int | None) -> int:
    """End as the command ended: by the same signal, so that our parent sees what it would have seen.

    Returns the exit code where it was one.
    """
    if status is None:
        return 129  # its terminal was hung up under it
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    import resource

    sys.stdout.flush()
    sys.stderr.flush()
    number = os.WTERMSIG(status)
    with suppress(OSError, ValueError):  # one core dump is enough
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
