"""What following a script leaves behind: the commands it would run, and what every literal has a part in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from advisor.script.program import Found
from advisor.script.shell_command import Simple
from advisor.script.shell_expand import Expander
from advisor.script.shell_state import Field
from advisor.script.shell_text import Piece, Pieces, Place, Text, cut, joined
from advisor.script.shell_words import scan_quoted


class Flow(Enum):
    """How a statement ended."""

    NEXT = auto()
    EXIT = auto()
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()


@dataclass(frozen=True, slots=True)
class Command:
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


@dataclass(frozen=True, slots=True)
class Use:
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


def split_assignment(item: Field) -> tuple[bytes, Pieces]:
    """`NAME=value` as a name and the pieces of the value."""
    text = joined(item.pieces)
    at = text.find(b"=")
    return text[:at], cut(item.pieces, at + 1)
