"""Finds the names that a script sets, and the end of its own name, without running it."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import lru_cache

from advisor.regex import regex

LONGEST_READ = 1_000_000
"""Bytes that are searched for names the script sets."""
_PREFIX = regex(rb"^[ \t]*((?:[A-Za-z_]\w*=[^\s$(`]*[ \t]+)+)[\w./~-]+(?:[ \t]|$)", re.MULTILINE)
"""What stands before a command and is set for it alone."""
_COMMENT_LINE = regex(rb"^[ \t]*#.*$", re.MULTILINE)
_QUOTED = regex(rb"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_OWN_PATH = regex(rb"\$\{?(?:0|BASH_SOURCE)\b")
_RELATIVE = regex(rb"(?<![\w./$}~-])([\w-][\w.-]*)/[\w./-]+\.(?:py|sh)\b")
_ASSIGNED = regex(
    rb"(?:^|[\s;(])(?:(?:export|local|declare|readonly)\s+(?:-\w+\s+)?)?([A-Za-z_]\w*)(?:\[[^\]\n=]*\])?\+?=",
    re.MULTILINE,
)


_COUNTED = regex(rb"\b([A-Za-z_]\w*)[ \t]*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)=)")
_READ = regex(rb"(?:^|[\s;&|])(?:read|mapfile|readarray)[ \t]([^\n;|&<]*)", re.MULTILINE)


def set_in_rounds(loop: bytes) -> frozenset[bytes]:
    """Names that the text of a loop may set in every round: it assigns, counts or reads them."""
    read = (name for words in _READ.findall(loop) for name in re.findall(rb"\w+", words))
    return assigned_names(loop) | {*_COUNTED.findall(loop), *read}


@lru_cache(maxsize=16)
def assigned_names(data: bytes) -> frozenset[bytes]:
    """Every name that a text sets anywhere for what comes behind: not those that it gives to one command alone."""
    text = _QUOTED.sub(b"", _COMMENT_LINE.sub(b"", data[:LONGEST_READ]))
    given = Counter(name for prefix in _PREFIX.findall(text) for name in _ASSIGNED.findall(prefix))
    return frozenset((Counter(_ASSIGNED.findall(text)) - given).keys())


def known_end(script: bytes, data: bytes) -> bytes:
    """The end of `$0` that is the same however a script is started: its name, with its folder where it runs files by
    paths that begin with a folder above it (`examples/train.py` in examples/small/run.sh), so that it is not started
    from its own folder.
    """
    *above, folder, name = os.path.abspath(script).split(b"/")
    named = set(_RELATIVE.findall(data)) if b"$" in data and _OWN_PATH.search(data) else set()
    return folder + b"/" + name if folder and named & {*above, folder} else name
