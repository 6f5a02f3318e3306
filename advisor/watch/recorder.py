"""Records a run from start to end: a command that `watch` started, or a process that `watch --attach` joins."""

from __future__ import annotations

import gc
import os
import shlex
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic as clock
from typing import TYPE_CHECKING, Any

from advisor.hostile import clean_line, readable
from advisor.language import say
from advisor.redact import redact, redact_words
from advisor.watch.end_of_run_log import RunEnd, write_end_logs
from advisor.watch.gauges import HostGauges, shown_name
from advisor.watch.gpu_gauges import GpuGauges
from advisor.watch.log_tail import LogTail
from advisor.watch.plain_follower import ShownLog, follow_plainly
from advisor.watch.process_tree import ProcessTree, born, role_of
from advisor.watch.progress import OutputProgress
from advisor.watch.record import Record
from advisor.watch.record_files import ATTEMPT, COMMAND, ERRORS, OUTPUT, RAY_LOGS, claim, write_private
from advisor.watch.request import Beginning
from advisor.watch.sampler import Sampler
from advisor.watch.spawn import Terminal
from advisor.watch.supervisor import Supervisor
from advisor.watch.system_logs import KernelLog, boot, keep_ends, kills_of_the_node, session_logs

if TYPE_CHECKING:
    from advisor.watch.request import Notify, OpenedRecord, RunningCommand, WatchRequest


def record_run(
    asked: WatchRequest, folder: Path, command: RunningCommand, opened: OpenedRecord, tell: Notify
) -> int | None:
    """Follow a command that was started to its end, and write its record. Returns its status, as waitpid has it."""
    tails = [LogTail.follow(folder / OUTPUT, 1)]
    if command.has_errors_file:
        tails.append(LogTail.follow(folder / ERRORS, 2))
    terminal = Terminal(0) if os.isatty(0) else None
    supervisor = Supervisor(command.pid, command.signals, tails, command.pty, command.output, terminal)
    sampler = _sampler_or_none(asked, folder, supervisor, opened, tell)
    gc.freeze()  # what is there now stays: no collection need look at it
    gc.set_threshold(50_000, 20, 20)
    try:
        supervisor.run(sampler)
        status = supervisor.status
    except Exception as fault:  # noqa: BLE001 - no fault of ours ends the run
        supervisor.fault = supervisor.fault or f"{type(fault).__name__}: {fault}"
        followed = follow_plainly(command, [ShownLog(tail.source, tail.target, tail.shown) for tail in tails])
        status = supervisor.status if supervisor.over else followed
    if supervisor.fault:
        tell(
            say("of the rest of the run only the output is recorded ({error})", error=clean_line(supervisor.fault, 200))
        )
    end: dict[str, Any] = {"unknown": True}
    if status is not None:
        end = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}
    if supervisor.sent is not None:
        end["sent"] = supervisor.sent
    if sampler is None:
        return status
    try:
        _close(sampler, status != 0, end, RunEnd(status, opened.kernel, opened.before.node), opened.begun)
    except Exception as fault:  # noqa: BLE001 - the command's own end counts
        error = clean_line(f"{type(fault).__name__}: {fault}", 200)
        tell(say("the end of the record is missing ({error})", error=error))
    return status


def _close(sampler: Sampler, failed: bool, end: dict[str, Any], how: RunEnd, begun: Beginning) -> None:
    """The last readings, how the run ended, and of one that failed what Ray wrote since it began."""
    folder = sampler.record.folder
    sampler.finish(clock(), failed)
    if (now := kills_of_the_node()) is not None and how.kills_before is not None:
        sampler.record.mark(sampler.latest, node_kills=now - how.kills_before)
    sampler.record.mark(sampler.latest, end=end)
    write_end_logs(folder, sampler, how)
    sampler.close()
    how.kernel.close()
    logs = session_logs(sampler.processes.raylet) if failed else None
    if logs is not None:
        keep_ends(logs, folder / RAY_LOGS, begun.earliest())


def _sampler_or_none(
    asked: WatchRequest, folder: Path, supervisor: Supervisor, opened: OpenedRecord, tell: Notify
) -> Sampler | None:
    try:
        return _sampler(asked, folder, supervisor, opened, tell)
    except Exception as fault:  # noqa: BLE001 - no fault of ours ends the run
        error = clean_line(f"{type(fault).__name__}: {fault}", 200)
        tell(say("nothing but the output of the command is recorded ({error})", error=error))
        return None


def _sampler(asked: WatchRequest, folder: Path, supervisor: Supervisor, opened: OpenedRecord, tell: Notify) -> Sampler:
    def tell_on_terminal(sentence: str) -> None:
        raw = supervisor.terminal is not None and supervisor.terminal.is_raw
        tell(f"\r{sentence}\r" if raw else sentence)

    progress = OutputProgress.by(asked.knowledge)
    about = {
        "began": round(opened.begun.wall, 3),
        "command": [readable(word) for word in redact_words(asked.argv)[:64]],
        "host": os.uname().nodename,
        "watcher": os.getpid(),
        "born": born(os.getpid()),
        "boot": boot(),
        "node_kills": opened.before.node,
        "grouped": any(group.dies_together() for group in opened.before.in_groups),
    }
    record = Record.create(folder, about, opened.samples)
    with suppress(OSError):
        write_private(folder / COMMAND, f"{redact(shlex.join(asked.argv))}\n".encode("utf-8", "replace"))
        if asked.attempt:
            write_private(folder / ATTEMPT, asked.attempt)
    host, processes = HostGauges(supervisor.pid, groups=list(opened.before.in_groups)), ProcessTree(supervisor.pid)
    began, heard = opened.begun.steady, (asked.on_alert, asked.on_steps)
    sampler = Sampler(
        record, host, GpuGauges(), processes, progress, began, asked.alert, tell_on_terminal, opened.before, *heard
    )
    with suppress(OSError):  # without a ring there is still the record
        sampler.open()
    for tail in supervisor.tails:
        tail.on_data = sampler.hear
    return sampler


# --- a process that runs already -----------------------------------------------------------------------------------


def attach(pid: int, wanted: Path | None, alert: float | None, knowledge: tuple[Path, ...], tell: Notify) -> Path:
    """Record until the process ends, or until we are told to stop (SIGINT, SIGTERM), which it does not notice.

    Its output is read where it goes to a file. Returns the record's folder. Raises ProcessLookupError where there is no
    such process, OSError where no record can be written.
    """
    since = born(pid)
    if since is None:
        raise ProcessLookupError(pid)
    begun = Beginning.now()
    about = {"began": round(begun.wall, 3), "command": [role_of(pid)], "host": os.uname().nodename, "attached": pid}
    folder, samples = claim(wanted)
    record = Record.create(folder, about, samples)
    progress = OutputProgress.by(knowledge)
    tails = list(_output_files(pid, folder, progress))
    how = RunEnd(None, KernelLog.open(), kills_of_the_node())
    sampler = Sampler(record, HostGauges(pid), GpuGauges(), ProcessTree(pid), progress, begun.steady, alert, tell)
    sampler.open()
    joined = {"pid": pid, "role": shown_name(role_of(pid))}
    if tails:
        tell(say("joined process {pid} ({role})", **joined))
    else:
        tell(say("joined process {pid} ({role}); its output goes to no file, so phases are not known", **joined))
    ended = _follow(pid, since, sampler, tails)
    _close(sampler, ended, {"unknown": True} if ended else {"left": True}, how, begun)
    return folder


def _follow(pid: int, since: int, sampler: Sampler, tails: list[LogTail]) -> bool:
    """Whether the process ended; False: we were told to stop."""
    stops: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: stops.append(number))
    while not stops:
        sampler.tick(clock())
        for tail in tails:
            tail.pump()
        if born(pid) != since:
            return True
        time.sleep(min(0.1, sampler.wait(clock())) or 0.001)
    return False


def _output_files(pid: int, folder: Path, progress: OutputProgress) -> Iterator[LogTail]:
    """The files that its output goes to, linked into the record."""
    seen: set[tuple[int, int]] = set()
    for number, name in ((1, OUTPUT), (2, ERRORS)):
        with suppress(OSError):
            there = os.stat(f"/proc/{pid}/fd/{number}")
            target = os.readlink(f"/proc/{pid}/fd/{number}")
            if stat.S_ISREG(there.st_mode) and (there.st_dev, there.st_ino) not in seen:
                seen.add((there.st_dev, there.st_ino))
                tail = LogTail.follow(Path(target), None, at_end=True)
                tail.on_data = progress.feed
                yield tail
                (folder / name).symlink_to(target)
