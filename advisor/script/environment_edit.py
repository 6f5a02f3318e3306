"""Edits what stands beside the command: variables of its environment, and the limit of the job, in the script's #SBATCH
lines or in the command that starts it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from msgspec.structs import replace

from advisor.bash.text import ByteRange, ShellValue, cut, joined
from advisor.bash.wrapped import started_under
from advisor.bash.writing import is_safe, quote, within
from advisor.language import say
from advisor.regex import regex
from advisor.script.document import (
    Changes,
    Document,
    EditRefused,
    EditRequest,
    ScriptError,
    comment_text,
    encoded,
    refused,
)
from advisor.script.keyed import read_json
from advisor.script.literal import target
from advisor.script.shell_edit import ShellEditor

_NAME = regex(r"[A-Za-z_]\w*\Z")


def edit_environment(editor: ShellEditor, wanted: EditRequest) -> None:
    """Set or remove one environment variable where the workers will see it. Raises EditRefused."""
    if not _NAME.match(wanted.key):
        raise refused("{name} is not the name of an environment variable.", name=wanted.key)
    if wanted.value is not None and not isinstance(wanted.value, str):
        raise refused("{name} takes one value.", name=wanted.key)
    name = wanted.key.encode()
    pieces = editor.launch.command.environment.get(name)
    if _runtime(editor, wanted, wanted.value):
        return
    if editor.launch.found.wrapped.unknown:
        raise refused("`env` may be given {name} by words that are not known here: set it there.", name=wanted.key)
    if wanted.value is None:
        _remove(editor, wanted, name, pieces)
    elif _is_alone(editor, wanted) and pieces is not None and _in_place(editor, wanted, wanted.value, pieces):
        return
    else:
        _add(editor, wanted, wanted.value, name)


def _is_alone(editor: ShellEditor, wanted: EditRequest) -> bool:
    """Whether what is exported reaches nobody who should not have it."""
    return wanted.everywhere or all(other.group == editor.launch.group for other in editor.reading.launches)


def _in_place(editor: ShellEditor, wanted: EditRequest, value: str, pieces: ShellValue) -> bool:
    found = target(pieces, editor.reading.data)
    command, given = editor.launch.command, {one.word for one in editor.launch.found.wrapped.given}
    uses = editor.reading.uses.of(found.place) if found is not None else []
    own = (use.label == "$" + wanted.key or (use.number == command.number and use.field in given) for use in uses)
    return all(own) and editor.replace_literal(pieces, value, wanted, False, own_word=True)


def _add(editor: ShellEditor, wanted: EditRequest, value: str, name: bytes) -> None:
    """A new line above the launch; a variable in the command's own prefix would win over it."""
    start = _statement(editor)
    assignment = editor.prefix(name)
    if assignment is not None:
        place = editor.launch.command.text.place(assignment.value.start, assignment.value.end, "plain")
        if place is None or place.doc != 0 or place.context == "nested":
            why = say("{name} is set inside a nested command and cannot be overridden safely.", name=wanted.key)
            raise EditRefused(why)
        editor.write(place, encoded(quote(value) if value else ""), wanted)
        return
    if name in editor.launch.command.prefixes:
        raise refused("{name} is set inside the command and cannot be overridden safely.", name=wanted.key)
    editor.comment(wanted, start)
    if not _is_alone(editor, wanted):
        _before_command(editor, wanted, value, name)
        return
    text = b"export " + name + b"=" + encoded(quote(value) if value else "")
    editor.line(text, start, wanted.key, (len(b"export ") + len(name) + 1, len(text)))


def _before_command(editor: ShellEditor, wanted: EditRequest, value: str, name: bytes) -> None:
    """In front of the command, so that no other launch gets it."""
    simple, source = editor.launch.command.simple, editor.launch.command.text
    place = source.place(simple.start, simple.start, "plain")
    if place is None or place.doc != 0 or (source.nested and not is_safe(value)):
        raise refused("{name} would reach other launches of the script as well.", name=wanted.key)
    head, shown = name + b"=", encoded(quote(value) if value else "")
    at = (len(head), len(head) + len(shown))
    editor.changes.replace(0, place.start, place.start, head + shown + b" ", wanted.key, at)


def _remove(editor: ShellEditor, wanted: EditRequest, name: bytes, pieces: ShellValue | None) -> None:
    if pieces is None:
        return
    assignment = editor.prefix(name)
    if assignment is not None or name in editor.launch.command.prefixes:
        raise refused("{name} is set in front of the command; take it away by hand.", name=wanted.key)
    start = _statement(editor)
    editor.comment(wanted, start)
    editor.line(b"unset " + name, start)


def _statement(editor: ShellEditor) -> int:
    """Where the launch's own statement begins in the given script."""
    command = editor.launch.command
    place = command.text.place(command.simple.start, command.simple.start, "plain")
    if place is None:
        sources = command.text.deps(command.simple.start, command.simple.start + 1)
        place = sources[0] if sources else None
    return editor.in_script(place).start


def _runtime(editor: ShellEditor, wanted: EditRequest, value: str | None) -> bool:
    """Edit the JSON of `--runtime-env-json`; False where it has no place for the change."""
    index = editor.launch.found.wrapped.runtime
    if index is None:
        return False
    pieces = editor.launch.command.fields[index].pieces
    prefix = b"--runtime-env-json="
    if joined(pieces).startswith(prefix):
        pieces = cut(pieces, len(prefix))
    text = b"".join(b"?" * max(len(piece.text), 1) if piece.reason else piece.text for piece in pieces)
    pieces = tuple(replace(piece, text=piece.text or b"?") if piece.reason else piece for piece in pieces)
    try:
        keyed = read_json(Document(Path("runtime-env"), text, "json"))
    except ScriptError:
        return False
    entry, inner, root = keyed.find(f"env_vars.{wanted.key}"), keyed.tables.get("env_vars"), keyed.tables.get("")
    table = inner or root
    if value is None or table is None:
        return False
    if entry is not None:
        return _write_json(editor, wanted, pieces, entry.start, entry.end, json.dumps(value))
    pair = f"{json.dumps(wanted.key)}: {json.dumps(value)}"
    new = (pair if table is inner else f'"env_vars": {{{pair}}}') + ("" if table.empty else ", ")
    return _write_json(editor, wanted, pieces, table.start, table.start, new)


def _write_json(editor: ShellEditor, wanted: EditRequest, pieces: ShellValue, start: int, end: int, new: str) -> bool:
    """Replace bytes of the JSON text where they stand in the script, quoted as the text around them is."""
    before, covered = cut(pieces, start - 1, start), cut(pieces, start, end)
    places: list[ByteRange | None] = [piece.place for piece in (*before, *covered)]
    first = before[0].place if before else None
    if first is None or first.doc != 0 or any(place is None or place.context != first.context for place in places):
        return False
    last = places[-1]
    encodable = within(new, first.context, own_word=True, alone=False) if not is_safe(new) else new
    if first.context not in ("single", "double") or encodable is None or last is None or last.end < first.end:
        return False
    editor.changes.replace(0, first.end, last.end if covered else first.end, encoded(encodable), wanted.key)
    editor.comment(wanted, first.start)
    return True


_PLAIN = regex(r"[\w.:-]+")


def job_option(data: bytes, option: str) -> tuple[int, int] | None:
    """Where the value of an option stands that limits the job; None without."""
    place = _of_slurm(data, option)
    if place is None and (found := started_under(data)) is not None and found.option == option and found.is_alone:
        place = found.start, found.start + len(found.text)
    return place


def _of_slurm(data: bytes, option: str) -> tuple[int, int] | None:
    """Where the value stands that Slurm takes for an option: its last one before the first command."""
    named = re.compile(rb"(?<=\s)" + re.escape(option.encode()) + rb"(?:=|[ \t]+)(?P<value>[\w.:-]+)(?=\s|\Z)")
    found: tuple[int, int] | None = None
    at = 0
    for line in data.splitlines(keepends=True):
        if line.strip() and not line.startswith(b"#"):
            break
        if re.match(rb"#SBATCH\s", line):
            for match in named.finditer(line.partition(b" #")[0] + b"\n"):
                found = at + match.start("value"), at + match.end("value")
        at += len(line)
    return found


def edit_job_option(document: Document, wanted: EditRequest, changes: Changes) -> None:
    """Give an option of the #SBATCH lines another value. Raises EditRefused."""
    place = job_option(document.data, wanted.key)
    if place is None or not isinstance(wanted.value, str) or not _PLAIN.fullmatch(wanted.value):
        raise refused("{file} sets no {key} that could be changed.", wanted.key, file=document.path)
    changes.replace(0, *place, wanted.value.encode(), wanted.key)
    found = started_under(document.data)
    begun = found is not None and place[0] == found.start
    line = found.command if found is not None and begun else document.data.rfind(b"\n", 0, place[0]) + 1
    newline = b"\r\n" if document.data[line:].partition(b"\n")[0].endswith(b"\r") else b"\n"
    changes.replace(0, line, line, b"# " + comment_text(wanted.comment) + newline)
