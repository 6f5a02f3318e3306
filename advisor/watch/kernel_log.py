"""Reads what the kernel says of memory while a run ends: its log and its counters, where we may read them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from advisor.hostile import clean_line
from advisor.machine.host import MemoryGroup, memory_groups

_RECORD = 8192
_MOST = 200_000
"""Records of the kernel's log that are looked at: one kill on a large node is told with a line for each process."""
_KEPT = 400
"""Lines of it that are kept, the newest."""
_OF_MEMORY = ("oom", "Out of memory", "out of memory", "Killed process", "NVRM", "Xid", "segfault")


class KillCounts(NamedTuple):
    """What the kernel had counted when the command began. Asked before it is started: it may be killed at once."""

    in_groups: Mapping[MemoryGroup, int | None] = {}
    """Kills in each of the control groups that it begins in, its own first; None: not counted."""
    node: int | None = None
    """Kills on the whole node."""
    paths: frozenset[str] = frozenset()
    """Its own groups, as the kernel names them in its log."""

    @classmethod
    def now(cls) -> KillCounts:
        """For a command that this process will start."""
        groups = memory_groups(Path("/"), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        return cls({group: group.oom_kills() for group in groups}, kills_of_the_node(), _group_paths())


def _group_paths() -> frozenset[str]:
    """This process's own control groups, without those that are everybody's."""
    data = ""
    with suppress(OSError):
        data = Path("/proc/self/cgroup").read_text("utf-8", "replace")
    told = (line.split(":", 2) for line in data.splitlines())
    paths = (fields[2] for fields in told if len(fields) == 3 and (not fields[1] or "memory" in fields[1].split(",")))
    return frozenset(path for path in paths if path.strip("/") and ".." not in path)


class KernelLog:
    """/dev/kmsg from now on."""

    def __init__(self, fd: int = -1) -> None:
        self.fd = fd

    @classmethod
    def open(cls) -> KernelLog:
        """At its end; without the right to read it, nothing will be heard of it."""
        try:
            fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(fd, 0, os.SEEK_END)
        except OSError:
            return cls()
        return cls(fd)

    @property
    def readable(self) -> bool:
        """Whether silence means that nothing was said."""
        return self.fd >= 0

    def lines(self) -> list[str]:
        """What of it speaks of memory or of the cards, since the last call. A line is "prefix;text"."""
        said: deque[str] = deque(maxlen=_KEPT)
        for _ in range(_MOST if self.readable else 0):
            try:
                data = os.read(self.fd, _RECORD)
            except BrokenPipeError:  # overwritten meanwhile; the next one is there
                continue
            except OSError:
                break
            text = data.decode("utf-8", "replace").partition(";")[2].split("\n", 1)[0]
            if any(word in text for word in _OF_MEMORY):
                said.append(clean_line(text))
        return list(said)

    def close(self) -> None:
        if self.fd >= 0:
            with suppress(OSError):
                os.close(self.fd)
        self.fd = -1


def kills_of_the_node() -> int | None:
    """The kernel's count of all processes it killed for want of memory, in every group; None where it does not say."""
    with suppress(OSError), open("/proc/vmstat", "rb", 0) as file:
        found = file.read().partition(b"\noom_kill ")[2].split(b"\n", 1)[0]
        return int(found) if found.isdigit() else None
    return None


def boot() -> str:
    """Which start of the kernel this is: its counters begin anew with each. "" where it does not say."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii", "replace").strip()
    return ""
