"""Whether a fact holds: the few comparisons that the knowledge files may make."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.diagnosis.fact import Fact, Facts
from advisor.knowledge.schema import Rule
from advisor.language import clauses, say
from advisor.run.releases import version_in

COMPARISONS = frozenset({"fact", "is", "is_not", "at_least", "below", "version", "any", "all", "none_of", "absent"})


def holds(rule: Rule, facts: Facts) -> Fact | None:
    """The fact that makes the rule hold, None where it does not hold or is not known.

    {fact: F} true · {fact: F, is: x or [x, …]} · {fact: F, is_not: …} · {fact: F, at_least: n} · {fact: F, below: n}
    · {fact: library.L, version: ">=1,<2"} · {any: [rules]} · {all: [rules]}
    · {none_of: [rules]} (all known to be otherwise) · {absent: F}.
    """
    if "any" in rule:
        return next((found for part in rule["any"] if (found := holds(part, facts)) is not None), None)
    if "all" in rule:
        return next(iter(all_hold(rule["all"], facts) or ()), None)
    if "none_of" in rule:
        return _none_of(rule["none_of"], facts)
    if "absent" in rule:
        name = str(rule["absent"])
        return None if name in facts else Fact(True, "script", say("{fact} is not known", fact=name))
    fact = facts.get(str(rule["fact"]))
    return fact if fact is not None and _compare(rule, fact) else None


def contradicted(rule: Rule, facts: Facts) -> bool:
    """Whether the rule is known not to hold; a fact that is not known contradicts nothing."""
    if "any" in rule:
        return all(contradicted(part, facts) for part in rule["any"])
    if "all" in rule:
        return any(contradicted(part, facts) for part in rule["all"])
    if "none_of" in rule:
        return any(holds(part, facts) is not None for part in rule["none_of"])
    if "absent" in rule:
        return str(rule["absent"]) in facts
    return str(rule["fact"]) in facts and holds(rule, facts) is None


def all_hold(rules: Iterable[Rule], facts: Facts) -> list[Fact] | None:
    """The facts that make all rules hold; None where one does not. No rules: an empty list."""
    found: list[Fact] = []
    for rule in rules:
        fact = holds(rule, facts)
        if fact is None:
            return None
        found.append(fact)
    return found


def _none_of(parts: Iterable[Rule], facts: Facts) -> Fact | None:
    because: list[str] = []
    for part in parts:
        fact = facts.get(str(part.get("fact", "")))
        if fact is None or holds(part, facts) is not None:
            return None
        because.append(fact.because)
    return Fact(True, "script", clauses(because))


def _compare(rule: Rule, fact: Fact) -> bool:
    value = fact.value
    if "is" in rule:
        return _among(value, rule["is"])
    if "is_not" in rule:
        return not _among(value, rule["is_not"])
    if "version" in rule:
        return version_in(str(rule["version"]), str(value))
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if "at_least" in rule:
        return number is not None and number >= float(rule["at_least"])
    if "below" in rule:
        return number is not None and number < float(rule["below"])
    return value is True


def _among(value: object, wanted: object) -> bool:
    options = wanted if isinstance(wanted, list) else [wanted]
    return any(option == value or str(option).lower() == str(value).lower() for option in options)
