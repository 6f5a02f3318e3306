"""Asks bash whether it can parse a script, and from which line on it runs nothing of it. Nothing is run by asking."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache

from advisor.bash.tree import is_sound
from advisor.regex import regex

_SECONDS = 10
_MOST_TRIED = 300
_OF_OTHERS = regex(rb"#![^\n]*\b(?:zsh|fish|t?csh|ksh|python\w*|perl)\b")
_PROBLEM = regex(r"line (\d+): (.*)")
_AT_THE_MARGIN = regex(rb"(?<!\\)\n(?=[^\s#])")


def parsed_by_bash(data: bytes) -> tuple[bool, str] | None:
    """Whether bash parses a text, and what it says; None where there is no bash to ask."""
    bash = shutil.which("bash")
    if bash is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603  (the text goes to a parser on standard input)
            [bash, "--noprofile", "--norc", *(["-O", "extglob"] if b"extglob" in data else []), "-n"],
            input=data.replace(b"\r\n", b"\n"),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={"PATH": "/nonexistent"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return False, ""
    return done.returncode == 0, done.stderr.decode("utf-8", "replace")


@lru_cache(maxsize=16)
def stops_at(data: bytes) -> tuple[int, int, str] | None:
    """The line from which on bash runs nothing of a script, since it cannot parse what begins there, the line where it
    notices, and its words for it. None where it parses the script, or nobody knows."""
    if is_sound(data) or _OF_OTHERS.match(data[:200]) or (answer := parsed_by_bash(data)) is None or answer[0]:
        return None
    told = _PROBLEM.search(answer[1])
    ends = [0, *(found.end() for found in _AT_THE_MARGIN.finditer(data))]
    whole = next((end for end in ends[: -_MOST_TRIED - 1 : -1] if (parsed_by_bash(data[:end]) or (False,))[0]), None)
    if told is None or whole is None:
        return None
    return data.count(b"\n", 0, whole) + 1, int(told[1]), told[2]
