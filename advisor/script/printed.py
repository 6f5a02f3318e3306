"""Reads a command that a log prints as a launch; what it names on a disk is not looked for."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from advisor.bash.state import LauncherMatch
from advisor.bash.words import Unterminated
from advisor.regex import regex
from advisor.script.document import Document, ScriptError
from advisor.script.files import Files
from advisor.script.launch import Launch
from advisor.script.launcher import find_launcher
from advisor.script.shell import read_shell

_WORLD = regex(r"--world_info=([\w=-]{4,4000})")
_PLACE = Path("the-log")
"""The command stands in no file."""


def printed_launch(text: str, spreads: str = "", whole: bool = True) -> Launch | None:
    """The launch that a command's text is; None where it starts no training. `spreads`: what started it on every card,
    where the text is the command of one rank."""
    document = Document(_PLACE, _with_hosts(text).encode("utf-8", "replace"), "shell")
    files = Files([], {os.path.abspath(_PLACE): document})
    try:
        launches = read_shell(files, _PLACE, (), _find).launches
    except (ScriptError, Unterminated):
        return None
    launch = next((one.launch for one in launches if one.launch.program), None)
    if launch is None:
        return None
    unsought = {one.note: replace(one, sought=False) for one in launch.not_found}
    return replace(
        launch,
        index=0,
        notes=tuple(unsought[note].note if note in unsought else note for note in launch.notes),
        not_found=tuple(unsought.values()),
        span=None,
        settings=tuple(replace(setting, span=None) for setting in launch.settings),
        exports=tuple(replace(setting, span=None) for setting in launch.exports),
        spreads=launch.spreads or spreads,
        partial=launch.partial or not whole,
    )


def _find(words: Sequence[str]) -> LauncherMatch | None:
    """What a command line runs: a log names what trained, whatever its name."""
    found = find_launcher(words)
    return found and replace(found, trains=found.kind == "program")


def _with_hosts(text: str) -> str:
    """The ranks that DeepSpeed packs into one word, as its launcher's --include names them."""
    packed = _WORLD.search(text)
    if packed is None:
        return text
    try:
        hosts = json.loads(base64.urlsafe_b64decode(packed[1]))
        include = "@".join(f"{host}:{','.join(str(int(rank)) for rank in ranks)}" for host, ranks in hosts.items())
    except (ValueError, AttributeError, TypeError):
        return text
    named = re.fullmatch(r"[\w.,:@-]{1,2000}", include)
    return text if named is None else text.replace(packed[0], f"--include={include}", 1)
