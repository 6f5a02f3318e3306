"""What YAML and JSON files have in common: values with a dotted key and a byte range, and the tables that hold them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct, field

from advisor.bash.text import line_at, line_starts
from advisor.hostile import clean
from advisor.script.document import Document, Origin, Setting, Span, Value

ValueStyle = Literal["plain", "single", "double", "block", "list", "empty"]

_MOST_NAMED = 50
"""Keys that are named as sharing a value; an alias can be used any number of times."""


class KeyedEntry(Struct, frozen=True):
    """A value at bytes `start:end` under a dotted `key`, whose own name stands at `name`. Quotes belong to the range.

    `flow`: it stands in braces or brackets, where commas end it.
    """

    key: str
    value: Value
    start: int
    end: int
    style: ValueStyle
    name: int
    flow: bool = False


class Table(Struct, frozen=True):
    """A mapping: where its keys stand, and where its last entry ends."""

    key: str
    start: int
    end: int
    indent: int
    flow: bool
    empty: bool = False
    closer: int = 0
    """Byte of the closing brace of a flow mapping."""


class Keyed(Struct):
    """A config file read to the byte."""

    entries: list[KeyedEntry] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)

    def find(self, key: str) -> KeyedEntry | None:
        """The entry in force for a key: the last one."""
        return next((entry for entry in reversed(self.entries) if entry.key == key), None)


def settings_of(
    document: Document, entries: Iterable[KeyedEntry], origin: Origin = "file", prefix: str = ""
) -> list[Setting]:
    """Entries as settings; a repeated key is in force where it stands last."""
    listed = list(entries)
    starts = line_starts(document.data)
    sharing: dict[tuple[int, int], list[str]] = {}
    last: dict[str, int] = {}
    for number, entry in enumerate(listed):
        sharing.setdefault((entry.start, entry.end), []).append(prefix + entry.key)
        last[entry.key] = number
    out: list[Setting] = []
    for number, entry in enumerate(listed):
        key = prefix + entry.key
        others = tuple(clean(other) for other in sharing[entry.start, entry.end][:_MOST_NAMED] if other != key)
        span = Span(str(document.path), line_at(starts, entry.start), entry.start, entry.end)
        effective = last[entry.key] == number
        out.append(Setting(clean(key), _clean(entry.value), origin, True, effective, span, shared_with=others))
    return out


def _clean(value: Value) -> Value:
    limit = 100_000
    return clean(value, limit) if isinstance(value, str) else tuple(clean(text, limit) for text in value)
