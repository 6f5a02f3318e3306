"""Compares what a framework understood before and after: exactly the planned keys differ, and each has its value."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import yaml
from msgspec import Struct

from advisor.plan.plan import Change

ANYTHING = "*"
"""Stands for every planned name among those of which a name is derived: the clock writes it."""
_MISSING = object()
_ON, _OFF = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class Difference(Struct, frozen=True):
    """One thing that is not as planned, in words."""

    key: str
    says: str


def differences(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    changes: Iterable[Change],
    derived: Mapping[str, Collection[str]] | None = None,
) -> list[Difference]:
    """What is not as planned. `derived`: a name → the planned names that the framework computes it of."""
    found: list[Difference] = []
    planned: set[str] = set()
    for change in changes:
        name = name_in(after, change.key) or name_in(before, change.key)
        if name is None:
            found.append(Difference(change.key, "the framework has no such name"))
            continue
        planned.add(name)
        now = after.get(name, _MISSING)
        if change.new is None:
            if name in before and now == before[name]:
                found.append(Difference(name, f"was to be taken out and is {now!r}"))
        elif not _is(now, change):
            found.append(Difference(name, f"{now!r} arrived where {change.new!r} was planned"))
        elif not _same_type(before.get(name), now):
            found.append(Difference(name, f"{type(now).__name__} where {type(before[name]).__name__} was"))
    expected = {*planned, *(name for name, sources in (derived or {}).items() if {*planned, ANYTHING} & set(sources))}
    for name in sorted({*before, *after} - planned):
        old, new = before.get(name, _MISSING), after.get(name, _MISSING)
        if old != new and not any(name == one or name.startswith(f"{one}.") for one in expected):
            shown = [repr(value) if value is not _MISSING else "nothing" for value in (old, new)]
            found.append(Difference(name, f"{shown[0]} became {shown[1]}, and nothing planned it"))
    return found


def name_in(values: Mapping[str, Any], key: str) -> str | None:
    """The name under which a framework keeps a key as a script writes it."""
    bare = key.lstrip("-+~")
    for name in (bare, bare.replace("-", "_"), f"no_{bare}", bare.removeprefix("no_").removeprefix("no-")):
        if name in values:
            return name
    folder = f"{bare}."
    return bare if any(name.startswith(folder) for name in values) else None


def _is(now: Any, change: Change) -> bool:
    """Whether a parsed value is what was written."""
    return isinstance(now, bool) if change.bare else same_value(now, str(change.new))


def same_value(now: Any, written: str) -> bool:
    """Whether a value of a parser is what a text says."""
    written = written.strip()
    if isinstance(now, bool):
        return written.strip("'\"").lower() in (_ON if now else _OFF)
    if isinstance(now, (int, float)):
        return _number(written) == float(now)
    if now is None:
        return written.lower() in ("null", "none", "~", "")
    if isinstance(now, (list, dict)):
        words = [] if written in ("none", "") else re.split(r"\s*,\s*|\s+", written.strip("[]"))
        return bool(yaml.safe_load(written) == now) or [str(item) for item in now] == words
    return bool(str(now) == written.strip("'\"")) or str(now).endswith(f".{written}")


def _number(text: str) -> float | None:
    try:
        return float(text.strip("'\""))
    except ValueError:
        return None


def _same_type(old: Any, new: Any) -> bool:
    """Whether a value kept its kind; an integer may stand where a fraction did, and where nothing did, anything."""
    if old is None or new is None or type(old) is type(new) or str(old).startswith("${"):  # it named another key
        return True
    return (
        not isinstance(old, bool)
        and not isinstance(new, bool)
        and isinstance(old, (int, float))
        and isinstance(new, (int, float))
    )
