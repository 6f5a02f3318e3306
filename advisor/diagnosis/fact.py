"""Holds named facts with their sources, and tells which of them make a condition of the knowledge files hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from advisor.diagnosis.diagnosis import AnsweredBy
from advisor.language import clauses
from advisor.rules.expression import Expression
from advisor.rules.tree import Call, Joint, Name, Node, Not, RuleValue, joined, names_in, truth

FactValue = str | int | float | bool


class Fact(Struct, frozen=True):
    """A named fact. Facts that are not known are absent, never false."""

    value: FactValue
    source: AnsweredBy
    because: str
    evidence: tuple[int, ...] = ()


Facts = Mapping[str, Fact]


def value_of(facts: Facts, name: str) -> FactValue | None:
    """The value of a fact; None where nobody knows it."""
    fact = facts.get(name)
    return None if fact is None else fact.value


class FactScope:
    """The names of a condition are facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def value(self, name: str) -> RuleValue | None:
        """The fact's value; None where nobody knows it."""
        return value_of(self.facts, name)

    given = value


def holds(rule: Expression, facts: Facts) -> Fact | None:
    """The fact that makes the condition hold, None where it does not hold or is not known."""
    scope = FactScope(facts)
    return _witness(rule.tree, scope) if rule.holds(scope) is True else None


def contradicted(rule: Expression, facts: Facts) -> bool:
    """Whether the condition is known not to hold; a fact that is not known contradicts nothing."""
    return rule.holds(FactScope(facts)) is False


def all_hold(rules: Iterable[Expression], facts: Facts) -> list[Fact] | None:
    """The facts that make all conditions hold; None where one does not. None given: an empty list."""
    found: list[Fact] = []
    for rule in rules:
        fact = holds(rule, facts)
        if fact is None:
            return None
        found.append(fact)
    return found


def every(rule: Expression, facts: Facts) -> list[Fact] | None:
    """The same of the parts of one condition that joins them by `and`."""
    scope = FactScope(facts)
    return [_witness(part, scope) for part in joined("and", rule.tree)] if rule.holds(scope) is True else None


def _witness(node: Node, scope: FactScope) -> Fact:
    """The fact behind a part that holds: of `or` the first that does, of `and` the first part."""
    if isinstance(node, Joint):
        return _witness(next(part for part in node.parts if truth(part.of(scope)) is True), scope)
    known = [scope.facts[name] for name in names_in(node) if name in scope.facts]
    if isinstance(node, Not) and isinstance(node.part, Call) and not known:
        return Fact(True, "script", "")  # that nobody knows something is no reason that anybody need read
    if len(known) == 1 and not (isinstance(node, Not) and not isinstance(node.part, Name)):
        return known[0]
    return Fact(True, "script", clauses(dict.fromkeys(fact.because for fact in known if fact.because)))
