"""Writes the end of a run as logs that can be diagnosed: what the kernel said, what was full, how it ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from advisor.regex import regex
from advisor.units import KIB, show_bytes
from advisor.watch.record_files import KERNEL, WORDS, write_private
from advisor.watch.recording import Recording, read_record
from advisor.watch.sampler import Sampler
from advisor.watch.system_logs import KernelLog, boot, kills_of_the_node

_PID = regex(r"Killed process (\d+)|[, ]pid=(\d+)")
_GROUP = regex(r"\btask_memcg=([^,]+),")
_SPEAKER = "rl-oom-advisor watch:"


class RunEnd(Struct, frozen=True):
    """How the command ended (waitpid's status), the kernel's log, and its count of kills when the run began."""

    status: int | None
    kernel: KernelLog
    kills_before: int | None


def write_end_logs(folder: Path, sampler: Sampler, ending: RunEnd) -> None:
    """kernel.log and watch.log."""
    _write(folder / KERNEL, list(_kernel_lines(sampler, ending.kernel)))
    write_words(folder, list(_story(sampler, ending)))


def write_words(folder: Path, lines: Sequence[str]) -> None:
    """watch.log alone."""
    _write(folder / WORDS, [f"{_SPEAKER} {line}" for line in lines])


def _write(path: Path, lines: Sequence[str]) -> None:
    with suppress(OSError):  # a full disk costs the words, never the command's own end
        if lines:
            write_private(path, "\n".join([*lines, ""]).encode("utf-8", "replace"))


def _kernel_lines(sampler: Sampler, kernel: KernelLog) -> Iterator[str]:
    """What concerns this run: its processes by number or by their group; else all, where its own group counts kills.
    The last is so in a container, to which neither the numbers nor the names are known that the kernel uses."""
    lines = sorted(kernel.lines(), key=lambda line: "Killed process" not in line)  # the most telling first
    killed = [(line, {int(number) for pair in _PID.findall(line) for number in pair if number}) for line in lines]
    ours = set(sampler.processes.seen)
    for line, pids in killed:  # in a group that the run began in; those below it may be anybody's
        group = _GROUP.search(line)
        if group is not None and group[1] in sampler.before.paths:
            ours |= pids
    is_known = any(pids & ours for _, pids in killed)
    named = False
    for line, pids in killed:
        of_run = bool(pids & ours) if is_known else bool(pids and sampler.oom_kills)
        named = named or of_run
        if of_run or "NVRM" in line:
            yield line
    if sampler.oom_kills and not named:
        yield f"oom_kill {sampler.oom_kills}"


def _story(sampler: Sampler, ending: RunEnd) -> Iterator[str]:
    for column, gauge in enumerate(sampler.gauges):
        if (peak := sampler.peaks.get(column)) is not None and gauge.kind != "store":
            of_all = f" ({peak / gauge.total:.1%})" if gauge.total else ""
            yield f"{gauge.name} peaked at {_bytes(peak)} of {_bytes(gauge.total)}{of_all}"
    now, before = kills_of_the_node(), ending.kills_before
    if now is not None and before is not None and now > before:
        yield kills_words(now - before)
    if not ending.kernel.readable:
        yield "the kernel's log could not be read, so its silence proves nothing"
    full = []  # the host memory that binds, at its highest in the last moments: the dead have let go of theirs already
    for column, gauge in enumerate(sampler.gauges):
        sizes = [value for values in sampler.recent if (value := values[column]) is not None]
        if gauge.kind in ("host", "limit") and gauge.total and sizes:
            full.append((max(sizes), gauge.total))
    yield from fullest_words(full)
    yield ended_words(ending.status, sampler.latest, sampler.progress.phase)


def kills_words(count: int) -> str:
    """What the kernel counted on the whole node."""
    return f"kills for want of memory on this node meanwhile: {count} (/proc/vmstat oom_kill)"


def fullest_words(used: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Of (bytes in use, of how many) what was fullest."""
    for size, total in sorted(used, key=lambda pair: (pair[0] / pair[1], pair))[-1:]:
        yield f"host memory just before the end: {_bytes(size)} of {_bytes(total)} in use ({size / total:.1%})"


def ended_words(status: int | None, seconds: float, phase: str | None) -> str:
    """How the command ended, as waitpid has it."""
    during = f" in phase {phase}" if phase not in (None, "unknown") else ""
    return f"the command {_ended(status)} after {seconds:.0f} s{during}"


def _bytes(count: int | None) -> str:
    """As `show_bytes` has it in English: the words are read again as a log."""
    return "unknown" if count is None else show_bytes(count) if count >= KIB else f"{count} bytes"


def _ended(status: int | None) -> str:
    if status is None:
        return "ended; how is not known"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return f"died with <Signals.{signal.Signals(number).name}: {number}>"
        except ValueError:
            return f"died with signal {number}"
    return f"ended with exit code {os.WEXITSTATUS(status)}"


_LAST = 2.0
"""Seconds before the last reading that count as just before the end."""


def write_lost_end(folder: Path) -> None:
    """Write the words of a record that has no end, where the kernel killed for want of memory since it began.

    Of a run whose watcher was killed with it: a kernel does so to a whole control group (memory.oom.group of version 2,
    which Kubernetes sets for every container since 1.28).

    Where it kills a whole group and counted more than the run had processes, that is proof; else it is decided as of
    every run that was killed, by how full memory was. Raises RecordError, OSError.
    """
    recording, kills = read_record(folder), kills_of_the_node()
    counted = recording.node_kills
    if recording.end is not None or not recording.boot or recording.boot != boot():
        return
    if kills is None or counted is None or kills <= counted:
        return
    alive = sum(bool(one.sizes) and one.sizes[-1] >= 0 for one in recording.of_kind("rss"))
    if recording.grouped and kills - counted > alive:  # a kill of the whole group counts each, and the watcher
        _write(folder / KERNEL, [f"oom_kill {kills - counted}"])
    phase = recording.phases[-1][1] if recording.phases else "unknown"
    ended = ended_words(int(signal.SIGKILL), recording.length, phase)
    write_words(folder, [kills_words(kills - counted), *fullest_words(_at_the_end(recording)), ended])


def _at_the_end(recording: Recording) -> list[tuple[int, int]]:
    """The most of each kind of host memory in the last moments, and its size."""
    found = []
    for one in (*recording.of_kind("host"), *recording.of_kind("limit")):
        near = [size for at, size in zip(one.times, one.sizes, strict=True) if at >= recording.length - _LAST]
        most = max(near, default=one.sizes[-1] if one.sizes else -1)
        if one.gauge.total and most >= 0:
            found.append((most, one.gauge.total))
    return found
