"""Regexes that cannot be compiled, or cannot be used where a message may wrap."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.knowledge.checks.shelf import Shelf, found
from advisor.knowledge.entries import Finding

_BEHIND = re.compile(r"\(\?<[=!]")


def check_patterns(shelf: Shelf) -> Iterator[Finding]:
    """Where an entry may cover several lines, each space of its pattern matches up to nine characters."""
    for entry in shelf.of("signature"):
        pattern = entry.value.pattern.replace("{size}", r"\d").replace("{num}", r"\d")
        if problem := problem_of(pattern):
            yield from found(entry, f"signature {entry.id}: {problem}", "pattern")
        elif entry.value.span_lines > 1 and _BEHIND.search(pattern):
            yield from found(entry, f"signature {entry.id}: a message that may wrap cannot look behind", "pattern")
    for entry in shelf.of("sharding"):
        for problem in filter(None, map(problem_of, entry.value.named)):
            yield from found(entry, f"sharding {entry.id}: {problem}", "named")


def problem_of(pattern: str) -> str:
    """Why it cannot be compiled; "": it can."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"its pattern is no regex ({error.msg})"
    return ""
