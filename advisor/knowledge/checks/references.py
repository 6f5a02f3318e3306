"""Checks ids that point nowhere, causes that nothing relieves, remedies without a key, missing sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from advisor.knowledge.checks.shelf import Shelf, found, near, settings
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.schema import AlgorithmFact, Cause, EntryKind, Framework, Remedy

_WITH_SOURCE: tuple[EntryKind, ...]
_WITH_SOURCE = ("remedy", "advisory", "case", "signature", "gpu", "model", "recipe", "allocation")
_POINTING: tuple[tuple[EntryKind, str, EntryKind], ...] = (
    *(("case", "remedies", "remedy"), ("signature", "remedies", "remedy"), ("allocation", "leads", "remedy")),
    *(("allocation", "cause", "cause"), ("advisory", "cause", "cause"), ("advisory", "sets", "knob")),
    *(("knob", "not_in_force", "knob"), ("sharding", "knobs", "knob")),
)
"""Kind of entry, the field of it that names ids, and of what they are."""
APPLIED_BY_KEY = ("setting", "data")
"""Kinds of remedies that need a native key; the others are done outside the script."""


def check_references(shelf: Shelf) -> Iterator[Finding]:
    """Dangling ids of knobs, remedies, cases, causes, questions and eras."""
    yield from _knobs(shelf)
    for entry in shelf.of("cause"):
        yield from _cause(entry, shelf)
    for entry in shelf.of("remedy"):
        remedy: Remedy = entry.value
        yield from _missing(entry, [e.case for e in remedy.evidence], shelf.ids("case"), "case", "evidence")
        known = shelf.ids("cause") | shelf.ids("signature")
        yield from _missing(entry, remedy.never_for, known, "cause or crash line", "never_for")
    for kind, field, what in _POINTING:
        for entry in shelf.of(kind):
            pointed = getattr(entry.value, field) or ()
            named = [pointed] if isinstance(pointed, str) else getattr(pointed, "knobs", pointed)
            yield from _missing(entry, named, shelf.ids(what), what, field)
    for entry in shelf.of("framework"):
        yield from _eras(entry)
        yield from _algorithms(entry, shelf)
    yield from _same_id_twice(shelf)


def _algorithms(entry: KnowledgeEntry, shelf: Shelf) -> Iterator[Finding]:
    """What a dialect's programs, settings and tasks are read as; a key may have words of its own."""
    fact: AlgorithmFact = entry.value.algorithm
    named = (
        *fact.programs.values(),
        *fact.by_settings,
        *fact.narrowed,
        fact.default,
        fact.otherwise,
        *filter(None, [fact.fixed]),
    )
    yield from _missing(entry, set(named) - {"unknown"}, shelf.ids("recipe"), "recipe", "algorithm")


def check_remedies_applied(shelf: Shelf) -> Iterator[Finding]:
    """Remedies that no dialect can apply, and those that nothing leads to."""
    carried = {knob for setting in settings(shelf) for knob in (setting.fact.knob, *setting.fact.also) if knob}
    named = {name for entry in shelf.of("cause") for name in (*entry.value.remedies, *entry.value.folklore)}
    named |= {name for entry in shelf.of("allocation") for name in entry.value.leads}
    named |= {name for kind in ("case", "signature") for entry in shelf.of(kind) for name in entry.value.remedies}
    for entry in shelf.of("remedy"):
        remedy: Remedy = entry.value
        if remedy.kind in APPLIED_BY_KEY and remedy.knob not in carried:
            yield from found(
                entry, f"remedy {entry.id}: no dialect has a key for {remedy.knob or 'it (no knob)'}", "knob"
            )
        if remedy.kind == "environment" and not remedy.environment:
            yield from found(entry, f"remedy {entry.id}: names no environment variable")
        if entry.id not in named and (remedy.kind != "setting" or remedy.value is None):
            # A setting is tried for its memory and phase anyway.
            yield from found(entry, f"remedy {entry.id}: no cause and no case names it")


def _cause(entry: KnowledgeEntry, shelf: Shelf) -> Iterator[Finding]:
    cause: Cause = entry.value
    remedies = shelf.ids("remedy")
    yield from _missing(entry, cause.remedies, remedies, "remedy", "remedies")
    yield from _missing(entry, cause.folklore, remedies, "remedy", "folklore")
    named = [name for provision in cause.provisional for name in provision.remedies]
    yield from _missing(entry, named, remedies, "remedy", "provisional")
    if cause.memory in ("gpu", "host", "shm") and not cause.remedies:
        yield from found(entry, f"cause {cause.id} has no remedies")
    for name in sorted(set(cause.remedies) & set(cause.folklore)):
        yield from found(entry, f"cause {cause.id}: {name} is both a remedy and folklore", "folklore")


def _knobs(shelf: Shelf) -> Iterator[Finding]:
    knobs = shelf.ids("knob")
    for setting in settings(shelf):
        if setting.fact.knob is not None and setting.fact.knob not in knobs:
            yield from setting.found(f"there is no knob {setting.fact.knob}{near(setting.fact.knob, knobs)}", "knob")
        for name in sorted(set(setting.fact.also) - knobs):
            yield from setting.found(f"there is no knob {name}{near(name, knobs)}", "also", name)
    for entry in shelf.of("remedy"):
        named = [name for name in (entry.value.knob, *entry.value.also) if name is not None]
        yield from _missing(entry, named, knobs, "knob", "knob")


def _eras(entry: KnowledgeEntry) -> Iterator[Finding]:
    dialect: Framework = entry.value
    eras = {era.id for era in dialect.eras}
    for group, facts in (("settings", dialect.settings), ("environment", dialect.environment)):
        for key, fact in facts.items():
            named = set(fact.eras) | ({*fact.default} - {"*"} if isinstance(fact.default, dict) else set())
            named |= set(fact.before.eras) if fact.before is not None else set()
            for era in sorted(named - eras):
                says = f"{key}: {dialect.framework} has no era {era}; it has {', '.join(sorted(eras)) or 'none'}"
                yield from found(entry, says, group, key)
    for era in sorted(set(dialect.per_era) - eras):
        yield from found(entry, f"per_era: {dialect.framework} has no era {era}", "per_era", era)


def _missing(entry: KnowledgeEntry, named: Iterable[str], known: Set[str], what: str, field: str) -> Iterator[Finding]:
    for name in sorted(set(named) - known):
        yield from found(entry, f"{entry.kind} {entry.id}: there is no {what} {name}{near(name, known)}", field)


def _same_id_twice(shelf: Shelf) -> Iterator[Finding]:
    """Two entries of one id in files of one folder; own knowledge may replace ours, but no whole framework."""
    seen: set[tuple[str, str, Path]] = set()
    ours = {entry.id for entry in shelf.entries if entry.file is None and entry.kind == "framework"}
    for entry in shelf.entries:
        if entry.file is None or entry.kind == "lines":
            continue
        if entry.kind == "framework" and entry.id in ours:
            yield from found(
                entry, f"{entry.id} comes with the program; one of your own takes another name", "framework"
            )
        key = (entry.kind, entry.id, entry.file.path.parent)
        if key in seen:
            yield from found(entry, f"there are two of {entry.kind} {entry.id}")
        seen.add(key)


def check_sources(shelf: Shelf) -> Iterator[Finding]:
    """Facts without source; texts that must not be empty."""
    for kind in _WITH_SOURCE:
        for entry in shelf.of(kind):
            if not entry.value.source.strip():
                yield from found(entry, f"{kind} {entry.id} has no source")
    for setting in settings(shelf):
        if not setting.fact.source.strip():
            yield from setting.found("no source")
    for kind, fields in _TEXTS.items():
        for entry in shelf.of(kind):
            for field, says in fields.items():
                if not getattr(entry.value, field).strip():
                    yield from found(entry, f"{kind} {entry.id} {says}", field)


_TEXTS: dict[EntryKind, dict[str, str]] = {
    "question": {
        "asks": "asks nothing",
        "why": "does not say why it is asked",
        "if_unknown": "does not say how to find the answer",
    },
    "cause": {
        "explains": "explains nothing",
        "proof": "does not say what proves it",
        "counter": "does not say what rules it out",
        "record_next_time": "does not say what to record next time",
    },
    "remedy": {"says": "has no 'says'", "costs": "has no 'costs'"},
}
"""Kind of entry → its texts that must not be empty, and what one does where it is."""
