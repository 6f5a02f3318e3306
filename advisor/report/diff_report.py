"""Shows rewrites as a unified diff of clean text. For reading; the patched file itself is written from exact bytes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from advisor.hostile import clean
from advisor.script.document import Rewrite

CONTEXT = 3
"""Unchanged lines around a change."""


def diff_report(rewrites: Sequence[Rewrite], names: Sequence[str] = ()) -> str:
    """One unified diff over all rewritten documents, "" where nothing differs; `names`: the new files', in order."""
    parts = []
    for place, rewrite in enumerate(rewrites):
        old_name = clean(str(rewrite.document.path))
        new_name = clean(names[place]) if place < len(names) else old_name
        parts += _diff(rewrite, old_name, new_name)
    return "".join(parts)


def _diff(rewrite: Rewrite, old_name: str, new_name: str) -> list[str]:
    old, new = _lines(rewrite.document.data), _lines(rewrite.new)
    found = []
    for line in difflib.unified_diff(old, new, old_name, new_name, n=CONTEXT):
        if line.endswith("\n"):
            found.append(line)
        else:
            found += [line + "\n", "\\ No newline at end of file\n"]
    return found


def _lines(data: bytes) -> list[str]:
    """Clean lines; only "\\n" ends a line, and a carriage return before it is shown as ^M so that it can be seen."""
    whole = data.decode("utf-8", "replace")
    lines = whole.split("\n")
    shown = [clean(line[:-1]) + "^M" if line.endswith("\r") else clean(line) for line in lines]
    ended = [line + "\n" for line in shown[:-1]]
    return [*ended, shown[-1]] if shown[-1] else ended
