"""Runs a command in a control group of its own with a limit of memory, so that the kernel kills what passes it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

_ROOT = Path("/sys/fs/cgroup")
_LIMITS = {
    _ROOT: ("memory.max", "memory.peak"),
    _ROOT / "memory": ("memory.limit_in_bytes", "memory.max_usage_in_bytes"),
}
"""Where groups are made under version 2 and version 1, the file of the limit and that of the most that was in use."""


class MemoryGroup(Struct, frozen=True):
    """One group while it is there."""

    folder: Path
    version: int
    peak_file: str

    def run(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """The command and all that it starts, inside the group; its output and error streams as texts."""

        def join() -> None:
            (self.folder / "cgroup.procs").write_text(str(os.getpid()))

        return subprocess.run(
            [*argv], cwd=cwd, env={**env}, preexec_fn=join, capture_output=True, text=True, check=False
        )

    @property
    def peak(self) -> int:
        """Bytes."""
        return int((self.folder / self.peak_file).read_text())


@contextmanager
def memory_group(limit: int) -> Iterator[MemoryGroup]:
    """A group that may hold `limit` bytes. Raises OSError where this machine lets nobody make one."""
    version = 2 if "memory" in _words(_ROOT / "cgroup.controllers") else 1
    root = _ROOT if version == 2 else _ROOT / "memory"
    limit_file, peak_file = _LIMITS[root]
    folder = root / f"rl-oom-advisor-{os.getpid()}-{time.monotonic_ns()}"
    if version == 2 and "memory" not in _words(root / "cgroup.subtree_control"):
        (root / "cgroup.subtree_control").write_text("+memory")
    folder.mkdir()
    try:
        (folder / limit_file).write_text(str(limit))
        with suppress(OSError):  # without swap, or without its accounting, there is no such file
            (folder / ("memory.swap.max" if version == 2 else "memory.memsw.limit_in_bytes")).write_text(
                "0" if version == 2 else str(limit)
            )
        yield MemoryGroup(folder, version, peak_file)
    finally:
        _remove(folder)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _remove(folder: Path) -> None:
    """End what is left in it, and remove it."""
    for _ in range(50):
        for pid in _words(folder / "cgroup.procs"):
            with suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        with suppress(OSError):
            folder.rmdir()
            return
        time.sleep(0.1)
