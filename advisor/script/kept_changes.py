"""Remembers what was changed in which file, so that a log of before is read as that of the file as it was.

`fix` says it in comments, which travel with a file; `set` writes none, JSON takes none: a list of the user's own does.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import ValidationError, convert

from advisor.folders import state_folder
from advisor.regex import regex
from advisor.script.document import COMMENT, Document
from advisor.script.write import write_file

UNSET = "(unset)"
"""The old value in a comment, where there was none."""
MOST = 400
"""Changes that are remembered; older ones make room."""
_LARGEST = 1 << 20
_COMMENTED = regex(rf"{COMMENT}(?:[\w.-]+: )?(?P<key>\S+) (?P<old>.*) -> ")
"""The comment of `wanted_of`, as it stands in a file."""
_ChangedKey = tuple[float, str, str, str | None]
"""Epoch seconds, file, key ("$NAME" of a variable), the text before."""


def remember_changes(before: Mapping[str, str | None], read: Collection[Path], written: Collection[Path]) -> None:
    """Note that files were written in which these keys had other texts `before`, in those that were `read`. Best
    effort: a read-only home costs what `set` and JSON leave unsaid."""
    own, new = {os.path.realpath(one) for one in read}, [os.path.realpath(one) for one in written]
    known = [one for one in _known() if one[1] not in new or one[1] in own]
    known += [(when, path, key, old) for when, source, key, old in known if source in own for path in {*new} - own]
    known += [(time.time(), path, key, old) for path in new for key, old in before.items()]
    with suppress(OSError):
        _file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(_file(), json.dumps(known[-MOST:]).encode(), force=True, mode=0o600)


def values_before(documents: Sequence[Document], logs: Sequence[Path]) -> dict[str, str | None]:
    """Key → the text before, of every change that was made in these files after the logs were written."""
    ended = max((log.stat().st_mtime for log in logs if log.is_file()), default=None)
    if ended is None:
        return {}
    found: dict[str, str | None] = {}
    for one in documents:
        if one.path.is_file() and one.path.stat().st_mtime > ended:
            told = _COMMENTED.finditer(one.data.decode(errors="replace"))
            found |= {each["key"]: None if each["old"] == UNSET else each["old"] for each in told}
    names = {os.path.realpath(one.path) for one in documents}
    for when, path, key, old in _known():
        if path in names and when > ended:
            found.setdefault(key, old)  # the first change after the log has what stood there then
    return found


def _file() -> Path:
    return state_folder() / "changes.json"


def _known() -> list[_ChangedKey]:
    with suppress(OSError, ValueError, RecursionError, ValidationError, RuntimeError), _file().open("rb") as opened:
        return convert(json.loads(opened.read(_LARGEST)), list[_ChangedKey])
    return []
