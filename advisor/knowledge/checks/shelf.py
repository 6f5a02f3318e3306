"""All entries by kind and id, as the checks look at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from advisor.knowledge.entries import Entry, Finding, Kind
from advisor.knowledge.schema import Framework, Rule, SettingFact


class Shelf(Struct, frozen=True):
    """Later entries of one id replace earlier ones, as own knowledge replaces ours."""

    entries: Sequence[Entry]

    def of(self, kind: Kind) -> list[Entry]:
        """The entries of one kind that hold, in order."""
        return list({entry.id: entry for entry in self.entries if entry.kind == kind}.values())

    def ids(self, kind: Kind) -> set[str]:
        return {entry.id for entry in self.entries if entry.kind == kind}


class Setting(Struct, frozen=True):
    """One native key of a dialect, with its place."""

    entry: Entry
    group: str
    key: str
    fact: SettingFact

    @property
    def name(self) -> str:
        return f"{self.entry.id} {self.key}"

    def found(self, says: str, *more: str | int) -> Iterator[Finding]:
        return found(self.entry, f"{self.key}: {says}", self.group, self.key, *more)


def settings(shelf: Shelf) -> Iterator[Setting]:
    """Every setting and environment variable of every dialect."""
    for entry in shelf.of("framework"):
        dialect: Framework = entry.value
        for key, fact in dialect.settings.items():
            yield Setting(entry, "settings", key, fact)
            if fact.before is not None:
                yield Setting(entry, "settings", key, fact.before)
        for key, variable in dialect.environment.items():
            yield Setting(entry, "environment", key, variable)


def found(entry: Entry, says: str, *more: str | int) -> Iterator[Finding]:
    """A finding at a part of the entry; none where the entry comes with the program."""
    if entry.file is not None:
        yield Finding(entry.file.path, entry.line(*more), says)


def named_rules(rule: Any) -> Iterator[Rule]:
    """Every {rule: NAME, …} in it, however deep."""
    if isinstance(rule, dict):
        if "rule" in rule:
            yield rule
        for part in rule.values():
            yield from named_rules(part)
    elif isinstance(rule, (list, tuple)):
        for part in rule:
            yield from named_rules(part)
