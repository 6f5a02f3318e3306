"""The nouns of a launch file: its exact bytes, a setting, and where the literal that decides it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from advisor.language import say

DocumentKind = Literal["shell", "yaml", "json", "python"]
Origin = Literal["command", "file", "environment", "default", "log"]
"""Where a setting is decided: command line, followed config file, environment, the code, or read in a log."""
Value = str | tuple[str, ...]
"""A value is its text as the program would get it. A bare flag is the empty tuple, several words after it a tuple."""


class ScriptError(Exception):
    """A launch file that cannot be read: one sentence naming file (and line). The door turns it into exit 2."""


class EditRefused(Exception):  # noqa: N818  (an answer, not a failure)
    """An edit that cannot be made exactly: one sentence saying why. Nothing has been written."""


class Span(Struct, frozen=True):
    """A byte range `start:end` of one file; `line` is 1-based."""

    path: str
    line: int
    start: int
    end: int


class Document(Struct, frozen=True):
    """One file's exact bytes, kept whole; every edit is a byte range of `data`."""

    path: Path
    data: bytes
    kind: DocumentKind
    mode: int = 0o644

    def line_of(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return self.data.count(b"\n", 0, offset) + 1


class Setting(Struct, frozen=True):
    """A key, the value the program would get, and the literal that decides it.

    `value` is None and `resolved` False where it depends on the outside; `reason` then says on what.
    `span` is None where no literal of the user's files decides it (defaults, logs).
    `shared_with` names other keys that the same literal decides: editing it in place would move them too.
    `marker` is what the launch writes before the key (hydra's `+`, `++`, `~`; `--` of a flag).
    """

    key: str
    value: Value | None
    origin: Origin
    resolved: bool = True
    effective: bool = True
    span: Span | None = None
    reason: str = ""
    shared_with: tuple[str, ...] = ()
    marker: str = ""
    ending: str = ""
    """The known text behind the last unknown part of an unresolved value: "/models/Qwen2.5-7B" of "$HOME/models/…"."""

    @property
    def text(self) -> str:
        """The value as one string; "true" for a bare flag, "" where unresolved."""
        if self.value is None:
            return ""
        if isinstance(self.value, tuple):
            return " ".join(self.value) if self.value else "true"
        return self.value


class Edit(Struct, frozen=True):
    """Replace bytes `start:end` of a document by `new`."""

    start: int
    end: int
    new: bytes


class Rewrite(Struct, frozen=True):
    """One document after its edits. `old` and `new` are whole files; `edits` are all that moved."""

    document: Document
    new: bytes
    edits: tuple[Edit, ...]
    touched: dict[str, Span] = field(default_factory=dict)
    """Where each edited key now stands, in the *new* bytes."""


class EditRequest(Struct, frozen=True):
    """One change asked for: a native key, its new value (None removes it), and the comment that explains it."""

    key: str
    value: Value | None
    comment: str = ""
    kind: Literal["setting", "environment"] = "setting"
    everywhere: bool = False
    """Of a variable: every launch of the script may get it. Otherwise only the launch that is edited does."""


def apply_edits(data: bytes, edits: tuple[Edit, ...]) -> bytes:
    """Apply non-overlapping edits. Raises EditRefused where two of them overlap."""
    out: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise EditRefused(say("two changes want the same bytes of the file"))
        out += [data[at : edit.start], edit.new]
        at = edit.end
    out.append(data[at:])
    return b"".join(out)
