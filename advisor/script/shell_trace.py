"""What following a script leaves behind: the commands it would run, and what every literal has a part in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

from msgspec import Struct

from advisor.script.program import Found
from advisor.script.shell_command import Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_state import Field
from advisor.script.shell_text import Piece, Pieces, Place, Text, cut, joined
from advisor.script.shell_words import scan_quoted
from advisor.script.wrapper import Wrapped

Load = Callable[[bytes, bytes], "tuple[int, bytes] | None"]
"""(path, path of the script) → number and bytes of a document, or None where it is not found."""


class Flow(Enum):
    """How a statement ended."""

    NEXT = auto()
    EXIT = auto()
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()


class Command(Struct, frozen=True):
    """A command as it would be run. `simple` and `text` are where it is written."""

    number: int
    fields: tuple[Field, ...]
    environment: Mapping[bytes, Pieces]
    prefixes: frozenset[bytes]
    simple: Simple
    text: Text
    found: Found | None
    files: Mapping[bytes, Pieces]
    folder: bytes = b""
    """Where the script had gone with `cd` by then."""


class Use(Struct, frozen=True):
    """A literal and what it has a part in: argument `field` of command `number`, or `label` where it is no command."""

    place: Place
    number: int
    field: int
    label: str = ""


def heredoc(command: Simple, expander: Expander) -> Pieces | None:
    """The text of a command's heredoc or here-string; None where it has none."""
    for redirect in reversed(command.redirects):
        if redirect.operator == b"<<<":
            return (*expander.value(redirect.target), Piece(b"\n"))
        if redirect.body is not None:
            start, end = redirect.body
            if redirect.expands:
                return tuple(expander.pieces(scan_quoted(expander.text.data, start, end, "heredoc")))
            return (Piece(expander.text.data[start:end], expander.text.place(start, end, "heredoc")),)
    return None


def wrapped_environment(
    wrapped: Wrapped, fields: Sequence[Field], environment: Mapping[bytes, Pieces], own: frozenset[bytes]
) -> tuple[dict[bytes, Pieces], frozenset[bytes]]:
    """What a command behind wrappers finds in its environment, and which of it they or its own prefix give it."""
    removed = {name.encode("utf-8", "surrogateescape") for name in wrapped.removed}
    out = {} if wrapped.elsewhere else {name: value for name, value in environment.items() if name not in removed}
    given = dict(_assignment(fields[one.word], one.start, one.end) for one in wrapped.given)
    return {**out, **given}, frozenset((own & out.keys()) | given.keys())


def _assignment(item: Field, start: int, end: int | None) -> tuple[bytes, Pieces]:
    """`NAME=value` in bytes `start:end` of a word, as a name and the pieces of the value."""
    text = joined(item.pieces)[start:end]
    at = text.find(b"=")
    return text[:at], cut(item.pieces, start + at + 1, end)
