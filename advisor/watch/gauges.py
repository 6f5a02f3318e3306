"""Reads what can run full on the host, as cheaply as it can be had: files stay open. `gpu_gauges` reads the GPUs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field

from advisor.language import mark, say
from advisor.machine.host import MemoryGroup, binding_group, memory_groups
from advisor.units import KIB

SHM = "/dev/shm"  # noqa: S108 - the kernel's name for it


RAM, STORE = mark("host RAM"), mark("Ray object store")
NOBODY, GONE, NAMELESS = mark("another process"), mark("a process that is gone"), mark("a process without a name")
_GROUP = "memory of the group "


def shown_name(name: str) -> str:
    """A gauge or an owner as people read it. Records keep the names as they are, whoever's language it is."""
    if name.startswith(_GROUP):
        return say("memory of the group {folder}", folder=name.removeprefix(_GROUP))
    return say(name) if name in (RAM, STORE, NOBODY, GONE, NAMELESS) else name


class Gauge(Struct, frozen=True):
    """What a column holds. `total` None: no end is known."""

    kind: str
    """host, limit, shm, store, gpu, or of processes rss and gpu_process."""
    name: str
    """"GPU 0 NVIDIA A100", "ray::WorkerDict pid 77"; `shown_name` for people."""
    total: int | None = None
    pid: int | None = None
    gpu: int | None = None
    """Index of the card."""


class KernelFile(Struct):
    """A small file of the kernel's, kept open."""

    path: str
    fd: int = -1

    def read(self, most: int = 4096) -> bytes:
        """What it says now; b"" where it is gone."""
        try:
            if self.fd < 0:
                self.fd = os.open(self.path, os.O_RDONLY)
            return os.pread(self.fd, most, 0)
        except OSError:
            return b""

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def number_after(data: bytes, word: bytes) -> int | None:
    """The number behind a word at the beginning of a line."""
    behind = (b"\n" + data).partition(b"\n" + word)[2][:40].split(None, 1)
    return int(behind[0]) if behind and behind[0].isdigit() else None


class HostGauges(Struct):
    """RAM, the limit that binds the command, /dev/shm. `pid`: whose control group counts."""

    pid: int | None = None
    root: Path = Path("/")
    gauges: list[Gauge] = field(default_factory=list)
    groups: list[MemoryGroup] = field(default_factory=list)
    """The command's control groups, its own first. Given: those it began in, should it be gone already."""
    charged: int = 0
    """So many of them, from its own up to the one whose limit binds: a kill in these is the run's."""
    _events: list[KernelFile] = field(default_factory=list)
    """Their counters."""
    _memory: KernelFile = field(default_factory=lambda: KernelFile(""))
    _usage: KernelFile | None = None
    _stat: KernelFile | None = None
    _cache_word: bytes = b""
    _cache: int = 0
    _total: int = 0
    _space: str = ""

    def __post_init__(self) -> None:
        self._space = str(self.root / "dev/shm")
        self._memory = KernelFile(str(self.root / "proc/meminfo"))
        self._total = (number_after(self._memory.read(), b"MemTotal:") or 0) * KIB
        self.groups = memory_groups(self.root, self._total or None, self.pid) or self.groups
        self._events = [KernelFile(str(group.events)) for group in self.groups]
        chosen = binding_group(self.groups)
        self.gauges = [Gauge("host", RAM, self._total or None)]
        if chosen is not None:
            self.charged = self.groups.index(chosen) + 1
            self._usage, self._stat = KernelFile(str(chosen.usage)), KernelFile(str(chosen.stat))
            self._cache_word = chosen.cache_word.encode() + b" "
            self.gauges.append(Gauge("limit", f"{_GROUP}{chosen.folder}", chosen.limit))
        space = self._shm()
        if space is not None:
            self.gauges.append(Gauge("shm", SHM, space[0]))

    def quick(self) -> int | None:
        """The gauge in column `first` alone, by one file: what the run's memory is charged to before all else. That is
        the usage of its group; where there are no groups, the RAM of the machine."""
        if self._usage is None:
            free = number_after(self._memory.read(256), b"MemAvailable:")
            return None if free is None else max(0, self._total - free * KIB)
        usage = self._usage.read(32).strip()
        return max(0, int(usage) - self._cache) if usage.isdigit() else None

    @property
    def first(self) -> int:
        """The column of `quick`."""
        return 0 if self._usage is None else 1

    def read(self, slow: bool) -> list[int | None]:
        """Bytes in use, one a gauge. `slow`: the file cache is asked for too, not only remembered."""
        free = number_after(self._memory.read(256), b"MemAvailable:")
        values: list[int | None] = [None if free is None else max(0, self._total - free * KIB)]
        if self._stat is not None:
            if slow:
                self._cache = number_after(self._stat.read(8192), self._cache_word) or 0
            values.append(self.quick())
        space = self._shm()
        if len(values) < len(self.gauges):
            values.append(None if space is None else space[1])
        return values

    def kills(self, place: int) -> int | None:
        """Processes that the kernel killed in one of `groups` for want of memory; None where it does not count."""
        return number_after(self._events[place].read(), b"oom_kill ")

    def _shm(self) -> tuple[int, int] | None:
        try:
            found = os.statvfs(self._space)
        except OSError:
            return None
        return found.f_blocks * found.f_frsize, (found.f_blocks - found.f_bfree) * found.f_frsize

    def close(self) -> None:
        for one in (self._memory, self._usage, self._stat, *self._events):
            if one is not None:
                one.close()


class Pace(Struct):
    """How often something may be done, so that it takes no more than a share of the time."""

    every: float
    """Seconds between two at least."""
    share: float = 0.001
    """Of one processor's time, at most."""
    due: float = 0.0
    _cost: float = 0.0
    _costs: tuple[float, float] = (0.0, 0.0)
    """The last two. A single dear one (a first import, patterns that are compiled) says nothing of the next."""
    _wait: float = 0.0
    """Seconds until the next one, at what one costs."""

    def __post_init__(self) -> None:
        self._wait = self.every

    def is_due(self, now: float) -> bool:
        return now >= self.due

    def ran(self, began: float, cost: float) -> None:
        """Done once at `began`, for so many seconds of processor time: when next."""
        usual = sorted((*self._costs, cost))[1]
        self._costs = (self._costs[1], cost)
        self._cost = usual if self._cost == 0 else 0.8 * self._cost + 0.2 * usual
        self._wait = max(self.every, self._cost / self.share)
        self.again(began)

    def again(self, began: float) -> None:
        """Done once at `began`, at what it usually costs: when next."""
        due, soonest = self.due + self._wait, began + self._wait / 2
        self.due = max(soonest, due)

    def run_if_due(self, now: float, action: Callable[[], None]) -> None:
        if self.is_due(now):
            begun = time.thread_time()
            action()
            self.ran(now, time.thread_time() - begun)
