"""Text as the screens draw it: lines of (words, tone), never markup, so that nothing a log says can be obeyed.

Pure functions from nouns to lines live beside each screen; `page.py` draws what they return.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from advisor.hostile import cells, clean_line

Tone = Literal["plain", "strong", "dim", "good", "bad", "warn", "mark", "title", "added", "removed"]
"""Colour repeats what the words say; no meaning hangs on it."""
TONES: tuple[Tone, ...] = ("plain", "strong", "dim", "good", "bad", "warn", "mark", "title", "added", "removed")


@dataclass(frozen=True, slots=True)
class Span:
    """A run of words in one tone. `text` is clean and has no newline."""

    text: str
    tone: Tone = "plain"


Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a page. Rows with the same `key` are one thing the cursor can stand on; None: only to be read."""

    line: Line
    key: str | None = None


def span(text: str, tone: Tone = "plain") -> Span:
    """A span of whatever text; control sequences and line breaks do not survive."""
    return Span(clean_line(text), tone)


def line(*parts: str | Span) -> Line:
    """A line of strings (plain) and spans."""
    return tuple(span(part) if isinstance(part, str) else part for part in parts)


def plain(of: Line) -> str:
    """The words of a line."""
    return "".join(part.text for part in of)


def width_of(of: Line) -> int:
    """Terminal columns of a line."""
    return sum(cells(part.text) for part in of)


def rows(*lines: Line) -> list[Row]:
    """Lines that are only read."""
    return [Row(one) for one in lines]


def heading(text: str, right: str = "", width: int = 0) -> Row:
    """A section title with an optional column title at the right edge."""
    return Row(
        spread(line(span(text, "title")), line(span(right, "dim")), width) if right else line(span(text, "title"))
    )


BLANK = Row(())


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns, ending in "…" where something was cut."""
    text = clean_line(text)
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    kept, used = [], 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def cut_left(text: str, width: int) -> str:
    """Like `cut`, but keeps the end: paths are told apart by their tails."""
    text = clean_line(text)
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    return "…" + cut(text[::-1], width)[:-1][::-1]


def pad(text: str, width: int) -> str:
    """Exactly `width` columns, left-aligned, cut where too long."""
    text = cut(text, width)
    return text + " " * (width - cells(text))


def pad_left(text: str, width: int) -> str:
    """Exactly `width` columns, right-aligned."""
    text = cut(text, width)
    return " " * (width - cells(text)) + text


def crop(of: Line, width: int) -> Line:
    """A line cut to `width` columns with "…"."""
    if width_of(of) <= width:
        return of
    kept: list[Span] = []
    left = width
    for part in of:
        size = cells(part.text)
        if size >= left:
            kept.append(Span(cut(part.text + " ", left), part.tone))
            break
        kept.append(part)
        left -= size
    return tuple(kept)


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` and `right` at the two edges of `width` columns; `left` gives way."""
    room = width - width_of(right)
    if room < 8:
        return crop(left, width)
    left = crop(left, room - 1)
    return (*left, Span(" " * (room - width_of(left))), *right)


def wrap(text: str, width: int) -> list[str]:
    """Break a paragraph at spaces into lines of at most `width` columns; longer words are broken. O(len(text))."""
    width = max(width, 4)
    out: list[str] = []
    used = 0
    for word in clean_line(text).split():
        for piece in _pieces(word, width):
            size = cells(piece)
            if out and used + 1 + size <= width:
                out[-1] += f" {piece}"
                used += 1 + size
            else:
                out.append(piece)
                used = size
    return out


def _pieces(word: str, width: int) -> list[str]:
    """A word in pieces of at most `width` columns."""
    if len(word) * 2 <= width or cells(word) <= width:
        return [word]
    pieces, used = [""], 0
    for character in word:
        size = cells(character)
        if used + size > width:
            pieces.append("")
            used = 0
        pieces[-1] += character
        used += size
    return pieces


def paragraph(text: str, width: int, indent: int = 0, tone: Tone = "plain") -> list[Row]:
    """A wrapped paragraph, each line indented by `indent` columns."""
    margin = " " * indent
    return [Row(line(margin, span(part, tone))) for part in wrap(text, width - indent)]


def flow(pieces: Iterable[str], width: int, indent: int = 0, tone: Tone = "plain", gap: str = "  ") -> list[Row]:
    """Pieces side by side, `gap` between them, each kept whole; as many a line as fit."""
    lines: list[str] = []
    for piece in map(clean_line, pieces):
        joined = f"{lines[-1]}{gap}{piece}" if lines else piece
        if lines and cells(joined) <= width - indent:
            lines[-1] = joined
        else:
            lines.append(piece)
    return [Row(line(" " * indent, span(cut(one, width - indent), tone))) for one in lines]


def labelled(label: str, text: str, width: int, label_width: int = 14, tone: Tone = "plain") -> list[Row]:
    """`label` in a left column, `text` wrapped beside it."""
    parts = wrap(text, width - label_width) or [""]
    first = Row(line(span(pad(label, label_width), "title"), span(parts[0], tone)))
    return [first, *(Row(line(" " * label_width, span(part, tone))) for part in parts[1:])]


def grouped(number: int) -> str:
    """41207 → "41 207"."""
    return f"{number:,}".replace(",", " ")


def counted(number: int, one: str, many: str = "") -> str:
    """1 → "1 change", 2 → "2 changes"."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def texts(of: Iterable[Row]) -> str:
    """The words of many rows, one a line."""
    return "\n".join(plain(row.line) for row in of)


def keys_of(of: Sequence[Row]) -> list[str]:
    """The keys the cursor can stand on, in order."""
    return list(dict.fromkeys(row.key for row in of if row.key is not None))


_ASCII = str.maketrans(
    {
        **dict.fromkeys("–—−‑", "-"), "·": ".", "…": "~", "×": "x", "→": ">", "←": "<", "↑": "^", "↓": "v",
        "≥": ">", "≤": "<", "°": "C", "▸": ">", "●": "*", "✓": "+", "’": "'", "“": '"', "”": '"', "│": "|", "▕": "[",
        "▏": "]", "█": "#", "░": ".", "✗": "x", "\u00a0": " ", "⚠": "!", "⋮": ":", "─": "-",
        **dict(zip("▁▂▃▄▅▆▇", ".:-=+*%", strict=True)), **dict(zip("▎▍▌▋▊▉", "-=####", strict=True)),
    }
)  # fmt: skip


def ascii_only(text: str) -> str:
    """Our own signs in ASCII, one column each; letters of other languages stay."""
    return text if text.isascii() else text.translate(_ASCII)
