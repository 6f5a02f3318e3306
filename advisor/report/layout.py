"""Lays out plain text: wraps and pads by terminal columns, and has a form for terminals without Unicode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advisor.hostile import cells
from advisor.line_breaks import wrapped
from advisor.redact import redact

WIDTH = 78
"""Columns of the text report: fits 80 with a margin, and a quoted mail."""

_ASCII = str.maketrans(
    {
        "→": "->", "−": "-", "–": "-", "—": "-", "×": "x", "…": "...", "·": "|", "≥": ">=", "≤": "<=",
        "’": "'", "“": '"', "”": '"', "\u202f": " ", "\u00a0": " ",
    }
)  # fmt: skip


def plain_ascii(text: str) -> str:
    """The same text in ASCII: signs are spelled, anything else becomes "?"."""
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def spelled(text: str, encoding: str) -> str:
    """The same text in what `encoding` has: signs that it lacks are spelled, anything else becomes "?"."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        kept = {character: character.encode(encoding, "ignore") for character in set(text)}
        has = "".join(character if kept[character] else character.translate(_ASCII) for character in text)
        return has.encode(encoding, "replace").decode(encoding)
    return text


def wrap(text: str, indent: int = 0, hanging: int | None = None, width: int = WIDTH) -> list[str]:
    """Lines of at most `width` columns; the first is indented by `indent`, the others by `hanging` (default: the same).
    Wide characters count two columns; a word too long for a line is cut across lines."""
    hanging = indent if hanging is None else hanging
    lines = wrapped(redact(text), width - hanging, width - indent, longest=100_000)
    return [" " * (hanging if i else indent) + line for i, line in enumerate(lines)]


def wrap_each(texts: Iterable[str], indent: int = 0, hanging: int | None = None) -> list[str]:
    """Several texts, each wrapped by itself."""
    return [line for text in texts for line in wrap(text, indent, hanging)]


def pad(text: str, width: int) -> str:
    """`text` filled with spaces to `width` columns; longer stays as it is."""
    return text + " " * max(0, width - cells(text))


def table(
    rows: Sequence[Sequence[str]], indent: int = 2, right: frozenset[int] = frozenset(), gap: int = 2
) -> list[str]:
    """Columns as wide as their widest cell; those in `right` are aligned right. Rows must be equally long."""
    if not rows:
        return []
    widths = [max(cells(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        fields = [
            " " * max(0, w - cells(cell)) + cell if i in right else pad(cell, w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((" " * indent + (" " * gap).join(fields)).rstrip())
    return lines


def fields_of(noun: object, names: str) -> dict[str, Any]:
    """These fields of a noun for JSON, in this order: tuples as lists, mappings as dicts, all else as it is."""
    values = ((name, getattr(noun, name)) for name in names.split())
    return {
        name: list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
        for name, value in values
    }


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A heading and its lines with a blank line before; nothing where there are no lines."""
    return ["", title, *lines] if lines else []


def join(lines: Iterable[str]) -> str:
    """One text, no trailing spaces, ending in a newline."""
    return "\n".join(line.rstrip() for line in lines) + "\n"
