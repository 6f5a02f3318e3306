"""Holds all entries by kind and id, as the checks look at them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from advisor.knowledge.entries import EntryKind, Finding, KnowledgeEntry
from advisor.knowledge.schema import Framework, SettingFact


class Shelf(Struct, frozen=True):
    """Later entries of one id replace earlier ones, as own knowledge replaces ours."""

    entries: Sequence[KnowledgeEntry]

    def of(self, kind: EntryKind) -> list[KnowledgeEntry]:
        """The entries of one kind that hold, in order."""
        return list({entry.id: entry for entry in self.entries if entry.kind == kind}.values())

    def ids(self, kind: EntryKind) -> set[str]:
        return {entry.id for entry in self.entries if entry.kind == kind}


class DialectKey(Struct, frozen=True):
    """One native key of a dialect, with its place."""

    entry: KnowledgeEntry
    group: str
    key: str
    fact: SettingFact

    @property
    def name(self) -> str:
        return f"{self.entry.id} {self.key}"

    def found(self, says: str, *more: str | int) -> Iterator[Finding]:
        return found(self.entry, f"{self.key}: {says}", self.group, self.key, *more)


def settings(shelf: Shelf) -> Iterator[DialectKey]:
    """Every setting and environment variable of every dialect."""
    for entry in shelf.of("framework"):
        dialect: Framework = entry.value
        for key, fact in dialect.settings.items():
            yield DialectKey(entry, "settings", key, fact)
            if fact.before is not None:
                yield DialectKey(entry, "settings", key, fact.before)
        for key, variable in dialect.environment.items():
            yield DialectKey(entry, "environment", key, variable)


def found(entry: KnowledgeEntry, says: str, *more: str | int) -> Iterator[Finding]:
    """A finding at a part of the entry; none where the entry comes with the program."""
    if entry.file is not None:
        yield Finding(entry.file.path, entry.line(*more), says)
