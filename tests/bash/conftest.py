"""Follows a text as bash would, without the rest of the house."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from advisor.bash.state import LauncherMatch, ShellTrace
from advisor.bash.trace import trace

Follow = Callable[..., ShellTrace]


def find_python(words: Sequence[str]) -> LauncherMatch | None:
    """`python FILE …` as a launch that trains; `bash FILE` as a script that is run."""
    if words[:1] == ["python"] and len(words) > 1:
        return LauncherMatch("program", words[1], 2, trains=True)
    return LauncherMatch("file", words[1], 1) if words[:1] == ["bash"] and len(words) > 1 else None


@pytest.fixture
def follow() -> Follow:
    """Follows a text as /job/run.sh; `files` are what it may source or run, by name."""

    def run(text: str, *arguments: bytes, files: Mapping[bytes, str] | None = None) -> ShellTrace:
        given = {name: (number, body.encode()) for number, (name, body) in enumerate((files or {}).items(), 1)}
        return trace(0, text.encode(), b"/job/run.sh", arguments, lambda name, _: given.get(name), find_python)

    return run


def words(followed: ShellTrace, number: int = -1) -> list[str | None]:
    """The words of a launch; None for one that is not known."""
    launches = [command for command in followed.commands if command.found and command.found.kind == "program"]
    return [
        None if any(piece.reason for piece in item.pieces) else item.text.decode() for item in launches[number].fields
    ]
