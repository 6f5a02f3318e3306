"""Finds the memory limit that binds a process, in cgroup v1, v2 and hybrid trees.

Path of the process = mount point + (path in /proc/self/cgroup minus the mount's root); without a cgroup namespace that
folder may not exist in the container, and the mount point is then the container's own group. Limits may sit on any
ancestor up to the mount point, and the one with the least room left binds; what lies above is not visible from here.
Source: kernel Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst, proc(5) mountinfo.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from advisor.machine.inventory import Host
from advisor.regex import regex
from advisor.units import KIB, show_bytes


class _Version(NamedTuple):
    """File names of one cgroup version."""

    label: str
    limit: str
    usage: str
    cache: str
    """Key of memory.stat for file cache that can be dropped."""
    events: str


_V1 = _Version("v1", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control")
_V2 = _Version("v2", "memory.max", "memory.current", "inactive_file", "memory.events")
_NO_LIMIT = 2**60
"""Bytes from which on a limit is none: v1 writes 2^63 less a page for it. Nor does one above the RAM ever bind."""
_OCTAL = regex(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    version: _Version
    root: str
    """Which part of the hierarchy is mounted; "/" outside of containers."""
    point: str


class MemoryGroup(NamedTuple):
    """A control group with a memory controller, for callers that read it again and again."""

    folder: str
    limit: int | None
    """Bytes, where it is below the RAM."""
    source: str
    """Which limit it is: "cgroup v2 /sys/fs/cgroup/…/memory.max"; "" without one."""
    usage: Path
    stat: Path
    cache_word: str
    """Key in `stat` of file cache that can be dropped."""
    events: Path
    """Counters, `oom_kill` among them."""

    def oom_kills(self) -> int | None:
        """Processes that the kernel killed here; None where it does not count."""
        return _keyed(self.events).get("oom_kill")

    def dies_together(self) -> bool:
        """Whether the kernel kills all of it at once, a watcher in it, too (memory.oom.group of version 2)."""
        return _first_line(self.events.with_name("memory.oom.group")) == "1"

    def used_bytes(self) -> int | None:
        """Working set: usage less inactive file cache, as kubelet and Ray count it."""
        usage = _number(_first_line(self.usage))
        return None if usage is None else max(0, usage - _keyed(self.stat).get(self.cache_word, 0))


def memory_groups(root: Path, ram_bytes: int | None, pid: int | None = None) -> list[MemoryGroup]:
    """The groups that a process (None: this one) is charged to, its own first, as far up as is seen from `root`."""
    process = root / "proc" / ("self" if pid is None else str(pid))
    paths = _own_paths(process / "cgroup")
    found = [
        _group_in(root, folder, mount.version, ram_bytes)
        for mount in _mounts(process / "mountinfo")
        if mount.version in paths
        for folder in _folders(root, mount, paths[mount.version])
    ]
    return [group for group in found if group is not None]


def binding_group(groups: Sequence[MemoryGroup]) -> MemoryGroup | None:
    """Of a process's groups the one that is full first, by all that is charged to it; without a limit its own. None:
    no memory controller."""
    rooms = [(group.limit - (group.used_bytes() or 0), group) for group in groups if group.limit is not None]
    return min(rooms, key=lambda room: room[0])[1] if rooms else next(iter(groups), None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def _mounts(mountinfo: Path) -> Iterator[_Mount]:
    """Mounts that can hold a memory controller. A line is "id parent dev root point options… - type source super"."""
    for line in _lines(mountinfo):
        before, separator, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if not separator or len(fields) < 6 or len(kind) < 1:
            continue
        options = kind[2].split(",") if len(kind) > 2 else []
        version = _V2 if kind[0] == "cgroup2" else _V1 if kind[0] == "cgroup" and "memory" in options else None
        if version is not None:
            mounted, point = (_OCTAL.sub(lambda match: chr(int(match.group(1), 8)), field) for field in fields[3:5])
            yield _Mount(version, mounted, point)


def _own_paths(cgroup: Path) -> dict[_Version, str]:
    """This process's path in each version. Lines read "0::/path" (v2) and "4:memory,hugetlb:/path" (v1)."""
    paths = {}
    for line in _lines(cgroup):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            paths[_V2] = path
        elif "memory" in controllers.split(","):
            paths[_V1] = path
    return paths


def _folders(root: Path, mount: _Mount, path: str) -> list[Path]:
    """The folders from the process's own group up to the mount point."""
    top = root / mount.point.lstrip("/")
    inside = PurePosixPath()
    with suppress(ValueError):  # outside the mounted part; ".." is a path of another namespace
        inside = PurePosixPath() if ".." in PurePosixPath(path).parts else PurePosixPath(path).relative_to(mount.root)
    if not (top / inside).is_dir():
        inside = PurePosixPath()
    return [top / inside, *list((top / inside).parents)[: len(inside.parts)]]


def _group_in(root: Path, folder: Path, version: _Version, ram_bytes: int | None) -> MemoryGroup | None:
    text, events = _first_line(folder / version.limit), folder / version.events
    if text is None and "oom_kill" not in _keyed(events):  # no memory controller at this level
        return None
    inherited = _keyed(folder / "memory.stat").get("hierarchical_memory_limit")  # v1; knows unmounted ancestors
    candidates = {version.limit: _number(text), "memory.stat hierarchical_memory_limit": inherited}
    most = _NO_LIMIT if ram_bytes is None else ram_bytes
    binding = {name: size for name, size in candidates.items() if size is not None and size < most}
    high = _number(_first_line(folder / "memory.high"))  # of version 2: nothing is killed there, but a run stalls
    if high is not None and high < most and not binding:
        binding = {"memory.high": high}
    name = min(binding, key=lambda key: (binding[key], key != version.limit), default="")
    shown = "/" + str(folder.relative_to(root))
    source = f"cgroup {version.label} {shown.rstrip('/')}/{name}" if name else ""
    source += f" (memory.high {show_bytes(high)})" if high is not None and high < binding.get(name, 0) else ""
    usage, stat = folder / version.usage, folder / "memory.stat"
    return MemoryGroup(shown, binding.get(name), source, usage, stat, version.cache, events)


def _first_line(path: Path) -> str | None:
    lines = _lines(path)
    return lines[0].strip() if lines else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _keyed(path: Path) -> dict[str, int]:
    """ "name number" lines → dict."""
    pairs = (line.split() for line in _lines(path))
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


SpaceOf = Callable[[str], os.statvfs_result]


def read_host(root: Path = Path("/"), space_of: SpaceOf = os.statvfs) -> Host:
    """Host memory as /proc and the cgroups under `root` say. What cannot be read is None. Never raises OSError.
    /proc/meminfo is not namespaced: in a container it shows the node, and the cgroup limit is what binds."""
    memory = _meminfo(root / "proc/meminfo")
    total, available = memory.get("MemTotal"), memory.get("MemAvailable")
    groups = memory_groups(root, total)
    group = binding_group(groups)
    limited = group if group is not None and group.limit is not None else None
    counters = [one.oom_kills() for one in (*groups[:1], group) if one is not None]  # version 1 counts in the victim's
    kills = [count for count in counters if count is not None]
    caps = [_number(_first_line(one.events.with_name("memory.swap.max"))) for one in groups]
    swap = min((size for size in (memory.get("SwapTotal"), *caps) if size is not None), default=None)
    hbm, hbm_free = _on_gpus(root)
    total, available = _less(total, hbm), _less(available, hbm_free)
    shm = shm_used = None
    with suppress(OSError):
        found = space_of(str(root / "dev/shm"))
        shm, shm_used = found.f_blocks * found.f_frsize, (found.f_blocks - found.f_bfree) * found.f_frsize
    return Host(
        total_bytes=total,
        available_bytes=available,
        used_bytes=_less(total, available),
        limit_bytes=limited and limited.limit,
        limit_used_bytes=limited and limited.used_bytes(),
        limit_source=limited.source if limited else "",
        least_limit_bytes=min((one.limit for one in groups if one.limit is not None), default=None),
        reserved_bytes=memory.get("Hugetlb", memory.get("HugePages_Total", 0) * memory.get("Hugepagesize", 0)) or None,
        oom_kills=max(kills, default=None),
        swap_total_bytes=swap,
        swap_used_bytes=_less(memory.get("SwapTotal"), memory.get("SwapFree")),
        shm_bytes=shm,
        shm_used_bytes=shm_used,
    )


def _on_gpus(root: Path) -> tuple[int, int]:
    """(total, free) bytes of NUMA nodes without a processor beside NVIDIA's driver for Arm: on a Grace superchip they
    are the memory of its GPUs (NVIDIA's Grace performance tuning guide); elsewhere such a node is RAM, of CXL."""
    total = free = 0
    if "aarch64" in (_first_line(root / "proc/driver/nvidia/version") or ""):
        for node in (root / "sys/devices/system/node").glob("node[0-9]*"):
            if not _first_line(node / "cpulist"):
                memory = {name.split()[-1]: size for name, size in _meminfo(node / "meminfo").items()}
                total, free = total + memory.get("MemTotal", 0), free + memory.get("MemFree", 0)
    return total, free


def _less(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else max(0, whole - part)


def _meminfo(path: Path) -> dict[str, int]:
    """Field → bytes. Lines read "MemTotal:  65842344 kB"."""
    try:
        lines = path.read_text("ascii", "replace").splitlines()
    except OSError:
        return {}
    fields = {}
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            fields[name] = int(words[0]) * (KIB if words[-1] == "kB" else 1)
    return fields
