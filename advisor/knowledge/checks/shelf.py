"""Holds all entries by kind and id, as the checks look at them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from difflib import get_close_matches

from msgspec import Struct

from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.schema import EntryKind, Framework, SettingFact


class Shelf:
    """Later entries of one id replace earlier ones, as own knowledge replaces ours."""

    def __init__(self, entries: Iterable[KnowledgeEntry]) -> None:
        self.entries = tuple(entries)
        self._kinds: dict[EntryKind, dict[str, KnowledgeEntry]] = {}
        for entry in self.entries:
            self._kinds.setdefault(entry.kind, {})[entry.id] = entry

    def of(self, kind: EntryKind) -> list[KnowledgeEntry]:
        """The entries of one kind that hold, in order."""
        return list(self._kinds.get(kind, {}).values())

    def ids(self, kind: EntryKind) -> Set[str]:
        return self._kinds.get(kind, {}).keys()


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


def near(name: str, known: Iterable[str]) -> str:
    """What is meant, perhaps: "; near it: a, b"; "" where nothing is alike."""
    alike = get_close_matches(name, sorted(known), 3)
    return f"; near it: {', '.join(alike)}" if alike else ""


def found(entry: KnowledgeEntry, says: str, *more: str | int) -> Iterator[Finding]:
    """A finding at a part of the entry; none where the entry comes with the program."""
    if entry.file is not None:
        yield Finding(entry.file.path, entry.line(*more), says)
