"""Copies the ends of Ray's own session logs into a record: a driver often says no more than "a worker died"."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from advisor.machine.ray_session import logs_of, raylet_words, sessions_root, tail_bytes
from advisor.regex import regex
from advisor.watch.record_files import RAY_LOGS, write_private

_WANTED = ("worker-*.err", "worker-*.out", "raylet.out", "raylet.err", "python-core-worker-*.log")
_TAIL, _ALL = 64 << 10, 2 << 20
"""Bytes of one log, and of all."""
_MOST, _ENTRIES, _WORKERS = 48, 20_000, 8
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
        if left <= 0 or count >= _MOST:
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
