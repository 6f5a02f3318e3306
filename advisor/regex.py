"""Compiles a regular expression when it is first used: modules name some 600, and a command uses a quarter of them.

What `re` made of one is kept in the user's cache, since making it anew took 110 of 600 ms of a diagnosis.
"""

from __future__ import annotations

import atexit
import re
import sys
from array import array
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
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
    one is kept. These parts of `re` are its own: where they differ it compiles as everybody does. It checks what was
    kept before it uses it.
    """
    kept, key = _kept(), f"{int(flags)} {pattern!r}"
    try:
        if key not in kept:
            old = sys.version_info < (3, 11)
            parser = import_module("sre_parse" if old else "re._parser")
            compiler = import_module("sre_compile" if old else "re._compiler")
            parsed = parser.parse(pattern, flags)
            code, state = array("I", compiler._code(parsed, flags)).tobytes(), parsed.state
            kept[key] = flags | state.flags, code, state.groups - 1, dict(state.groupdict)
            _added.append(key)
        found, code, groups, names = kept[key]
        indexed = tuple(map({at: name for name, at in names.items()}.get, range(groups + 1)))
        made = import_module("_sre").compile(pattern, found, array("I", code).tolist(), groups, names, indexed)
        return cast("re.Pattern[AnyStr]", made)
    except re.error:
        raise
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        return re.compile(pattern, flags)


_Kept = dict[str, tuple[int, bytes, int, dict[str, int]]]
"""Pattern → (flags, code, groups, name of a group → its number)."""
_added: list[str] = []


@cache
def _kept() -> _Kept:
    import msgspec

    from advisor.folders import own_bytes

    atexit.register(_keep)
    file, kept = _file(), _Kept()
    with suppress(OSError, msgspec.MsgspecError):
        kept = msgspec.msgpack.decode(own_bytes(file), type=_Kept) if file is not None else kept
    return kept


def _keep() -> None:
    import msgspec

    from advisor.folders import keep

    if _added and (file := _file()) is not None:
        keep(file, msgspec.msgpack.encode(_kept()))


def _file() -> Path | None:
    from advisor.folders import cache_file

    return cache_file(f"regex-{sys.hexversion:x}-{import_module('_sre').MAGIC}.msgpack")
