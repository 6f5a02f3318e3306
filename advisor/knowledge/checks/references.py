"""Checks ids that point nowhere, causes that nothing relieves, remedies without a key, missing sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path

from advisor.knowledge.checks.shelf import Shelf, found, near, settings
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.schema import AlgorithmFact, Cause, EntryKind, Framework, Question, Remedy

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


LONGEST = 7
"""Questions from the start to a cause, at most."""
NEVER_ASKED_FOR = "unclear"
"""The cause where nothing is proved: the walk ends there by itself."""


def check_tree(shelf: Shelf) -> Iterator[Finding]:
    """Answers that lead nowhere or to two places, questions and causes that no answer reaches, circles, long paths."""
    entries = {entry.id: entry for entry in shelf.of("question")}
    causes = shelf.ids("cause")
    for entry in entries.values():
        yield from _ways(entry, set(entries), causes)
    starts = [entry for entry in shelf.of("tree") if entry.value]
    start = starts[-1].value if starts else ""
    if start not in entries:
        if starts:
            yield from found(starts[-1], f"the tree starts with {start!r}, which is no question")
        return
    questions: dict[str, Question] = {name: entry.value for name, entry in entries.items()}
    reached, leaves = _reach(questions, start)
    for name in sorted(set(questions) - reached):
        yield from found(entries[name], f"question {name}: no answer leads to it")
    for entry in shelf.of("cause"):
        if entry.id not in leaves and entry.id != NEVER_ASKED_FOR:
            yield from found(entry, f"cause {entry.id}: no answer leads to it")
    yield from _length(questions, entries, start)


def _ways(entry: KnowledgeEntry, questions: Set[str], causes: Set[str]) -> Iterator[Finding]:
    question: Question = entry.value
    ways: list[tuple[str, tuple[str, ...], str | None, str | None]]
    ways = [(f"answer {key}", ("answers", key), a.next, a.leads_to) for key, a in question.answers.items()]
    ways.append(("no answer", ("unknown_next",), question.unknown_next, question.unknown_leads_to))
    for what, at, following, leaf in ways:
        if (following is None) == (leaf is None):
            yield from found(entry, f"question {entry.id}, {what}: leads to one question or one cause", *at)
        if following is not None and following not in questions:
            yield from found(entry, f"question {entry.id}, {what}: there is no question {following}", *at)
        if leaf is not None and leaf not in causes:
            yield from found(entry, f"question {entry.id}, {what}: there is no cause {leaf}", *at)


def following(question: Question) -> list[str]:
    """The questions that may come next."""
    ways = [*(answer.next for answer in question.answers.values()), question.unknown_next]
    return [name for name in dict.fromkeys(ways) if name is not None]


def _reach(questions: Mapping[str, Question], start: str) -> tuple[set[str], set[str]]:
    reached: set[str] = set()
    leaves: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name in reached or name not in questions:
            continue
        reached.add(name)
        question = questions[name]
        ahead += following(question)
        leaves |= {a.leads_to for a in question.answers.values() if a.leads_to is not None}
        leaves |= {question.unknown_leads_to} if question.unknown_leads_to is not None else set()
    return reached, leaves


def _length(questions: Mapping[str, Question], entries: Mapping[str, KnowledgeEntry], start: str) -> Iterator[Finding]:
    longest: dict[str, int] = {}
    circles: set[str] = set()

    def measure(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            circles.add(name)
            return 0
        if name not in longest:
            after = [measure(way, (*above, name)) for way in following(questions[name]) if way in questions]
            longest[name] = (questions[name].asked_when != ()) + max(after, default=0)
        return longest[name]

    length = measure(start, ())
    for name in sorted(circles):
        yield from found(entries[name], f"question {name}: its answers lead back to it")
    if length > LONGEST and not circles:
        yield from found(entries[start], f"the longest path asks {length} questions; {LONGEST} are enough")
