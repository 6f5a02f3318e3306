"""Edits of several documents as they are collected, and where each changed key then stands."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.language import say
from advisor.script.document import Document, Edit, EditRefused, Rewrite, Span, apply_edits

COMMENT = "rl-oom-advisor: "


class Changes(Struct):
    """Edits by document number. `values` say where in an edit's new bytes the value of a key stands."""

    documents: Sequence[Document]
    edits: dict[int, list[Edit]] = field(default_factory=dict)
    values: dict[str, tuple[int, Edit, int, int]] = field(default_factory=dict)

    def replace(
        self, doc: int, start: int, end: int, new: bytes, key: str = "", value: tuple[int, int] | None = None
    ) -> None:
        """Replace bytes `start:end`; `value` is where the key's value stands in `new`, the whole by default."""
        edit = Edit(start, end, new)
        self.edits.setdefault(doc, []).append(edit)
        if key:
            low, high = value or (0, len(new))
            self.values[key] = (doc, edit, low, high)

    def rewrites(self) -> tuple[Rewrite, ...]:
        """All edits applied. Raises EditRefused where two want the same bytes."""
        out: list[Rewrite] = []
        for doc, listed in sorted(self.edits.items()):
            document = self.documents[doc]
            ordered = sorted(listed, key=lambda edit: (edit.start, edit.end))
            new = apply_edits(document.data, tuple(ordered))
            if new != document.data:
                out.append(Rewrite(document, new, tuple(ordered), self.touched(doc, ordered, new)))
        return tuple(out)

    def touched(self, doc: int, ordered: Sequence[Edit], new: bytes) -> dict[str, Span]:
        """Where each changed key stands in the new bytes."""
        starts: dict[int, int] = {}
        shift = 0
        for edit in ordered:
            starts[id(edit)] = edit.start + shift
            shift += len(edit.new) - (edit.end - edit.start)
        out: dict[str, Span] = {}
        for key, (number, edit, low, high) in self.values.items():
            if number == doc and id(edit) in starts:
                start = starts[id(edit)] + low
                end = starts[id(edit)] + high
                out[key] = Span(str(self.documents[doc].path), new.count(b"\n", 0, start) + 1, start, end)
        return out


def comment_text(comment: str) -> bytes:
    """A comment as it goes into a file, without the sign that begins it."""
    return (COMMENT + clean_line(comment, 300)).encode("utf-8")


def encoded(text: str) -> bytes:
    """A value's bytes. Raises EditRefused for a NUL, which no file can carry."""
    if "\0" in text:
        raise EditRefused(say("A value with a NUL byte cannot be written."))
    return text.encode("utf-8", "surrogateescape")
