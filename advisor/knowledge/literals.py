"""Finds what must stand in a text for a regex to match it: a test of some literals spares compiling the regex.

Most of a short diagnosis' patterns meet no text that they could match, and compiling a pattern costs more than a
thousand searches for a literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

try:
    from re import _constants as codes  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as codes
    import sre_parse as parser

_SHORTEST = 3
"""Shorter literals stand almost everywhere and spare nothing."""


def needed(pattern: str) -> tuple[str, ...]:
    """Lower-case literals of which one stands, in whatever case, in every text that `pattern` matches; () unknown."""
    return tuple(sorted({literal.lower() for literal in _shortest_kept(_of_sequence(parser.parse(pattern)))}))


def within(pattern: str) -> tuple[str, ...]:
    """Literals of which one stands, as written, in every text that `pattern` matches; () unknown, as of any case."""
    parsed = parser.parse(pattern)
    found = frozenset[str]() if parsed.state.flags & re.IGNORECASE else _of_sequence(parsed)
    return tuple(sorted(_shortest_kept(found)))


def _shortest_kept(found: frozenset[str]) -> frozenset[str]:
    return found if _worth(found) >= _SHORTEST else frozenset()


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> frozenset[str]:
    """The best of what each part of a sequence needs: the one whose shortest literal is longest."""
    parts: list[frozenset[str]] = []
    run = ""
    for code, value in items:
        if code is codes.LITERAL:
            run += chr(value)
            continue
        parts.append(frozenset([run]))
        run = ""
        parts.append(_of_part(code, value))
    parts.append(frozenset([run]))
    return max(parts, key=_worth, default=frozenset())


def _of_part(code: Any, value: Any) -> frozenset[str]:
    if code is codes.SUBPATTERN:
        return _of_sequence(value[-1])
    if code is codes.BRANCH:
        branches = [_of_sequence(branch) for branch in value[1]]  # one matches: one of all their literals stands there
        return frozenset[str]().union(*branches) if all(map(_worth, branches)) else frozenset()
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[0] >= 1:
        return _of_sequence(value[2])
    return frozenset()


def _worth(literals: frozenset[str]) -> int:
    return min(map(len, literals), default=0)
