"""Reads a launch file of any kind: chooses the reader by name and content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import Document, DocumentKind, ScriptError
from advisor.script.files import Files, load
from advisor.script.keyed import Keyed, settings_of
from advisor.script.launch import Launch, Script

_SUFFIXES: dict[str, DocumentKind] = {
    ".sh": "shell",
    ".bash": "shell",
    ".slurm": "shell",
    ".sbatch": "shell",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".py": "python",
}
_SHEBANG = re.compile(rb"#!\s*\S*?(?:/env\s+(?:-S\s+)?)?(\w+)[\d.]*\s")


def read_script(
    path: Path, *, positional: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> Script:
    """Read a launch file and everything it is followed into.

    `positional` are arguments that the script is given, `environment` what a Python file is run with. Raises
    ScriptError, one sentence with file and line, where the file is missing, unreadable, empty, binary, too large,
    or not well-formed.
    """
    return read_documents(Files(), Path(path), positional, environment)


def read_documents(
    files: Files, path: Path, positional: tuple[str, ...], environment: Mapping[str, str] | None = None
) -> Script:
    """`read_script` over files that may already be in memory."""
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        document = files.known(path) if files.given is not None else load(path, "shell")
        kind = kind_of(document)
    if kind == "shell":
        return _shell(files, path, positional)
    number = files.add(path, kind)
    launch = config_launch(files.documents[number], environment)
    return Script(tuple(files.documents), (launch,), (), positional, environment or {})


def kind_of(document: Document) -> DocumentKind:
    """The kind of a file whose name does not tell: by its shebang, or by its first character."""
    shebang = _SHEBANG.match(document.data[:200])
    if shebang and shebang.group(1).startswith(b"python"):
        return "python"
    return "json" if document.data.lstrip()[:1] == b"{" and document.path.suffix else "shell"


def _shell(files: Files, path: Path, positional: tuple[str, ...]) -> Script:
    from advisor.bash.words import Unterminated
    from advisor.script.shell import read_shell

    try:
        reading = read_shell(files, path, positional)
    except Unterminated as error:
        line = files.documents[0].line_of(error.at)
        where = {"file": clean_line(str(path)), "line": line}
        raise ScriptError(
            say("{file}, line {line}: {what} opens here and never closes.", **where, what=say(error.what))
        ) from error
    notes = [clean_line(note) for note in dict.fromkeys(reading.trace.notes)]
    if b"\r\n" in files.documents[0].data:
        notes.append(say("The file has Windows line endings; bash on Linux takes the carriage returns for text."))
    launches = tuple(item.launch for item in reading.launches)
    if not launches and reading.trace.whole:
        from advisor.script.fragment import read_fragment

        pasted = read_fragment(files.documents[0])
        launches = (pasted,) if pasted is not None else ()
    return Script(tuple(files.documents), launches, tuple(notes), positional)


def read_keyed(document: Document) -> Keyed:
    """A YAML or JSON document to the byte. Raises ScriptError."""
    from advisor.script.json_file import read_json
    from advisor.script.yaml_file import read_yaml

    return read_json(document) if document.kind == "json" else read_yaml(document)


def config_launch(document: Document, environment: Mapping[str, str] | None = None) -> Launch:
    """A YAML, JSON or Python file as one launch. Raises ScriptError where it is not well-formed."""
    if document.kind == "python":
        from advisor.script.python_file import python_launch, read_python

        return python_launch(read_python(document, environment))
    settings = settings_of(document, read_keyed(document).entries)
    return Launch(0, "", (), {}, tuple(settings), files=(str(document.path),))
