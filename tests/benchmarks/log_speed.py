"""How long the whole scan of a long log takes beside ripgrep with the same anchors, in the same run.

    python -m tests.benchmarks.log_speed [MEGABYTES] [ROUNDS]

The log is made anew in a temporary folder. Rounds alternate, the best of each counts; the first round finds the file
in the cache or not as the machine pleases, `cold` asks the system to drop its pages first. Needs `rg`.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def main(megabytes: int = 1000, rounds: int = 5) -> None:
    """Print the best times and the peak memory."""
    if shutil.which("rg") is None:
        sys.exit("this needs rg (ripgrep)")
    with tempfile.TemporaryDirectory() as folder:
        log, anchors = Path(folder, "run.log"), Path(folder, "anchors.txt")
        with log.open("wb") as file:
            file.writelines(made_log(megabytes))
        every = {anchor for entry in load_knowledge().signatures.signatures for anchor in entry.anchors}
        anchors.write_text("\n".join(sorted(every)) + "\n")
        ours, theirs = [*PROGRAM, str(log)], ["rg", "-a", "-F", "-f", str(anchors), str(log)]
        for state in ("cold", "warm"):
            pairs = []
            for _ in range(rounds):
                pair = []
                for command in (ours, theirs):
                    if state == "cold":
                        drop(log)
                    pair.append(timed(command))
                pairs.append(pair)
            (a, a_cpu), (b, b_cpu) = (tuple(map(min, zip(*column, strict=True))) for column in zip(*pairs, strict=True))
            print(f"{state}: scan {a:.2f} s ({a_cpu:.2f} s cpu), rg {b:.2f} s ({b_cpu:.2f} s cpu), ratio {a / b:.2f}")
        peak = "import resource,subprocess,sys;subprocess.run(sys.argv[1:],stdout=-3)"
        told = f"{peak};print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss//1024)"
        found = subprocess.run([sys.executable, "-c", told, *ours], capture_output=True, text=True, check=True)
        print(f"peak memory of the scan: {found.stdout.strip()} MiB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
