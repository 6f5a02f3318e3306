"""Reads what the system says while a run ends: the kernel of memory, in its log and its counters, and Ray in its own
session logs, whose ends are copied into the record.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from advisor.hostile import clean_line
from advisor.machine.host import MemoryGroup, memory_groups
from advisor.machine.ray_session import logs_of, raylet_words, sessions_root, tail_bytes
from advisor.regex import regex
from advisor.watch.record_files import RAY_LOGS, write_private

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


_WANTED = ("worker-*.err", "worker-*.out", "raylet.out", "raylet.err", "python-core-worker-*.log")
_TAIL, _ALL = 64 << 10, 2 << 20
"""Bytes of one log, and of all."""
_MOST_LOGS, _ENTRIES, _WORKERS = 48, 20_000, 8
"""Logs that are copied, entries of a folder that are looked at, workers whose logs are looked for."""
_ID = regex(r"Worker ID: ([0-9a-f]{28,64})\b|^\s*actor_id: ([0-9a-f]{32,64})\s*$", re.MULTILINE)


def session_logs(raylet: int | None) -> Path | None:
    """The logs folder of the session that a raylet belongs to, else of this node's latest."""
    folders = [sessions_root() / "session_latest" / "logs"]
    with suppress(OSError):
        words = Path(f"/proc/{raylet}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        folders = [Path(word.partition("=")[2]) for word in words if word.startswith("--log_dir=")] + folders
    return next((folder for folder in folders if folder.is_dir()), None)


def keep_ends(logs: Path, into: Path, since: float) -> int:
    """Copy the ends of what was written since then (epoch seconds), newest first; returns how many files. At most 2 MiB
    in all; nothing is raised, a log that cannot be read is left out."""
    left, count = _ALL, 0
    newest = sorted(_written_since(logs, since), reverse=True)
    for _, file in sorted(newest, key=lambda one: one[1].suffix != ".err"):  # a dying process writes its errors there
        if left <= 0 or count >= _MOST_LOGS:
            break
        with suppress(OSError):
            end = tail_bytes(file, _TAIL)
            if end:
                into.mkdir(mode=0o700, exist_ok=True)
                write_private(into / file.name, end[-left:])
                left -= len(end)
                count += 1
    return count


def _written_since(logs: Path, since: float) -> Iterator[tuple[float, Path]]:
    with suppress(OSError), os.scandir(logs) as entries:
        for entry in islice(entries, _ENTRIES):
            if any(fnmatch.fnmatch(entry.name, pattern) for pattern in _WANTED):
                with suppress(OSError):
                    status = entry.stat()
                    if status.st_mtime >= since and status.st_size:
                        yield status.st_mtime, Path(entry.path)


def ends_in(record: Path) -> tuple[Path, ...]:
    """What a record has of them."""
    folder = record / RAY_LOGS
    return tuple(sorted(folder.iterdir())) if folder.is_dir() else ()


def worker_ids(texts: Iterable[str]) -> tuple[str, ...]:
    """Ray's ids of the workers that these lines name, and of the actors whose death they tell."""
    return tuple(dict.fromkeys(one for text in texts for found in _ID.findall(text) for one in found if one))[:_WORKERS]


def of_workers(texts: Iterable[str], root: Path | None = None) -> tuple[Path, ...]:
    """The logs, on this machine, of workers that these lines name by Ray's own id: no other run has the same one."""
    base = root or sessions_root()
    return tuple(file for worker in worker_ids(texts) for file in logs_of(worker, base))


def raylets_on(texts: Iterable[str]) -> str:
    """What raylets on this machine wrote of these workers or actors; "" where they lived elsewhere."""
    return raylet_words(worker_ids(texts), sessions_root())
