"""Rules and conditions: names that the code does not have, facts that nobody states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from advisor.knowledge import rules
from advisor.knowledge.checks.shelf import Shelf, found, named_rules, settings
from advisor.knowledge.entries import Entry, Finding
from advisor.knowledge.schema import Rule

_ASKS = frozenset({"fact", "absent", "any", "all", "none_of"})
_COMPARES = frozenset({"is", "is_not"})


def check_conditions(shelf: Shelf) -> Iterator[Finding]:
    """Every rule name and every fact that a file uses exists in the code."""
    yield from _dialect_rules(shelf)
    for entry in shelf.of("remedy"):
        values = [entry.value.value, *entry.value.also.values()]
        yield from _names(entry, values, rules.VALUE_RULES, "value")
        yield from _facts(entry, entry.value.applies_when, shelf, "applies_when")
        for number, name in enumerate(entry.value.known_as):
            yield from _facts(entry, name.when, shelf, "known_as", number, "when")
    for entry in shelf.of("advisory"):
        yield from _facts(entry, entry.value.when, shelf, "when")
        yield from _facts(entry, entry.value.signs, shelf, "signs")
    for entry in shelf.of("cause"):
        yield from _facts(entry, entry.value.proved_by, shelf, "proved_by")
        for number, provision in enumerate(entry.value.provisional):
            yield from _facts(entry, provision.when, shelf, "provisional", number, "when")
        yield from _facts(entry, entry.value.ruled_out_by, shelf, "ruled_out_by")
    for entry in shelf.of("question"):
        for key, answer in entry.value.answers.items():
            yield from _facts(entry, answer.shown_by, shelf, "answers", key)
    for entry in shelf.of("case"):
        for name in entry.value.situation:
            if not _situation(name, shelf):
                yield from found(entry, f"case {entry.id}: nothing here is called {name!r}", "situation", name)


def _dialect_rules(shelf: Shelf) -> Iterator[Finding]:
    for setting in settings(shelf):
        fact = setting.fact
        for field, given, known in (
            ("becomes", fact.becomes, rules.BECOMES_RULES),
            ("also", list(fact.also.values()), rules.BECOMES_RULES),
            ("must", fact.must, rules.MUST_RULES),
            ("no_effect_when", fact.no_effect_when, rules.NO_EFFECT_RULES),
            ("with_it", fact.with_it, rules.WITH_IT_RULES),
        ):
            for rule in named_rules(given):
                if rule["rule"] not in known:
                    yield from setting.found(f"{field}: the code has no rule {rule['rule']}", field)
    for entry in shelf.of("framework"):
        yield from _names(entry, list(entry.value.must), rules.MUST_RULES, "must")
        yield from _names(entry, [entry.value.topology], rules.TOPOLOGY_RULES, "topology")


def _names(entry: Entry, given: Iterable[Any], known: frozenset[str], field: str) -> Iterator[Finding]:
    for rule in named_rules(list(given)):
        if rule["rule"] not in known:
            yield from found(entry, f"{entry.kind} {entry.id}: the code has no rule {rule['rule']}", field)


def _facts(entry: Entry, given: Iterable[Rule], shelf: Shelf, *field: str | int) -> Iterator[Finding]:
    for condition in _parts(given):
        for key in sorted(set(condition) - rules.CONDITION_KEYS):
            yield from found(entry, f"{entry.kind} {entry.id}: conditions have no {key!r}", *field)
        if not _ASKS & set(condition):
            yield from found(entry, f"{entry.kind} {entry.id}: a condition that asks no fact", *field)
        for name in (condition.get("fact"), condition.get("absent")):
            if name is not None and not _is_fact(str(name), shelf):
                yield from found(entry, f"{entry.kind} {entry.id}: nobody states the fact {name!r}", *field)
        if condition.get("fact") in rules.NAMING_FACTS and not _COMPARES & set(condition):
            told = f"the fact {condition['fact']!r} is a name: say what it is, or is_not"
            yield from found(entry, f"{entry.kind} {entry.id}: {told}", *field)


def _parts(given: Iterable[Rule]) -> Iterator[Rule]:
    for condition in given:
        yield condition
        for group in ("any", "all", "none_of"):
            yield from _parts(condition.get(group, ()))


def _is_fact(name: str, shelf: Shelf) -> bool:
    if name in rules.FACTS:
        return True
    for prefix, known in (
        ("knob.", shelf.ids("knob")),
        ("line.", shelf.ids("signature")),
        ("advisory.cause.", shelf.ids("cause")),
        ("advisory.clear.", shelf.ids("cause")),
    ):
        if name.startswith(prefix):
            return name.removeprefix(prefix) in known
    return name.startswith("library.")


def _situation(name: str, shelf: Shelf) -> bool:
    return (
        name in rules.SITUATION_WORDS
        or name.startswith("version ")
        or name in shelf.ids("knob")
        or _is_fact(name, shelf)
    )
