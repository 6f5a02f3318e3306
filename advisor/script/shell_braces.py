"""Brace expansion: `{a,b}` and `{1..3}`."""

from __future__ import annotations

import re
from itertools import product

_BRACES = re.compile(rb"\{([^{}]*(?:,|\.\.)[^{}]*)\}")
_MOST = 1000


def expand_braces(text: bytes) -> list[bytes] | None:
    """`{a,b}` and `{1..3}`; None where there is nothing to expand."""
    parts: list[list[bytes]] = []
    at = 0
    found_any = False
    for found in _BRACES.finditer(text):
        if text[found.start() - 1 : found.start()] == b"$":
            continue
        choices = _choices(found.group(1))
        if choices is None:
            continue
        found_any = True
        parts += [[text[at : found.start()]], choices]
        at = found.end()
    if not found_any:
        return None
    parts.append([text[at:]])
    total = 1
    for part in parts:
        total *= len(part)
    return [b"".join(combination) for combination in product(*parts)] if total <= _MOST else None


def _choices(body: bytes) -> list[bytes] | None:
    numbers = re.fullmatch(rb"(-?\d{1,6})\.\.(-?\d{1,6})(?:\.\.(-?\d{1,6}))?", body)
    if numbers:
        first, last = int(numbers.group(1)), int(numbers.group(2))
        step = abs(int(numbers.group(3) or b"1")) or 1
        if abs(last - first) > _MOST:
            return None
        values = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
        return [b"%d" % value for value in values]
    return body.split(b",") if b"," in body else None
