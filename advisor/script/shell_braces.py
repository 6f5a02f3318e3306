"""Brace expansion: `{a,b}`, `{1..3}`, `{a..c}`, `{01..10..3}`, nested and side by side."""

from __future__ import annotations

import re
from itertools import pairwise

_RANGE = re.compile(rb"(-?\d{1,18})\.\.(-?\d{1,18})(?:\.\.(-?\d{1,18}))?|([A-Za-z])\.\.([A-Za-z])")
_MOST = 1000
_MAX_DEPTH = 20


def expand_braces(text: bytes) -> list[bytes] | None:
    """The words that a word becomes; None where there is nothing to expand, none at all where they are too many."""
    found = _expand(text, 0)
    return [] if found is None else None if found == [text] else found


def _expand(text: bytes, depth: int) -> list[bytes] | None:
    at = 0
    while (at := text.find(b"{", at)) >= 0:
        parts = None if text[at - 1 : at] == b"$" and at else _parts(text, at)
        if parts is None:
            at += 1
            continue
        choices, end = parts
        behind = _expand(text[end:], depth + 1)
        inside = [_expand(choice, depth + 1) for choice in choices] if depth < _MAX_DEPTH else [None]
        if behind is None or any(one is None for one in inside):
            return None
        words = [word for one in inside for word in one or ()]
        if len(words) * len(behind) > _MOST:
            return None
        return [text[:at] + word + rest for word in words for rest in behind]
    return [text]


def _parts(text: bytes, opening: int) -> tuple[list[bytes], int] | None:
    """The choices between a brace and the one that closes it, and where that ends; None where it is no expansion."""
    depth, start, commas = 0, opening + 1, []
    for at in range(opening, len(text)):
        byte = text[at : at + 1]
        if byte == b"{":
            depth += 1
        elif byte == b"," and depth == 1:
            commas.append(at)
        elif byte == b"}":
            depth -= 1
            if depth == 0:
                break
    else:
        return None
    if not commas:
        return (numbers, at + 1) if (numbers := _range(text[start:at])) is not None else None
    bounds = [start - 1, *commas, at]
    return [text[a + 1 : b] for a, b in pairwise(bounds)], at + 1


def _range(body: bytes) -> list[bytes] | None:
    found = _RANGE.fullmatch(body)
    if found is None:
        return None
    if found.group(4):
        first, last = found.group(4)[0], found.group(5)[0]
        return [bytes([code]) for code in range(first, last + 1) or range(first, last - 1, -1)]
    low, high = found.group(1), found.group(2)
    first, last, step = int(low), int(high), abs(int(found.group(3) or b"1")) or 1
    if abs(last - first) // step > _MOST:
        return [b""] * (_MOST + 1)
    padded = any(re.match(rb"-?0\d", bound) for bound in (low, high))
    width = max(len(low), len(high)) if padded else 0
    values = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [str(value).zfill(width).encode() for value in values]
