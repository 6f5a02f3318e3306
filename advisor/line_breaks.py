"""Breaks and cuts lines by terminal columns: at spaces, and between Chinese characters, never before a closing sign."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.hostile import cells, clean_line
from advisor.redact import redact

_NEVER_FIRST = frozenset("，。、；：？！）》」』】〉”’…—～·%,.;:?!)]}")
_NEVER_LAST = frozenset("（《「『【〈“‘([{")


def cut(text: str, width: int) -> str:
    """`text` on one line in at most `width` columns, without secrets, ending in "…" where something was cut."""
    text = clean_line(redact(text))
    if cells(text) <= width:
        return text
    if width <= 0:
        return ""
    kept, used = "", 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept += character
    return kept + "…"


def cut_left(text: str, width: int) -> str:
    """Like `cut`, but keeps the end: paths and keys are told apart by their tails."""
    text = clean_line(redact(text))
    if cells(text) <= width:
        return text
    return "…" + cut(text[::-1], width)[:-1][::-1] if width > 0 else ""


def wrapped(text: str, width: int, first: int | None = None, longest: int = 4000) -> list[str]:
    """A paragraph in lines of at most `width` columns, its first in `first`; longer words are broken. `longest`
    characters are read. O(len(text))."""
    first = width if first is None else first
    lines: list[str] = []
    room = first
    for gap, piece in _pieces(clean_line(text, longest), min(width, first)):
        size = cells(piece)
        if lines and len(gap) + size <= room:
            lines[-1] += gap + piece
            room -= len(gap) + size
        else:
            room = (width if lines else first) - size
            lines.append(piece)
    return lines


def _pieces(text: str, width: int) -> Iterator[tuple[str, str]]:
    """(" " or "" before it, piece): pieces of at most `width` columns that stay whole."""
    for word in text.split():
        gap = " "
        for part in _unbreakable(word):
            for piece in _cut(part, width):
                yield gap, piece
                gap = ""


def _unbreakable(word: str) -> Iterator[str]:
    """A word between spaces in the parts that a line must not tear: Latin words, single Chinese characters."""
    if word.isascii() or cells(word) == len(word):
        yield word
        return
    part = ""
    for character in word:
        torn = part and (_is_wide(part[-1]) or _is_wide(character))
        if torn and character not in _NEVER_FIRST and part[-1] not in _NEVER_LAST:
            yield part
            part = ""
        part += character
    yield part


def _is_wide(character: str) -> bool:
    return not character.isascii() and cells(character) == 2


def _cut(part: str, width: int) -> Iterator[str]:
    if len(part) * 2 <= width or cells(part) <= width:
        yield part
        return
    piece, used = "", 0
    for character in part:
        size = cells(character)
        if piece and used + size > width:
            yield piece
            piece, used = "", 0
        piece += character
        used += size
    yield piece
