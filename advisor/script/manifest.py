"""Finds the shell text in a Kubernetes manifest: the block of a container that `bash -c` is given."""

from __future__ import annotations

import re
from pathlib import Path

from advisor.regex import regex

_HEADS = (regex(rb"^apiVersion:", re.MULTILINE), regex(rb"^kind:", re.MULTILINE))
_GIVEN = regex(rb"[ \t]*(?:- )?(?:args|command):")
_BLOCK = regex(rb"([ \t]*)- \|[-+]?[ \t]*\r?\n?\Z")
_OUTSIDE = regex(rb"[^\r\n]")


def shell_of_manifest(path: Path, data: bytes) -> bytes | None:
    """The text of the one block below `args:` or `command:`, with blanks for all that stands around it, byte for byte
    as long as the file; None where the file is no manifest, or has no such block, or several."""
    if path.suffix not in (".yaml", ".yml") or not all(head.search(data) for head in _HEADS):
        return None
    lines, found = data.splitlines(keepends=True), list[tuple[int, int]]()
    for number, line in enumerate(lines):
        block = _BLOCK.match(line)
        above = next((one for one in reversed(lines[:number]) if not one.lstrip().startswith((b"-", b"#", b"\n"))), b"")
        if block is not None and _GIVEN.match(above):
            end = number + 1
            while end < len(lines) and (not lines[end].strip() or lines[end].startswith(block[1] + b" ")):
                end += 1
            found.append((number + 1, end))
    if len(found) != 1:
        return None
    (first, last), blank = found[0], [_OUTSIDE.sub(b" ", line) for line in lines]
    return b"".join((*blank[:first], *lines[first:last], *blank[last:]))
