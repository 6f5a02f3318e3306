"""The Python file that a command runs: `python -m a.b` or `python a/b.py`, looked for where the script would be."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from advisor.script.document import ScriptError
from advisor.script.launch import Launch, Script
from advisor.script.reader import read_script

_ANCESTORS = 2


def module_file(launch: Launch, script: Path) -> Path | None:
    """The file a launch runs: in the folder the script went to, beside the script, or in up to two folders above it."""
    program = launch.program
    if not launch.argv or not program or " " in program or "\0" in program + launch.folder:
        return None
    name = program if program.endswith(".py") else program.replace(".", "/") + ".py"
    beside = script.parent
    around = [beside, *list(beside.resolve().parents)[:_ANCESTORS]]
    gone = [Path(launch.folder), *(folder / launch.folder for folder in around)] if launch.folder else []
    return next((file for folder in (*gone, *around) if _is_file(file := folder / name)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def follow_module(script: Script, index: int, bases: Collection[str]) -> Script | None:
    """The config file that launch `index` of a shell script runs, read in that launch's environment.

    None where the file is not found, cannot be read, or holds no config dataclass derived from one of `bases`.
    """
    if not script.launches or script.documents[0].kind != "shell":
        return None
    launch, path = script.launches[index], script.documents[0].path
    file = module_file(launch, path)
    if file is None:
        return None
    try:
        found = read_script(file, environment=launch.environment)
    except ScriptError:
        return None
    return found if found.launches and set(bases) & set(found.launches[0].bases) else None
