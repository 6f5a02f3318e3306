"""Checks version ranges: unreadable ones, eras that overlap, neighbours called safe that are among the bad."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from advisor.knowledge.checks.shelf import Shelf, found
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.schema import Advisory, Framework
from advisor.regex import regex

_DATE = regex(r"\d{4}-\d{2}-\d{2}")


def check_versions(shelf: Shelf) -> Iterator[Finding]:
    """Every range is one; eras overlap only where keys tell them apart; the safe neighbours of an advisory are safe."""
    for entry in shelf.of("framework"):
        yield from _eras(entry)
    for entry in shelf.of("advisory"):
        yield from _advisory(entry)
    for entry in shelf.of("case"):
        for name, wanted in entry.value.situation.items():
            if name.startswith("version ") and _range(str(wanted)) is None:
                yield from found(entry, f"case {entry.id}: {wanted!r} is no range of versions", "situation", name)


def _eras(entry: KnowledgeEntry) -> Iterator[Finding]:
    dialect: Framework = entry.value
    ranges: list[tuple[str, int, SpecifierSet]] = []
    for number, era in enumerate(dialect.eras):
        known = _range(era.versions)
        if known is None:
            yield from found(entry, f"era {era.id}: {era.versions!r} is no range of versions", "eras", number)
        elif era.versions and not era.told_by_keys:
            ranges.append((era.id, number, known))
    yield from _since(entry)
    yield from _newest_read(entry, [number for number, era in enumerate(dialect.eras) if _is_open(era.versions)])
    for (one, _, first), (other, number, second) in combinations(ranges, 2):
        shared = common(first, second)
        if one != other and shared is not None:
            yield from found(entry, f"eras {one} and {other} both have version {shared}", "eras", number, "versions")


def _since(entry: KnowledgeEntry) -> Iterator[Finding]:
    """What came later than its era began came in an era that has it."""
    dialect: Framework = entry.value
    for key, fact in dialect.settings.items():
        versions = [_range(one.versions) for one in dialect.eras if not fact.eras or one.id in fact.eras]
        if fact.since and not any(known is not None and fact.since in known for known in versions):
            yield from found(entry, f"{key}: no era that has it has version {fact.since}", "settings", key, "since")


def _is_open(versions: str) -> bool:
    """Whether the range has no upper end."""
    known = _range(versions)
    return known is not None and all(clause.operator in (">=", ">", "!=") for clause in known)


def _newest_read(entry: KnowledgeEntry, open_eras: list[int]) -> Iterator[Finding]:
    """An era without an end says up to where it was read, and that release is its own."""
    dialect: Framework = entry.value
    read = dialect.newest_read
    if read is None:
        if open_eras:
            says = f"era {dialect.eras[open_eras[0]].id} has no end: newest_read must say up to where it was read"
            yield from found(entry, says, "eras", open_eras[0])
        return
    if not _DATE.fullmatch(read.date):
        yield from found(entry, f"newest_read: {read.date!r} is no date like 2026-09-20", "newest_read")
    if not read.name:
        yield from found(entry, "newest_read: it names neither a version nor a commit", "newest_read")
    ranges = [known for era in dialect.eras if (known := _range(era.versions)) is not None]
    if read.version and not any(known.contains(read.version, prereleases=True) for known in ranges):
        yield from found(entry, f"newest_read: no era has version {read.version}", "newest_read")


def _advisory(entry: KnowledgeEntry) -> Iterator[Finding]:
    advisory: Advisory = entry.value
    bad = _range(advisory.versions)
    if bad is None or not advisory.versions:
        yield from found(entry, f"advisory {entry.id}: {advisory.versions!r} is no range of versions", "versions")
        return
    for safe in advisory.safe:
        known = _range(safe)
        if known is None:
            yield from found(entry, f"advisory {entry.id}: {safe!r} is no range of versions", "safe")
        elif (shared := common(bad, known)) is not None:
            yield from found(entry, f"advisory {entry.id}: {shared} is both bad and safe", "safe")


def _range(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text, prereleases=True)
    except InvalidSpecifier:
        return None


@lru_cache(maxsize=4096)
def common(*both: SpecifierSet) -> Version | None:
    """A version that lies in all ranges, tried at every bound, just below it and just above it; None: there is none."""
    bounds = {clause.version.removesuffix(".*") for each in both for clause in each}
    for bound in sorted(bounds):
        for version in _around(bound):
            if all(each.contains(version, prereleases=True) for each in both):
                return version
    return None


def _around(bound: str) -> Iterator[Version]:
    try:
        at = Version(bound)
    except InvalidVersion:
        return
    yield at
    release = [*at.release]
    yield Version(".".join(map(str, [*release, 0, 1])))
    for place in range(len(release) - 1, -1, -1):
        if release[place] > 0:
            below = [*release[:place], release[place] - 1, 9999]
            yield Version(".".join(map(str, below)))
            return
