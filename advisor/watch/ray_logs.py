"""The ends of Ray's own session logs, kept with a record: a driver often says no more than "a worker died"."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from advisor.machine.ray_session import logs_of, raylet_words, sessions_root
from advisor.watch.record_files import RAY_LOGS

_WANTED = ("worker-*.err", "worker-*.out", "raylet.out", "raylet.err", "python-core-worker-*.log")
_TAIL = 64 << 10
_ALL = 2 << 20
_MOST = 48
_ENTRIES = 20_000
_WORKERS = 8
_ID = re.compile(r"Worker ID: ([0-9a-f]{28,64})\b|^\s*actor_id: ([0-9a-f]{32,64})\s*$", re.MULTILINE)


def session_logs(raylet: int | None) -> Path | None:
    """The logs folder of the session that a raylet belongs to, else of this node's latest."""
    for folder in (_of_raylet(raylet), _latest()):
        if folder is not None and folder.is_dir():
            return folder
    return None


def _of_raylet(raylet: int | None) -> Path | None:
    with suppress(OSError):
        words = Path(f"/proc/{raylet}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        for word in words:
            if word.startswith("--log_dir="):
                return Path(word.partition("=")[2])
    return None


def _latest() -> Path:
    return sessions_root() / "session_latest" / "logs"


def keep_ends(logs: Path, into: Path, since: float) -> int:
    """Copy the ends of what was written since then (epoch seconds), newest first; returns how many files.

    At most 2 MiB in all; nothing is raised, a log that cannot be read is left out.
    """
    left, count = _ALL, 0
    for file in _written(logs, since):
        if left <= 0 or count >= _MOST:
            break
        end = _end_of(file)
        if end:
            with suppress(OSError):
                into.mkdir(mode=0o700, exist_ok=True)
                (into / file.name).write_bytes(end[-left:])
                left -= len(end)
                count += 1
    return count


def _written(logs: Path, since: float) -> list[Path]:
    found = sorted(_wanted(logs, since), reverse=True)
    order = sorted(found, key=lambda one: one[1].suffix != ".err")  # what a dying process says goes there
    return [file for _, file in order]


def _wanted(logs: Path, since: float) -> Iterator[tuple[float, Path]]:
    with suppress(OSError), os.scandir(logs) as entries:
        for number, entry in enumerate(entries):
            if number >= _ENTRIES:
                return
            if any(fnmatch.fnmatch(entry.name, pattern) for pattern in _WANTED):
                with suppress(OSError):
                    status = entry.stat()
                    if status.st_mtime >= since and status.st_size:
                        yield status.st_mtime, Path(entry.path)


def _end_of(file: Path) -> bytes:
    with suppress(OSError), file.open("rb") as open_file:
        open_file.seek(0, os.SEEK_END)
        open_file.seek(max(0, open_file.tell() - _TAIL))
        return open_file.read(_TAIL)
    return b""


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


def raylets_on(texts: Iterable[str], root: Path | None = None) -> str:
    """What raylets on this machine wrote of these workers or actors; "" where they lived elsewhere."""
    return raylet_words(worker_ids(texts), root or sessions_root())
