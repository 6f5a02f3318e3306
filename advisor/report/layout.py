"""Lays out plain text: wraps and pads by terminal columns, and has a form for terminals without Unicode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.hostile import cells, clean_line
from advisor.line_breaks import wrapped
from advisor.redact import redact

WIDTH = 78
"""Columns of the text report: fits 80 with a margin, and a quoted mail."""

_ASCII = str.maketrans(
    {
        "→": "->",
        "−": "-",
        "–": "-",
        "—": "-",
        "×": "x",
        "…": "...",
        "·": "|",
        "≥": ">=",
        "≤": "<=",
        "’": "'",
        "“": '"',
        "”": '"',
        "\u202f": " ",
        "\u00a0": " ",
    }
)


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

    Wide characters count two columns; a word too long for a line is cut across lines.
    """
    hanging = indent if hanging is None else hanging
    lines = wrapped(redact(text), width - hanging, width - indent, longest=100_000)
    return [" " * (hanging if i else indent) + line for i, line in enumerate(lines)]


def cut(text: str, width: int) -> str:
    """`text` on one line in at most `width` columns, with "…" where it was longer."""
    text = clean_line(redact(text))
    if cells(text) <= width:
        return text
    kept, used = "", 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept += character
    return kept + "…"


def cut_front(text: str, width: int) -> str:
    """Like `cut`, but what goes is the front: the end of a path or a key says most."""
    text = clean_line(redact(text))
    if cells(text) <= width:
        return text
    return "…" + cut(text[::-1], width)[:-1][::-1]


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


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A heading and its lines with a blank line before; nothing where there are no lines."""
    return ["", title, *lines] if lines else []


def join(lines: Iterable[str]) -> str:
    """One text, no trailing spaces, ending in a newline."""
    return "\n".join(line.rstrip() for line in lines) + "\n"
