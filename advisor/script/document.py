"""Defines the nouns of a launch file: exact bytes, settings with the literal that decides each, edits, changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.regex import regex

DocumentKind = Literal["shell", "yaml", "json", "toml", "python"]
Origin = Literal["command", "file", "environment", "default", "log"]
"""Where a setting is decided: command line, followed config file, environment, the code, or read in a log."""
Value = str | tuple[str, ...]
"""A value is its text as the program would get it. A bare flag is the empty tuple, several words after it a tuple."""


class ScriptError(Exception):
    """A launch file that cannot be read: one sentence naming file (and line). The door turns it into exit 2."""


class EditRefused(Exception):  # noqa: N818  (an answer, not a failure)
    """An edit that cannot be made exactly: one sentence saying why. Nothing has been written."""


def refused(text: str, key: str = "", /, **told: object) -> EditRefused:
    """An edit refused in a sentence, with the setting that it is about; names may be as strangers wrote them."""
    named = {"key": key, **told} if key else told
    return EditRefused(
        say(text, **{k: clean_line(str(v)) if isinstance(v, (str, Path)) else v for k, v in named.items()})
    )


ANEW = mark("{key} is another one in every run ({why}): change it where it is chosen.")
"""Why a value that is drawn, or taken from a table, is not overridden by one for all runs."""


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
    trainer: int | None = None
    """Which of the several trainers of a Python file is asked for; None: the last."""

    def line_of(self, offset: int) -> int:
        """1-based line of a byte offset."""
        return self.data.count(b"\n", 0, offset) + 1

    @property
    def newline(self) -> bytes:
        """How its lines end."""
        return b"\r\n" if b"\r\n" in self.data else b"\n"

    def line_end(self, offset: int) -> int:
        """The end of the line of a byte, before what ends it."""
        end = self.data.find(b"\n", offset)
        return len(self.data) if end < 0 else end


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
    follows: tuple[str, ...] = ()
    """Keys whose values it takes by `${key}`, one through the other; of an unresolved one, the key that it equals."""

    @property
    def text(self) -> str:
        """The value as one string; "true" for a bare flag, "" where unresolved."""
        if self.value is None:
            return ""
        if isinstance(self.value, tuple):
            return " ".join(self.value) if self.value else "true"
        return self.value


def without_dashes(key: str) -> str:
    """A key without the dashes of an option; a dotted option in kebab case as it is called in a file."""
    bare = key.lstrip("-")
    return bare.replace("-", "_") if key.startswith("--") and "." in bare else bare


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
    kind: Literal["setting", "environment", "job", "launcher"] = "setting"
    """"job": an option of the batch script's own #SBATCH lines, or of the command that starts the run under a limit;
    "launcher": one of torchrun, accelerate or deepspeed, before the program."""
    everywhere: bool = False
    """Of a variable: every launch of the script may get it. Otherwise only the launch that is edited does."""
    form: str = ""
    """How the command takes what it has not: "assignments" are key=value, no options; "additions" ++key=value, where no
    config file has the key either; "dashes" options in kebab case; it may take "nothing"."""
    in_file: bool = False
    """It goes into the config file that the command names, not beside it."""


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


COMMENT = "rl-oom-advisor: "
_ODD = regex(rb"\A\xef\xbb\xbf|\r(?=\n)")
"""Bytes that editors of other systems put into a text."""


class Changes(Struct):
    """Edits by document number. `values` say where in an edit's new bytes the value of a key stands."""

    documents: Sequence[Document]
    edits: dict[int, list[Edit]] = field(default_factory=dict)
    values: dict[str, tuple[int, Edit, int, int]] = field(default_factory=dict)

    def replace(
        self, doc: int, start: int, end: int, new: bytes, key: str = "", value: tuple[int, int] | None = None
    ) -> None:
        """Replace bytes `start:end`; `value` is where the key's value stands in `new`, the whole by default."""
        edit, made = Edit(start, end, new), self.edits.setdefault(doc, [])
        edit = next((one for one in made if one == edit and start < end), edit)  # one literal, two settings alike
        if all(one is not edit for one in made):
            made.append(edit)
        if key:
            low, high = value or (0, len(new))
            self.values[key] = (doc, edit, low, high)

    def as_bash_reads_it(self, doc: int) -> None:
        """What stands there as it was read: without the byte order mark and the carriage returns of Windows, which bash
        takes for text. Nothing where nothing is changed."""
        data, made = self.documents[doc].data, self.edits.get(doc, [])
        if not made:
            return
        for edit in [item for item in made if b"\r\n" in item.new]:
            made[made.index(edit)] = plain = replace(edit, new=edit.new.replace(b"\r\n", b"\n"))
            for key, (number, other, low, high) in self.values.items():
                if other is edit:
                    low, high = (at - edit.new.count(b"\r\n", 0, at) for at in (low, high))
                    self.values[key] = (number, plain, low, high)
        covered = [(edit.start, edit.end) for edit in made]
        odd = [(found.start(), found.end()) for found in _ODD.finditer(data)]
        made += [Edit(*one, b"") for one in odd if not any(start <= one[0] < end for start, end in covered)]

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


def effective(settings: list[Setting]) -> list[Setting]:
    """Later settings win; earlier ones of the same key are marked as not in force."""
    last = {setting.key: number for number, setting in enumerate(settings)}
    return [s if last[s.key] == n else replace(s, effective=False) for n, s in enumerate(settings)]
