"""Compiles a regular expression when it is first used: modules name some 600, and a command uses a quarter of them.

What `re` made of one is kept in the user's cache, since making it anew took 110 of 600 ms of a diagnosis.
"""

from __future__ import annotations

import atexit
import re
import sys
from array import array
from functools import cache
from importlib import import_module
from typing import Any, AnyStr, cast


class _LateRegex:
    """Stands for a compiled pattern. What is asked of it once is an attribute of its own from then on."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._source = pattern, flags
        self._compiled: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if self._compiled is None:
            self._compiled = compiled(*self._source)
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off until the first use: for patterns of a module. A mistake in one is raised there."""
    return cast("re.Pattern[AnyStr]", _LateRegex(pattern, flags))


@cache
def compiled(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile` with what an earlier run made of the pattern: for those of modules and knowledge alone, since every
    one is kept.

    The parts of `re` that this uses are its own and may change: then it compiles as everybody does. What was kept is
    checked by `re` itself before it is used.
    """
    known, key = _kept(), f"{int(flags)} {pattern!r}"
    try:
        if key not in known:
            known[key] = _made(pattern, int(flags))
            if not _new:
                atexit.register(_keep)
            _new.append(key)
        found, code, groups, names = known[key]
        numbered: list[str | None] = [None] * (groups + 1)
        for name, at in names.items():
            numbered[at] = name
        return cast(
            "re.Pattern[AnyStr]",
            import_module("_sre").compile(pattern, found, array("I", code).tolist(), groups, names, tuple(numbered)),
        )
    except re.error:
        raise
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):  # another Python, or a spoiled file
        return re.compile(pattern, flags)


_KeptRegex = tuple[int, bytes, int, dict[str, int]]
"""(flags, code, groups, name of a group → its number) of a pattern."""
_new: list[str] = []


def _made(pattern: Any, flags: int) -> _KeptRegex:
    names = ("re._parser", "re._compiler") if sys.version_info >= (3, 11) else ("sre_parse", "sre_compile")
    parser, compiler = map(import_module, names)
    parsed = parser.parse(pattern, flags)
    code = array("I", compiler._code(parsed, flags)).tobytes()
    return flags | parsed.state.flags, code, parsed.state.groups - 1, dict(parsed.state.groupdict)


@cache
def _kept() -> dict[str, _KeptRegex]:
    """Pattern → what was made of it."""
    import msgspec

    from advisor.folders import own_bytes

    file = _file()
    try:
        return msgspec.msgpack.decode(own_bytes(file), type=dict[str, _KeptRegex]) if file is not None else {}
    except (OSError, msgspec.MsgspecError):
        return {}


def _file() -> Any:
    from advisor.folders import cache_file

    return cache_file(f"regex-{sys.hexversion:x}-{import_module('_sre').MAGIC}.msgpack")


def _keep() -> None:
    import msgspec

    from advisor.folders import keep

    file = _file()
    if file is not None:
        keep(file, msgspec.msgpack.encode(_kept()))
