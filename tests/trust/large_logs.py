"""Scans logs of up to 50 GB that lie on no disk, and sees that memory stays what it was at the beginning.

    python -m tests.trust.large_logs [GB...]    (1 10 50 by default, a quarter of an hour)

The logs come through a pipe: steps of a run, failures over and over, and lines of which no two are alike. Prints the
most memory that each took, the time, and whether the failure at the end was found. Also a watched command's output, of
which the disk takes a hundred megabytes.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = {**os.environ, "PYTHONPATH": str(ROOT)}
BLOCKS, BLOCK = 16, 4 << 20
GB = 10**9
END = (
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 39.38 GiB "
    b"of which 1.10 GiB is free. Including non-PyTorch memory, this process has 38.27 GiB memory in use.\n"
)
GROWTH = 1.10
"""How many times the memory of the smallest log the largest may take."""


def steps(chance: random.Random) -> str:
    """A step of a run."""
    return (
        f"(main_task pid=7) step:{chance.randrange(10**6)} - actor/loss:{chance.random():.6f} - time:{chance.random()}"
    )


def failures(chance: random.Random) -> str:
    """A failure with its traceback, caught and tried again."""
    return (
        f'Traceback (most recent call last):\n  File "/x/worker_{chance.randrange(99)}.py", line 3, in step\n    f()\n'
        f"RuntimeError: NCCL error {chance.randrange(10**9)}\nray.exceptions.RayTaskError: retried {chance.random()}"
    )


def strange(chance: random.Random) -> str:
    """A line like no other."""
    return "".join(chance.choices("abcdefghij=:/.- 0123456789[](){}", k=chance.randrange(20, 300)))


KINDS = {"steps": steps, "failures": failures, "strange": strange}
SHARE = {"steps": 1.0, "failures": 0.01, "strange": 0.2}
"""Of the sizes, for what takes longer a byte: every failure is looked at."""


class Memory:
    """The most that a process held, by the kernel's own count since it began."""

    def __init__(self, pid: int) -> None:
        self.pid, self.mib = pid, 0.0

    def look(self) -> None:
        """Ask again, while it lives."""
        with suppress(OSError):
            found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
            self.mib = max(self.mib, int(found[1]) / 1024) if found else self.mib


def blocks_of(kind: str) -> list[bytes]:
    """Some megabytes of it, all different."""
    chance, made = random.Random(kind), []
    for _ in range(BLOCKS):
        text, size = [], 0
        while size < BLOCK:
            line = KINDS[kind](chance) + "\n"
            text.append(line)
            size += len(line)
        made.append("".join(text).encode())
    return made


def poured(blocks: list[bytes], size: int) -> Iterator[bytes]:
    """So many bytes of it."""
    left = size
    for block in cycle(blocks):
        if left <= 0:
            return
        left -= len(block)
        yield block


def scanned(blocks: list[bytes], size: int) -> tuple[float, float, str]:
    """(MiB at most, seconds, verdict) of `scan -`."""
    words = [sys.executable, "-m", "advisor", "scan", "-", "--format", "json"]
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(words, env=HERE, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL)
        assert process.stdin is not None
        memory = Memory(process.pid)
        with process.stdin as pipe:
            for block in poured(blocks, size):
                pipe.write(block)
                memory.look()
            pipe.write(END)
        ended(process, memory)
        out.seek(0)
        verdict = json.load(out)["crash"]["verdict"]
    return memory.mib, time.monotonic() - begun, verdict


def ended(process: subprocess.Popen[bytes], memory: Memory) -> None:
    """Wait for the end, looking at the memory."""
    while process.poll() is None:
        memory.look()
        time.sleep(0.02)


def watched(size: int) -> tuple[float, float]:
    """(MiB at most, seconds) of watching a command that prints so much, where the log may take a hundred megabytes."""
    code = f"import sys\nb = {steps(random.Random(1)) + chr(10)!r}.encode() * 40000\nn = {size}\n"
    code += "while n > 0:\n    sys.stdout.buffer.write(b)\n    n -= len(b)\n"

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100 << 20, 100 << 20))

    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "advisor", "watch", "-o", "record", "--", sys.executable, "-c", code]
        process = subprocess.Popen(
            words, cwd=folder, env=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=small_files
        )
        memory = Memory(process.pid)
        ended(process, memory)
    return memory.mib, time.monotonic() - begun


def main(sizes: list[float]) -> int:
    """All kinds in all sizes; how many grew, or lost the failure at their end."""
    broken = 0
    for kind in KINDS:
        blocks, most = blocks_of(kind), []
        for size in sizes:
            size *= SHARE[kind]
            memory, seconds, verdict = scanned(blocks, int(size * GB))
            most.append(memory)
            broken += verdict != "oom"
            print(f"{kind}, {size:g} GB: {memory:.0f} MiB, {seconds:.0f} s, verdict {verdict}", flush=True)
        broken += most[-1] > GROWTH * most[0]
    most = []
    for size in sizes[:2]:
        memory, seconds = watched(int(size * GB))
        most.append(memory)
        print(f"watched, {size:g} GB: {memory:.0f} MiB, {seconds:.0f} s", flush=True)
    broken += most[-1] > GROWTH * most[0]
    print(f"did not hold: {broken}")
    return broken


if __name__ == "__main__":
    sys.exit(main([float(word) for word in sys.argv[1:]] or [1, 10, 50]) > 0)
