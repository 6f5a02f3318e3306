"""Reads arguments as settings: `key=value` words (hydra, OmegaConf) and `--key value…` options (argparse)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from advisor.bash.state import CommandWord
from advisor.bash.text import ShellValue, cut, joined, known, why_unknown
from advisor.regex import regex
from advisor.script.document import Value

_ASSIGNMENT = regex(r"(\+\+|\+|~)?([A-Za-z_][\w./@:\-\[\]]*)=", re.DOTALL)
_DELETION = regex(r"~([A-Za-z_][\w./@:\-\[\]]*)$")
_OPTION = regex(r"--?[A-Za-z]")
_UNKNOWN = "\0"
_SWITCHES = ("--multirun",)
"""Options of hydra's that take no word."""
DELETES = "~"
"""What a key begins with that hydra takes away; it is no value of that key."""

ArgumentStyle = Literal["assignment", "option", "joined"]
"""`key=value`, `--key value`, `--key=value`."""

_FILE = regex(r"\.(?:ya?ml|json|toml|py)\Z")
_SCALAR = regex(r"(?:[-+.\deE]+|(?i:true|false))\Z")


class Argument(Struct, frozen=True):
    """One setting among the arguments. `fields` are the words that make it, the key's first; `values` its values."""

    key: str
    marker: str
    style: ArgumentStyle
    fields: tuple[int, ...]
    values: tuple[ShellValue, ...]

    @property
    def value(self) -> Value | None:
        """The value as the program gets it; None where a part is not known."""
        if not all(known(pieces) for pieces in self.values):
            return None
        texts = [joined(pieces).decode("utf-8", "replace") for pieces in self.values]
        return texts[0] if len(texts) == 1 else tuple(texts)

    @property
    def ending(self) -> str:
        """The known text behind the last unknown part of a single value; "" where the unknown part ends it."""
        if len(self.values) != 1:
            return ""
        texts = [_UNKNOWN if piece.reason else piece.text.decode("utf-8", "replace") for piece in self.values[0]]
        return "".join(texts).rpartition(_UNKNOWN)[2]

    @property
    def reason(self) -> str:
        """Why the value is not known."""
        return next((why for pieces in self.values if (why := why_unknown(pieces))), "")


def shown(item: CommandWord) -> str:
    """The text of an argument as far as it is known; an unknown part stands as NUL."""
    return "".join(_UNKNOWN if piece.reason else piece.text.decode("utf-8", "replace") for piece in item.pieces)


def read_arguments(fields: Sequence[CommandWord], start: int) -> list[Argument]:
    """Settings among `fields[start:]`, in order. An option takes the words up to the next option; where `key=value`
    words occur as well it takes at most one."""
    texts = [shown(item) for item in fields]
    takes = [bool(_OPTION.match(text)) and "=" not in text and text not in _SWITCHES for text in ["", *texts[start:]]]
    mixed = any(_ASSIGNMENT.match(text) and not taken for text, taken in zip(texts[start:], takes, strict=False))
    out: list[Argument] = []
    at = start
    while at < len(texts):
        text = texts[at]
        if _OPTION.match(text):
            argument, at = _option(fields, texts, at, mixed)
            out.append(argument)
            continue
        found = _ASSIGNMENT.match(text)
        if found and _UNKNOWN not in found.group() and not ("/" in found.group() and _FILE.search(text)):
            value = cut(fields[at].pieces, len(found.group().encode("utf-8")))
            deletes, marker = found.group(1) == DELETES, found.group(1) or ""
            key = DELETES + found.group(2) if deletes else found.group(2)
            out.append(Argument(key, "" if deletes else marker, "assignment", (at,), (value,)))
        elif _DELETION.match(text):
            out.append(Argument(text, "", "assignment", (at,), ((),)))
        at += 1
    return out


def _option(fields: Sequence[CommandWord], texts: Sequence[str], at: int, mixed: bool) -> tuple[Argument, int]:
    text = texts[at]
    key, equals, _ = text.partition("=")
    if equals and text.startswith("--") and _UNKNOWN not in key:
        value = cut(fields[at].pieces, len(key.encode("utf-8")) + 1)
        return Argument(key, "", "joined", (at,), (value,)), at + 1
    values: list[int] = []
    end = at + 1
    while end < len(texts) and not _OPTION.match(texts[end]) and text not in _SWITCHES:
        dotted = _ASSIGNMENT.match(texts[end])
        if mixed and (values or (dotted and "." in dotted.group(2))):
            break
        loose = all(piece.reason and not piece.quoted for piece in fields[end].pieces)
        if values and loose and fields[end].pieces:  # it may be more options, or nothing
            break
        if values and _FILE.search(texts[end]) and _SCALAR.match(texts[values[0]]):  # the program's own argument
            break
        values.append(end)
        end += 1
    pieces = tuple(fields[index].pieces for index in values)
    return Argument(text.rstrip(_UNKNOWN), "", "option", (at, *values), pieces), end
