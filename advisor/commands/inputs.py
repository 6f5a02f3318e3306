"""Tells launch scripts from logs and folders among the files that a command line names, in whatever order."""

from __future__ import annotations

import argparse
import os
import re
from fnmatch import fnmatch
from pathlib import Path

from advisor.commands import COMMANDS
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.recent import LIKE_A_LOG, LOGS, LOOKED_AT, SCRIPTS, recent_in
from advisor.regex import regex

_WRITTEN_BY_HAND = (*SCRIPTS, ".yaml", ".yml", ".json", ".toml", ".ipynb", ".md")
_IN_PERSON = regex(
    rb"\A\s*(?=[^\n]{0,200}(?:\bI(?:'(?:m|ve))? |\b[Ww]e(?:'(?:re|ve))? |\b[Mm]y |%s))[^\[({|+/\\#$<>!]" % "我".encode()
)
"""A page that begins in the first person: somebody tells of a run."""
_BOTH = (".md", ".ipynb")
"""Files that hold a launch and, quoted or as the output of a cell, what it printed."""
_CRASHED = regex(
    rb"Traceback \(most recent call last|\bTried to allocate \d|OutOfMemoryError|memory usage threshold of"
)


def sort_files(parsed: argparse.Namespace) -> None:
    """Give `parsed` its `script`, what else of its `files` is a log beside those of `--log`, and the `folder` of runs.

    A page or a notebook that shows a crash is the log of its own launch, where no other is given.

    A folder with launch scripts is one to choose a run from; any other holds logs. Where `--log` names the log, a file
    is one too only by its name. Once: what was chosen meanwhile stays. Raises Refusal for a second script, and for a
    word that is no file but nearly a command.
    """
    if "script" in parsed:
        return
    parsed.script, parsed.folder = None, None
    sniffs = not parsed.log
    for name in parsed.files:
        path = Path(name)
        if path.is_dir() and recent_in(path).runs:
            parsed.folder = name
        elif name == "-" or path.is_dir() or is_log(path, sniffs):
            parsed.log = [*parsed.log, name]
        elif parsed.script is None:
            _refuse_near_command(name)
            parsed.script = name
        else:
            given = {"one": clean_line(parsed.script, 80), "other": clean_line(name, 80)}
            raise Refusal(say("{one} and {other} are two launch files: give one; --log LOG names a log", **given))
    if parsed.script is not None and not parsed.log and _shows_a_crash(Path(parsed.script)):
        parsed.log = [parsed.script]


def is_log(path: Path, sniffs: bool = True) -> bool:
    """Whether a file is what a run printed: by its name, else, if it `sniffs`, by what stands in it."""
    name = path.name.lower()
    if name.endswith(_WRITTEN_BY_HAND):
        return False
    if any(fnmatch(name, pattern) for pattern in LOGS):
        return True
    return sniffs and (_holds(path, LIKE_A_LOG) or _holds(path, _IN_PERSON))


def _shows_a_crash(path: Path) -> bool:
    return path.name.lower().endswith(_BOTH) and _holds(path, _CRASHED)


def _holds(path: Path, pattern: re.Pattern[bytes]) -> bool:
    """Whether the beginning of a file has it; not, where it cannot be read."""
    try:
        with path.open("rb") as file:
            return pattern.search(file.read(LOOKED_AT)) is not None
    except OSError:
        return False


def take_newest(parsed: argparse.Namespace) -> str:
    """Take the newest run of the `folder`, where nobody can choose; returns what was taken in words, "" for nothing."""
    if parsed.folder is None or parsed.script is not None or parsed.log:
        return ""
    run = recent_in(Path(parsed.folder)).runs[0]
    taken = [found.path for found in (run.script, run.log) if found is not None]
    parsed.script = str(run.script.path) if run.script else None
    parsed.log = [str(run.log.path)] if run.log else []
    names = ", ".join(clean_line(str(path), 200) for path in taken)
    return say("the newest run of {folder}: {files}", folder=clean_line(parsed.folder, 200), files=names)


def _refuse_near_command(name: str) -> None:
    if name in COMMANDS and not os.path.exists(name):
        raise Refusal(say("{command} is a command: it comes first, before the options", command=name))
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, 1, 0.7)
    if near and os.sep not in name and not os.path.exists(name):
        raise Refusal(say("{word} is neither a file nor a command; is {command} meant?", word=name, command=near[0]))
