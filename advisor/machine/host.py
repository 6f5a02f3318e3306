"""Reads the host memory of this node: RAM, swap, the cgroup limit that binds, the OOM-kill counter, /dev/shm."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from advisor.machine.cgroup import binding_group, memory_groups
from advisor.machine.inventory import Host
from advisor.units import KIB

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
    swap, swap_free = memory.get("SwapTotal"), memory.get("SwapFree")
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
        oom_kills=max(kills, default=None),
        swap_total_bytes=swap,
        swap_used_bytes=_less(swap, swap_free),
        shm_bytes=shm,
        shm_used_bytes=shm_used,
    )


def without_hbm(host: Host, root: Path = Path("/")) -> Host:
    """The host without the NUMA nodes that have no processor: on a Grace superchip they are the memory of its GPU."""
    total = free = 0
    for node in (root / "sys/devices/system/node").glob("node[0-9]*"):
        with suppress(OSError):
            if not (node / "cpulist").read_text().strip():
                memory = {name.split()[-1]: size for name, size in _meminfo(node / "meminfo").items()}
                total, free = total + memory.get("MemTotal", 0), free + memory.get("MemFree", 0)
    ram, available = _less(host.total_bytes, total), _less(host.available_bytes, free)
    return replace(host, total_bytes=ram, available_bytes=available, used_bytes=_less(ram, available))


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
