"""Reads a launch file of any kind: chooses the reader by name and content."""

from __future__ import annotations

from pathlib import Path

from advisor.hostile import clean_line
from advisor.script.document import DocumentKind, ScriptError
from advisor.script.files import Files
from advisor.script.launch import Script
from advisor.script.shell_words import Unterminated


def read_script(path: Path, *, positional: tuple[str, ...] = ()) -> Script:
    """Read a launch file and everything it is followed into.

    `positional` are arguments that the script is given. Raises ScriptError, one sentence with file and line,
    where the file is missing, unreadable, empty, binary, too large, or not well-formed.
    """
    return read_files(Files(), path, positional)


def read_files(files: Files, path: Path, positional: tuple[str, ...]) -> Script:
    from advisor.script.shell import read_shell
    try:
        reading = read_shell(files, path, positional)
    except Unterminated as e:
        data = files.documents[0].data
        line = files.documents[0].line_of(e.at)
        raise ScriptError(f"{clean_line(str(path))}, line {line}: {e.what} opens here and never closes.") from e
    return Script(tuple(files.documents), tuple(l.launch for l in reading.launches), tuple(reading.shell.notes), positional)
