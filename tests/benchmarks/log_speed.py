"""How long the whole scan of a long log takes beside ripgrep with the same anchors, in the same run.

    python -m tests.benchmarks.log_speed [MEGABYTES] [ROUNDS]

The log is made anew in a temporary folder. The two take turns and the best of each counts: whatever else the machine
does disturbs both. Before each cold turn the system is asked to drop the pages of the log. The memory is that of all
processes of the scan together, looked at every few milliseconds. Needs `rg`.
"""

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from advisor.knowledge import load_knowledge

from .made_log import made_log

PROGRAM = [sys.executable, "-c", "import sys; from advisor.cli import main; sys.exit(main())", "scan"]


def timed(command: list[str]) -> tuple[float, float]:
    """(seconds on the clock, seconds of processor time) of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        subprocess.run(command, stdout=out, check=False)
    clock = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def drop(path: Path) -> None:
    """Ask the system to forget the pages of the file."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(handle)


def peak_memory(command: list[str]) -> tuple[int, int]:
    """(resident bytes of the command and its children at their most, processes at their most)

    What a single process had at its most is read from the system, not from the looks taken at it. (What `wait4` tells
    counts this program, too, from which the other was started.)
    """
    most = processes = 0
    with tempfile.TemporaryFile() as out:
        running = subprocess.Popen(command, stdout=out)
        first = psutil.Process(running.pid)
        while not (ended := os.wait4(running.pid, os.WNOHANG))[0]:
            with contextlib.suppress(psutil.Error):
                family = [first, *first.children(recursive=True)]
                most = max(most, sum(one.memory_info().rss for one in family), high_water(running.pid))
                processes = max(processes, len(family))
            time.sleep(0.004)
    running.returncode = ended[1]
    return most, processes


def high_water(pid: int) -> int:
    """Resident bytes of a process at their most since it was started; 0 where it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def best(state: str, log: Path, commands: list[list[str]], rounds: int) -> list[tuple[float, float]]:
    """The best (seconds, processor seconds) of each command."""
    turns: list[list[tuple[float, float]]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, times in zip(commands, turns, strict=True):
            if state == "cold":
                drop(log)
            times.append(timed(command))
    return [(min(clock for clock, _ in times), min(cpu for _, cpu in times)) for times in turns]


def main(megabytes: int = 1000, rounds: int = 5) -> None:
    """Print the best times, their ratios and the peak memory."""
    if shutil.which("rg") is None:
        sys.exit("this needs rg (ripgrep)")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program does not compile itself each time
    with tempfile.TemporaryDirectory() as folder:
        log, anchors = Path(folder, "run.log"), Path(folder, "anchors.txt")
        with log.open("wb") as file:
            file.writelines(made_log(megabytes))
        every = {anchor for entry in load_knowledge().signatures.signatures for anchor in entry.anchors}
        anchors.write_text("\n".join(sorted(every)) + "\n")
        ours, theirs = [*PROGRAM, str(log)], ["rg", "-a", "-F", "-f", str(anchors), str(log)]
        timed([*PROGRAM, str(anchors)])  # what is compiled at the first start of all
        memory, processes = peak_memory(ours)
        print(f"{log.stat().st_size / 1e6:.0f} MB, {len(every)} anchors")
        for state in ("warm", "cold"):
            (a, a_cpu), (b, b_cpu) = best(state, log, [ours, theirs], rounds)
            print(
                f"{state}: scan {a:.2f} s ({a_cpu:.2f} s of processors), rg {b:.2f} s ({b_cpu:.2f} s of processors), "
                f"ratio {a / b:.2f} ({a_cpu / b_cpu:.2f} of processors)"
            )
        print(f"peak memory of the scan: {memory / 2**20:.1f} MiB in {processes} process{'es' * (processes > 1)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
