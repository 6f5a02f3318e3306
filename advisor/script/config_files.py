"""Config files that a launch names, followed into settings of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.script.document import Setting
from advisor.script.files import Files
from advisor.script.launch import Launch
from advisor.script.shell_run import Command


@dataclass(frozen=True, slots=True)
class Followed:
    """Settings from files, in order of precedence, the files' paths, and what could not be found."""

    settings: tuple[Setting, ...] = ()
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def follow(
    files: Files, program: str, launch: Launch, launcher: Mapping[str, str], own: Sequence[Setting], command: Command, base: Path
) -> Followed:
    return Followed()
