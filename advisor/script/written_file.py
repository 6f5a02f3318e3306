"""Reads and edits config files that a script writes itself, from a heredoc or `echo`, where they stand in it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from advisor.bash.text import ShellValue, cut, joined, line_at, line_starts
from advisor.script.document import Changes, Document, EditRequest, Setting, Span, refused
from advisor.script.keyed import read_keyed, settings_of
from advisor.script.keyed_edit import KeyedEditor
from advisor.script.literal import target

_EXPANDED = (b"$", b"`", b"\\")


class WrittenFile(Struct, frozen=True):
    """The text that the script writes, as a file of its own, and the pieces that it comes from."""

    document: Document
    pieces: ShellValue


def find_written(files: Mapping[bytes, ShellValue], name: str, folder: bytes = b"") -> WrittenFile | None:
    """The file of that name among those that the script has written, the last one; `folder`: where it is named."""
    named = name.encode("utf-8", "surrogateescape")
    for wanted in (posixpath.normpath(posixpath.join(folder, named)), posixpath.normpath(named)):
        if wanted in files:
            document = Document(Path(name), joined(files[wanted]), "json" if name.endswith(".json") else "yaml")
            return WrittenFile(document, files[wanted])
    return None


def written_settings(written: WrittenFile, prefix: str, documents: Sequence[Document]) -> list[Setting]:
    """Its settings, each with the literal of the script that decides it. Raises ScriptError."""
    data = [document.data for document in documents]
    out: list[Setting] = []
    for setting in settings_of(written.document, read_keyed(written.document).entries, "file", prefix):
        span = setting.span
        found = None if span is None else target(cut(written.pieces, span.start, span.end), data)
        if found is None:
            out.append(replace(setting, span=None))
            continue
        place, path = found.place, str(documents[found.place.doc].path)
        line = line_at(line_starts(data[place.doc]), place.start)
        out.append(replace(setting, span=Span(path, line, place.start, place.end)))
    return out


def edit_written(written: WrittenFile, wanted: EditRequest, prefix: str, changes: Changes) -> None:
    """Change one key in the text of the script. Raises EditRefused where it does not stand there."""
    inside = Changes([written.document])
    KeyedEditor(read_keyed(written.document), written.document, 0, inside, prefix).settings(
        [replace(wanted, comment="")]
    )
    for edit in inside.edits.get(0, []):
        before = cut(written.pieces, edit.start - 1, edit.start)
        covered = cut(written.pieces, edit.start, edit.end)
        places = [piece.place for piece in (*before, *covered) if piece.text]
        first, last = (places[0], places[-1]) if places else (None, None)
        if first is None or last is None or any(p is None or p.doc != 0 or p.context != first.context for p in places):
            raise refused("{key} is written from text that stands elsewhere.", wanted.key)
        safe = first.context == "single" or not any(sign in edit.new for sign in _EXPANDED)
        quoted = {"single": b"'", "double": b'"'}.get(first.context, b"")
        if first.context not in ("heredoc", "single", "double") or not safe or (quoted and quoted in edit.new):
            raise refused("{key} stands in quotes that cannot hold the new value.", wanted.key)
        start = first.end if before else first.start
        changes.replace(0, start, last.end if covered else start, edit.new, wanted.key)
