"""Reads settings pasted without the command they belong to: lines `a.b=c` or `--key value`, or a config call of Python.

They can be diagnosed and sized; there is no launch to edit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from advisor.bash.text import line_at, line_starts
from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.script.document import Document, ScriptError, Setting, Span
from advisor.script.launch import Launch

NOTE = mark("No training command was found; lines that look like its settings are read as such.")
_OVERRIDE = re.compile(
    rb"^[ \t]*(?P<marker>\+{0,2})(?P<key>[A-Za-z_][\w-]*(?:\.[\w-]+)+)=(?P<value>[^\s\\]*)", re.MULTILINE
)
_OPTION = re.compile(
    rb"^[ \t]*(?P<key>--[A-Za-z][\w.-]*)(?:(?:=|[ \t]+)(?P<value>[^\s\\-][^\s\\]*))?[ \t]*\\?$", re.MULTILINE
)
_OUTSIDE = (b"$", b"`")


def read_fragment(document: Document) -> Launch | None:
    """The settings of a fragment as a launch without a program; None where nothing looks like one."""
    called = _python(document)
    if called is not None:
        return called
    settings = [*_lines(document)]
    if not settings:
        return None
    last = {setting.key: number for number, setting in enumerate(settings)}
    in_force = tuple(replace(s, effective=last[s.key] == n) for n, s in enumerate(settings))
    return Launch(0, "", (), {}, in_force, notes=(say(NOTE),))


def _lines(document: Document) -> Iterator[Setting]:
    found = [*_OVERRIDE.finditer(document.data), *_OPTION.finditer(document.data)]
    for match in sorted(found, key=lambda m: m.start()):
        raw = match.group("value")
        key = clean_line(match.group("key").decode(errors="replace"))
        marker = match.groupdict().get("marker") or b""
        start = match.start("value") if raw is not None else match.end("key")
        line = line_at(line_starts(document.data), start)
        span = Span(str(document.path), line, start, match.end("value") if raw is not None else start)
        if raw is None:
            yield Setting(key, (), "command", span=span)
        elif any(sign in raw for sign in _OUTSIDE):
            why = say("a variable of a command not given")
            yield Setting(key, None, "command", resolved=False, span=span, reason=why)
        else:
            text = clean_line(raw.decode(errors="replace")).strip("\"'")
            yield Setting(key, text, "command", span=span, marker=marker.decode())


def _python(document: Document) -> Launch | None:
    """The keywords of a `…Config(…)` call, where the text is Python."""
    from advisor.script.python_file import python_launch, read_python

    if b"Config(" not in document.data and b"Arguments(" not in document.data:
        return None
    try:
        launch = python_launch(read_python(replace(document, kind="python")))
    except ScriptError:
        return None
    return replace(launch, program="", notes=(say(NOTE), *launch.notes)) if launch.settings else None
