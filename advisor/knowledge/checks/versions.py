"""Checks version ranges: unreadable ones, eras that overlap, neighbours called safe that are among the bad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from advisor.knowledge.checks.shelf import Shelf, found
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.schema import Advisory, Framework


def check_versions(shelf: Shelf) -> Iterator[Finding]:
    """Every range is one; eras of a dialect do not overlap; the safe neighbours of an advisory are safe."""
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
        elif era.versions:
            ranges.append((era.id, number, known))
    for (one, _, first), (other, number, second) in combinations(ranges, 2):
        shared = common((first, second))
        if one != other and shared is not None:
            yield from found(entry, f"eras {one} and {other} both have version {shared}", "eras", number, "versions")


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
        elif (shared := common((bad, known))) is not None:
            yield from found(entry, f"advisory {entry.id}: {shared} is both bad and safe", "safe")


def _range(text: str) -> SpecifierSet | None:
    try:
        return SpecifierSet(text, prereleases=True)
    except InvalidSpecifier:
        return None


def common(ranges: Iterable[SpecifierSet]) -> Version | None:
    """A version that lies in all ranges, tried at every bound, just below it and just above it; None: there is none."""
    both = list(ranges)
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
