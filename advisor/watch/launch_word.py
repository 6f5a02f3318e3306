"""Finds the launch script among the words of a command, and puts another in its place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_SHELLS = ("bash", "sh", "zsh", "dash")
_SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
_PLAIN_OPTIONS = frozenset("exuvl")
"""Letters of a shell's options that take no value: behind -c there is no file."""


def script_place(argv: Sequence[str]) -> int | None:
    """Which word of a command is its launch script; None where none is: a Python command, or another launcher."""
    if argv and Path(argv[0]).suffix in _SCRIPTS and Path(argv[0]).is_file():
        return 0
    if not argv or os.path.basename(argv[0]) not in _SHELLS:
        return None
    for place, word in enumerate(argv[1:], 1):
        if not word.startswith("-"):
            return place if Path(word).is_file() else None
        if not set(word[1:]) <= _PLAIN_OPTIONS:
            return None
    return None


def with_script(argv: Sequence[str], place: int, script: Path) -> tuple[str, ...]:
    """The same command with another script of the same folder; a bare name stays one that is no command of PATH."""
    folder = os.path.dirname(argv[place]) or ("." if place == 0 else "")
    return (*argv[:place], os.path.join(folder, script.name), *argv[place + 1 :])
