"""Reads what a Ray session's own logs on this node say of a worker that died: its last lines, and its raylet's."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from advisor.regex import regex

_END, _RAYLET_END = 64 << 10, 8 << 20
"""Bytes read from the end of a worker's log, and of a raylet's, which speaks of all workers."""
_IDS, _FILES, _SESSIONS, _TOLD = 8, 4, 3, 256 << 10
_RECORD = regex(r"^(?=\[\d{4}-\d\d-\d\d )", re.MULTILINE)
"""A record is a line that begins with the time, and those below it that do not."""


def sessions_root() -> Path:
    """Where Ray keeps its sessions."""
    return Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray"  # noqa: S108 - where Ray puts them


def logs_of(worker: str, root: Path) -> list[Path]:
    """The worker's own logs, those with its last words first; no other run has a worker of the same id."""
    patterns = (f"worker-{worker}-*.err", f"worker-{worker}-*.out", f"python-core-worker-{worker}_*.log")
    found: list[Path] = []
    with suppress(OSError):
        for pattern in patterns:
            found += sorted(root.glob(f"session_2*/logs/{pattern}"))[:_FILES]
    return [file for file in found if os.access(file, os.R_OK) and file.stat().st_size]


def raylet_words(ids: Sequence[str], root: Path) -> str:
    """What raylets wrote of these workers or actors: whole records, "Memory on the node was …" before a kill, too.
    Looks where the workers' own logs are, else through the newest sessions."""
    folders = list(dict.fromkeys(file.parent for one in ids for file in logs_of(one, root)))
    with suppress(OSError):
        folders = folders or sorted(root.glob("session_2*/logs"), reverse=True)[:_SESSIONS]
    files = [file for folder in folders for file in sorted(folder.glob("raylet*.out"))]
    records = (record for file in files for record in _RECORD.split(end_of(file, _RAYLET_END)))
    return "".join(record.rstrip("\n") + "\n" for record in records if any(one in record for one in ids))[-_TOLD:]


def tail_bytes(file: Path, size: int) -> bytes:
    """The last `size` bytes. Raises OSError."""
    with file.open("rb") as opened:
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - size))
        return opened.read(size)


def end_of(file: Path, size: int = _END) -> str:
    """The last `size` bytes as text; "" where it cannot be read."""
    with suppress(OSError):
        return tail_bytes(file, size).decode("utf-8", "replace")
    return ""


def ends_of_workers(ids: Sequence[str]) -> dict[str, str]:
    """File name → its end, of what this node's sessions have of these workers or actors; {}: they lived elsewhere."""
    root, asked = sessions_root(), tuple(ids)[:_IDS]
    ends = {file.name: end_of(file) for one in asked for file in logs_of(one, root)}
    told = raylet_words(asked, root) if asked else ""
    return {**ends, **({"raylet.out": told} if told else {})}
