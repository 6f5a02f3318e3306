"""Remembers which fix was written where, so that the app can ask once whether it helped a run that began after it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, ValidationError, convert, to_builtins

from advisor.knowledge.schema import Case
from advisor.report.local_case import Proof, keep_case, local_case
from advisor.report.phrases import change_line
from advisor.script.write import write_file
from advisor.session_store import fixes_folder
from advisor.state import State

_MOST = 20
"""Fixes that wait for an answer; older ones make room."""
_LARGEST = 1 << 18
"""Bytes of a file that are read."""
_END = 1 << 12
"""Bytes by which the end of a log is known again: no two runs end in the same ones."""


class SavedFix(Struct, frozen=True):
    """A script that was written, and the case that it becomes if it helped."""

    file: Path
    """Where this is remembered."""
    folder: str
    script: str
    when: float
    """Epoch seconds."""
    changes: tuple[str, ...]
    case: Case
    logs: tuple[tuple[int, str], ...] = ()
    """Size and end of the logs that it was made for."""

    def is_older(self, log: Path) -> bool:
        """Whether the run that wrote this log began after the fix was written."""
        with suppress(OSError):
            seen = log.stat()
            same = any(size <= seen.st_size and _end(log, size) == end for size, end in self.logs)
            return log.is_file() and seen.st_mtime > self.when and not same
        return False


def remember_fix(state: State, script: Path) -> None:
    """Note that a script with the selected changes was written. Best effort: a full disk costs the question."""
    steps = state.plan.selected()
    changes = tuple(change_line(change) for step in steps for change in step.changes)
    now = time.time()
    case = local_case(state, steps, Proof("the user, asked whether it helped", when=now))
    if not case.values:
        return
    script = script.absolute()
    told = {"folder": str(script.parent), "script": script.name, "when": now, "changes": changes}
    with suppress(OSError):
        files = [(log, log.stat().st_size) for log in state.asked.logs if log.is_file()]
        told["logs"] = [(size, _end(log, size)) for log, size in files]
        folder = fixes_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in sorted(folder.glob("*.json"))[: 1 - _MOST]:
            old.unlink()
        file = folder / f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{os.getpid()}.json"
        write_file(file, json.dumps({**told, "case": to_builtins(case)}).encode(), force=True, mode=0o600)


def _end(log: Path, size: int) -> str:
    """What stands in a log before this many bytes, as a digest."""
    with log.open("rb") as opened:
        opened.seek(max(0, size - _END))
        return hashlib.sha256(opened.read(min(size, _END))).hexdigest()


def waiting_fix(folders: Collection[Path], logs: Collection[Path]) -> SavedFix | None:
    """The fix written last in one of these folders that nobody has answered for, and after which the run of one of the
    logs began; None where there is none."""
    here = {str(folder.absolute()) for folder in folders}
    with suppress(OSError):
        for file in sorted(fixes_folder().glob("*.json"), reverse=True):
            found = _read(file)
            if found is not None and found.folder in here and any(map(found.is_older, logs)):
                return found
    return None


def _read(file: Path) -> SavedFix | None:
    try:
        with file.open("rb") as opened:
            told = json.loads(opened.read(_LARGEST))
        return convert({**told, "file": file}, SavedFix)
    except (OSError, ValueError, TypeError, RecursionError, ValidationError):
        return None


def answer_fix(fix: SavedFix, helped: bool | None) -> Path | None:
    """Take the answer (None: not known), which is asked for once; the case's file where it helped and was kept."""
    with suppress(OSError):
        fix.file.unlink(missing_ok=True)
    return keep_case(fix.case) if helped else None
