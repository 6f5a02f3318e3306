"""What `watch` costs the command that it watches, by the kernel's own accounts, in pairs.

    python -m tests.benchmarks.watch_cost [--seconds N] [--pairs N] [--one-processor] [--peer NAME=COMMAND]...

The child computes until it has had N seconds of processor time of its own and prints a step each second. Whatever the
whole command's wall time is longer than that is what the child waited for: to be started, for its turn on a processor,
for its end to be noticed. That is taken alone and watched, in turns, and the difference is the overhead. Fixed work
would do for a quiet machine; on a shared one the same work takes 30 % more or less from one minute to the next, which
a unit of processor time leaves out. What this cannot see is a child that computes slower beside the watcher (caches):
the work done in a second of processor time is printed, with its spread.

`--one-processor` pins the child and its watcher to the same one: everything the watcher does is then taken from the
child. A peer's command has {command} where the child's goes (`--peer 'psrecord=psrecord --interval 0.1 {command}'`).
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.units import MIB

ALONE, OURS = "alone", "rl-oom-advisor watch"
CHILD = """\
import sys, time
seconds, told = float(sys.argv[1]), open(sys.argv[2], "w")
x = rounds = shown = 0
while (used := time.process_time()) < seconds:
    for i in range(100_000):
        x = (x * 31 + i) & 0xFFFFFFFF
    rounds += 1
    if used >= shown:
        print(f"step:{shown} - actor/pg_loss:0.1", flush=True)
        shown += 1
told.write(f"{open('/proc/self/schedstat').read()} {rounds}")
"""


@dataclass(frozen=True)
class Taken:
    """One run. Seconds."""

    wall: float
    computed: float
    """Processor time of the child."""
    queued: float
    """What the child waited for its turn."""
    rounds: int
    others: float
    """Processor time of everything that was started for it."""
    largest: int
    """Bytes of the largest of these processes in memory, the child too."""

    @property
    def lost(self) -> float:
        """Share of the child's time that was added to it."""
        return (self.wall - self.computed) / self.computed


def take(command: Sequence[str], told: Path) -> Taken:
    """Run it to its end."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, (command, child.returncode)
    ran, queued, _, rounds = map(int, told.read_text().split())
    computed = ran / 1e9
    others = used.ru_utime + used.ru_stime - computed
    return Taken(wall, computed, queued / 1e9, rounds, others, used.ru_maxrss * 1024)


def commands(seconds: float, told: Path, folder: Path, peers: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """How each of them runs the child."""
    child = [sys.executable, "-S", "-c", CHILD, str(seconds), str(told)]
    ours = [sys.executable, "-m", "advisor", "watch", "-o", str(folder), "--", *child]
    found = {ALONE: child, OURS: ours}
    for name, words in peers:
        found[name] = [
            part for word in shlex.split(words) for part in ([shlex.join(child)] if word == "{command}" else [word])
        ]
    return found


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--one-processor", action="store_true")
    arguments.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    asked = arguments.parse_args()
    if asked.one_processor:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    peers = [(name, words) for name, _, words in (peer.partition("=") for peer in asked.peer)]
    found: dict[str, list[Taken]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(asked.pairs):
            told, record = Path(folder, "told"), Path(folder, f"record-{turn}")
            order = list(commands(asked.seconds, told, record, peers).items())
            for name, command in order if turn % 2 == 0 else order[::-1]:
                found.setdefault(name, []).append(take(command, told))
                _show(name, found[name][-1])
    _compare(found)


def _show(name: str, one: Taken) -> None:
    print(
        f"{name:22s} wall {one.wall:8.3f} s  child {one.computed:8.3f} s  queued {one.queued:6.3f} s  "
        f"others {one.others:6.3f} s  lost {one.lost:7.3%}  work/s {one.rounds / one.computed:6.1f}  "
        f"{one.largest / MIB:4.0f} MiB",
        flush=True,
    )


def _compare(found: dict[str, list[Taken]]) -> None:
    alone = found[ALONE]
    pace = statistics.median(one.rounds / one.computed for one in alone)
    for name, taken in found.items():
        if name == ALONE:
            continue
        over = [one.lost - before.lost for one, before in zip(taken, alone, strict=True)]
        paces = [one.rounds / one.computed / pace - 1 for one in taken]
        print(
            f"{name}: wall overhead median {statistics.median(over):.3%} "
            f"({min(over):.3%} to {max(over):.3%} in {len(over)} pairs); "
            f"processor time {statistics.median(one.others for one in taken):.3f} s; "
            f"child's pace {statistics.median(paces):+.1%} ({min(paces):+.1%} to {max(paces):+.1%})"
        )


if __name__ == "__main__":
    main()
