"""Finds the processes of a run, its process tree and those on its GPUs, with the memory and the role of each; and ends
what does not go by itself when the run is dead.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field

from advisor.hostile import clean_line, readable
from advisor.regex import regex
from advisor.watch.gauges import GONE, NAMELESS, KernelFile

_MOST = 64
"""Processes that are followed; of more, the largest."""
_MOST_IN_TREE = 4096
_PAGE = os.sysconf("SC_PAGE_SIZE")
"""Bytes."""
_REMEMBERED = 50_000
_PROGRAM = regex(r"^(?:\S*/)?(?:python[\d.]*|bash|sh|env|uv|torchrun|deepspeed|accelerate)$")


class ProcessTree(Struct):
    """The processes of a run."""

    root: int
    names: dict[int, str] = field(default_factory=dict)
    """Process id → role, for those that are followed."""
    store: str = ""
    """Path under /proc of the Ray object store's memory file, once a raylet is seen."""
    raylet: int | None = None
    seen: set[int] = field(default_factory=set)
    """The processes that belonged to the run, as far back as it is worth to remember."""
    _pages: dict[int, KernelFile] = field(default_factory=dict)
    """Of those that are followed, kept open."""

    def refresh(self, also: Collection[int] = ()) -> None:
        """Find them again: the tree under the root, and `also` (processes on the GPUs)."""
        found = {*tree_of(self.root), *also} - {os.getpid()}
        parents = {int(fields[1]) for pid in also if len(fields := stat_fields(pid)) > 1}
        found |= {pid for pid in parents if pid and role_of(pid) == "raylet"}
        self.seen = self.seen | found if len(self.seen) < _REMEMBERED else found
        pages = {pid: self._pages.get(pid) or KernelFile(f"/proc/{pid}/statm") for pid in found}
        sizes = {pid: size for pid, file in pages.items() if (size := _resident(file)) is not None}
        kept = sorted(sizes, key=lambda pid: -sizes[pid])[:_MOST]
        self._follow({pid: pages.pop(pid) for pid in kept}, pages)
        self.names = {pid: role_of(pid) for pid in kept}  # asked again: a Ray worker is idle before it has a role
        for pid, name in self.names.items():
            if name == "raylet" and (pid != self.raylet or not self.store):
                self.raylet, self.store = pid, _store_of(pid)

    def held(self) -> dict[int, int]:
        """Process id → bytes of its own; who is gone is left out."""
        return {pid: size for pid, file in self._pages.items() if (size := _resident(file)) is not None}

    def close(self) -> None:
        self._follow({}, {})

    def _follow(self, followed: dict[int, KernelFile], others: dict[int, KernelFile]) -> None:
        """Close what is not followed any more; a process id may be another's by now."""
        stay = {id(file) for file in followed.values()}
        for file in (*self._pages.values(), *others.values()):
            if id(file) not in stay:
                file.close()
        self._pages = followed

    def in_store(self) -> int | None:
        """Bytes of the Ray object store that are in memory; None without a raylet."""
        if not self.store:
            return None
        try:
            return os.stat(self.store).st_blocks * 512
        except OSError:
            self.store = ""
            return None


def tree_of(root: int) -> list[int]:
    """A process and all below it. Processes that left the tree (daemons) are not found this way."""
    found, next_ones = [root], [root]
    while next_ones:
        pid = next_ones.pop()
        children: list[int] = []
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb", 0) as file:
                    children += [int(word) for word in file.read(1 << 16).split()]
        for child in children:
            if child not in found and len(found) < _MOST_IN_TREE:
                found.append(child)
                next_ones.append(child)
    return found


def _resident(pages: KernelFile) -> int | None:
    """Memory of its own that a process holds: resident pages less those it shares. None where it is gone."""
    words = pages.read(128).split()
    return None if len(words) < 3 else (int(words[1]) - int(words[2])) * _PAGE


def stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the third on (state, parent, …), behind the name; [] where it is gone."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb", 0) as file:
        return file.read(1024).rpartition(b") ")[2].split()
    return []


def born(pid: int) -> int | None:
    """When the process began, in the kernel's ticks; None where it is gone or a zombie."""
    words = stat_fields(pid)
    return None if len(words) < 20 or words[0] in (b"Z", b"X") else int(words[19])


def role_of(pid: int) -> str:
    """What a process is to the run: "ray::WorkerDict", "raylet", "VLLM::EngineCore_0", "main_ppo"."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", 0) as file:
            words = [word.decode("utf-8", "replace") for word in file.read(4096).split(b"\0") if word]
    except OSError:
        return GONE
    return role_in(words)


def role_in(words: list[str]) -> str:
    """The same from a command line."""
    if not words:
        return NAMELESS
    first = clean_line(words[0], 200)
    if first.startswith("ray::"):
        return first.split(".", 1)[0].split(" ", 1)[0][:60]
    if not _PROGRAM.match(first):
        return readable(os.path.basename(first.split(" ", 1)[0]))[:60]
    rest = iter(words[1:])
    for word in rest:
        if word == "-m":
            return readable(next(rest, "python")).rsplit(".", 1)[-1][:60]
        if word == "-c":
            break
        if not word.startswith("-"):
            return readable(os.path.basename(word))[:60]
    return os.path.basename(first)


def _store_of(raylet: int) -> str:
    """The descriptor on which a raylet holds its store: plasma keeps objects in one unlinked file of /dev/shm."""
    folder = f"/proc/{raylet}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                if "/plasma" in os.readlink(f"{folder}/{name}"):
                    return f"{folder}/{name}"
    return ""


if TYPE_CHECKING:
    from advisor.watch.recording import Recording

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""
_RAYS = frozenset({"raylet", "gcs_server", "log_monitor.py", "monitor.py", "dashboard.py", "main.py", "agent.py"})
"""Roles of Ray's own processes, which serve other jobs, too."""
_NOTHING = 0
"""The signal that only asks whether a process is there."""
_LOOK = 0.05
"""Seconds between two looks."""


def adopt_orphans() -> None:
    """From now on what the run leaves behind becomes our child, so that it can be told from what others run. Without it
    a process whose parent died is the child of process 1, and nobody knows any more whose it was."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def wait_for_leftovers(limit: float, grace: float, but: Callable[[], Collection[int]]) -> tuple[list[str], list[str]]:
    """Wait up to `limit` seconds for what the run left, then end it (`grace` seconds between asking and killing).

    Returns the roles of what is left all the same, and those of Ray's own processes, which are left alone. `but`:
    children of ours that are no part of the run.
    """
    for number, patience in ((_NOTHING, limit), (signal.SIGTERM, grace), (signal.SIGKILL, grace)):
        own, rays = _left(but())
        for pid in own:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        end = time.monotonic() + patience
        while own and time.monotonic() < end:
            time.sleep(_LOOK)
            own, rays = _left(but())
        if not own:
            return [], sorted({role_of(pid) for pid in rays})
    return sorted({role_of(pid) for pid in own}), sorted({role_of(pid) for pid in rays})


def _left(but: Collection[int]) -> tuple[list[int], list[int]]:
    """Process ids of the run that live, and those of Ray's own with all below them."""
    children = [pid for pid in tree_of(os.getpid()) if pid != os.getpid() and pid not in but]
    below = [pid for pid in children if _lives(pid)]
    for pid in set(children) - set(below):  # take leave of those that ended
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    rays = {one for pid in below if role_of(pid) in _RAYS for one in tree_of(pid)}
    return [pid for pid in below if pid not in rays], [pid for pid in below if pid in rays]


def _lives(pid: int) -> bool:
    words = stat_fields(pid)
    return bool(words) and words[0] not in (b"Z", b"X")


def others_on_cards(recording: Recording) -> list[tuple[str, int]]:
    """Role and bytes of the processes that still held memory of a card when a record ended and are none of ours."""
    own = set(tree_of(os.getpid()))
    held: dict[int, int] = {}
    for one in recording.of_kind("gpu_process"):
        pid, size = one.gauge.pid, one.sizes[-1] if one.sizes else -1
        if pid is not None and size > 0 and pid not in own and _lives(pid):
            held[pid] = held.get(pid, 0) + size
    return [(role_of(pid), size) for pid, size in sorted(held.items(), key=lambda item: -item[1])]
