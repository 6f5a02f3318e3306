"""Runs a command as it would run without us and has its record written: `watch`.

The command starts first: all that is needed only for the record is loaded while it runs, msgspec too, which is why what
stands here, in `spawn` and in the relays is made of plain classes.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from advisor.watch.output_relay import Stream, start_output_relay, wire_to
from advisor.watch.record_files import APPEND, ERRORS, OUTPUT, claim
from advisor.watch.request import Beginning, Notify, OpenedRecord, RunningCommand, WatchRequest
from advisor.watch.spawn import NotStartedError, become, catch_signals, ignored_signals, spawn
from advisor.watch.system_logs import KernelLog, KillCounts


class WatchResult(NamedTuple):
    """How the command went. `status` as waitpid gives it; None where only the relay knew and was killed."""

    folder: Path | None
    """None: there is no record."""
    status: int | None
    not_started: str = ""
    code: int = 0
    """The shell's $? where the command could not be started."""

    @property
    def was_sent_away(self) -> bool:
        """A signal ended it that people send, and no shortage of memory does."""
        sent = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)
        return self.status is not None and os.WIFSIGNALED(self.status) and os.WTERMSIG(self.status) in sent


def watch(asked: WatchRequest, tell: Notify) -> WatchResult:
    """Run the command and record it. Where no record can be written, for whatever reason, it takes our place."""
    begun = Beginning.now()
    try:
        folder, samples = claim(asked.folder)
        log = os.open(folder / OUTPUT, APPEND, 0o600)
        errors = None if _is_same_file(1, 2) else os.open(folder / ERRORS, APPEND, 0o600)
        opened = OpenedRecord(samples, KernelLog.open(), KillCounts.now(), begun)
        command = _start(asked, folder, log, errors, _pty(tell) if os.isatty(1) else None)
    except NotStartedError as error:
        return _not_started(asked, error)
    except Exception as fault:  # noqa: BLE001 - no fault of ours keeps the command from running
        return _unrecorded(asked, fault, tell)
    if asked.folder is not None and folder != asked.folder:
        from advisor.hostile import clean_line
        from advisor.language import say

        names = {"folder": clean_line(str(asked.folder)), "other": clean_line(str(folder))}
        tell(say("{folder}: there is a record already; this one is {other}", **names))
    for fd in (log, errors):
        if fd is not None:
            os.close(fd)
    try:
        from advisor.watch.recorder import record_run

        status = record_run(asked, folder, command, opened, tell)
    except Exception as fault:  # noqa: BLE001 - the command runs, and ends as it would without us
        status = _watched_plainly(folder, command, fault, tell)
    return WatchResult(folder, status)


def _watched_plainly(folder: Path, command: RunningCommand, fault: Exception, tell: Notify) -> int | None:
    """Only its output is shown and kept, since the recorder does not even begin."""
    from advisor.language import say
    from advisor.watch.plain_follower import ShownLog, follow_plainly

    tell(say("nothing but the output of the command is recorded ({error})", error=_words_of(fault)))
    wanted = [(OUTPUT, 1), *([(ERRORS, 2)] if command.has_errors_file else [])]
    return follow_plainly(command, [ShownLog(os.open(folder / name, os.O_RDONLY), fd) for name, fd in wanted])


def _words_of(fault: Exception) -> str:
    from advisor.hostile import clean_line
    from advisor.words import os_words

    return os_words(fault) if isinstance(fault, OSError) else clean_line(f"{type(fault).__name__}: {fault}", 200)


def _unrecorded(asked: WatchRequest, fault: Exception, tell: Notify) -> WatchResult:
    """Become the command, since nothing of it can be recorded."""
    from advisor.hostile import clean_line
    from advisor.language import say

    told = {"folder": clean_line(str(asked.folder or Path.cwd())), "error": _words_of(fault)}
    tell(say("{folder}: no record can be written ({error}); the command runs without one", **told))
    try:
        become(asked.argv)
    except OSError as refused:
        return _not_started(asked, refused)


def _not_started(asked: WatchRequest, error: OSError) -> WatchResult:
    from advisor.language import say
    from advisor.words import os_words

    said = say("{command}: {why}", command=asked.argv[0], why=os_words(error))
    return WatchResult(asked.folder, None, said, 127 if error.errno == errno.ENOENT else 126)


def _pty(tell: Notify) -> tuple[int, int] | None:
    """A pseudo-terminal, as `os.openpty` has it; None, once it is said, where this machine has none (left)."""
    try:
        return os.openpty()
    except OSError as error:
        from advisor.language import say

        tell(say("no pseudo-terminal can be had ({error}): the command writes into a pipe", error=_words_of(error)))
        return None


def _start(
    asked: WatchRequest, folder: Path, log: int, errors: int | None, pty_pair: tuple[int, int] | None
) -> RunningCommand:
    """Start it, under that pseudo-terminal where there is one. Raises NotStartedError, OSError."""
    ignored = ignored_signals()
    signals = catch_signals(ignored)
    relayed = [] if errors is None else [Stream(errors, 2)]
    if pty_pair is None:
        output = start_output_relay([Stream(log, 1), *relayed])
        try:
            pid = spawn(asked.argv, wire_to(output.ends), ignored)
        finally:
            output.close_ends()
        return RunningCommand(pid, signals, output=output, has_errors_file=errors is not None)
    from advisor.watch.pty_relay import Wiring, start_pty_relay
    from advisor.watch.spawn import attributes_of

    wiring = Wiring(log, str(folder / OUTPUT), os.isatty(0), None, 1, attributes_of(1))
    if not relayed:
        pty = start_pty_relay(asked.argv, pty_pair, wiring, ignored)
        return RunningCommand(pty.pid, signals, pty)
    output = start_output_relay(relayed)
    try:
        wiring = wiring._replace(stderr=output.ends[0], strange=(output.ask, output.answer))
        pty = start_pty_relay(asked.argv, pty_pair, wiring, ignored)
    finally:
        output.close_ends()
    return RunningCommand(pty.pid, signals, pty, output, has_errors_file=True)


def _is_same_file(one: int, other: int) -> bool:
    try:
        return os.path.sameopenfile(one, other)
    except OSError:
        return True


def exit_like(status: int | None) -> int:
    """End as the command ended: by the same signal, for our parent to see; returns the exit code where it was one."""
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
