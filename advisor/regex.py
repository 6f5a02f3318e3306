"""Compiles a regular expression when it is first used: modules name some 600, and a command uses a quarter of them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, AnyStr, cast


class _LateRegex:
    """Stands for a compiled pattern. What is asked of it once is an attribute of its own from then on."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = pattern, flags
        self._compiled: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(*self._source)
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off until the first use: for patterns of a module. A mistake in one is raised there."""
    return cast("re.Pattern[AnyStr]", _LateRegex(pattern, flags))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the knowledge, compiled once: Python itself remembers 512, and a long sitting asks for more."""
    return re.compile(pattern)
