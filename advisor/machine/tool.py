"""Runs a vendor's own tool for one reading, never longer than a driver that answers would need."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

PATIENCE = 20.0
"""Seconds: these tools take one or two; of a driver that hangs they wait for ever."""
LONGEST = 1 << 20
"""Characters of an answer; sixteen cards with their processes take some ten thousand."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool printed. `missing`: it is not there; `hangs`: it did not end in time."""

    text: str = ""
    missing: bool = False
    hangs: bool = False


RunTool = Callable[[Sequence[str]], ToolAnswer]


def run_tool(words: Sequence[str], patience: float = PATIENCE, environ: Mapping[str, str] | None = None) -> ToolAnswer:
    """The answer of a command, both streams together; nothing is raised, and nobody waits for one that hangs."""
    environ = os.environ if environ is None else environ
    program = find_tool(words[0], environ)
    if program is None:
        return ToolAnswer(missing=True)
    try:
        process = subprocess.Popen(  # noqa: S603 - a driver's tool by its name, with words of ours
            [program, *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environ, "LC_ALL": "C"},
            start_new_session=True,  # a signal for the watched run is none for it
        )
    except OSError:
        return ToolAnswer(missing=True)
    try:
        printed, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()  # one that waits in the kernel stays; nobody waits for it
        if process.stdout is not None:
            with suppress(OSError):
                process.stdout.close()
        return ToolAnswer(hangs=True)
    return ToolAnswer(printed[:LONGEST].decode("utf-8", "replace"))


_PLACES = ("/usr/local/sbin", "/usr/local/bin", "/opt/rocm/bin", "/usr/local/Ascend/driver/tools")
"""Where drivers put their tools: a user's PATH need not have it."""


def find_tool(name: str, environ: Mapping[str, str]) -> str | None:
    """The program's path, on PATH or where drivers put it; None where there is none."""
    return shutil.which(name, path=os.pathsep.join([environ.get("PATH", ""), *_PLACES]))
