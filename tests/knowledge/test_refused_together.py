"""No plan makes a framework refuse its launch: launches that stand one switch before a refusal, in every era of every
dialect, and whatever would be switched on for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from advisor.knowledge.schema import Cause, Constraint, Framework
from advisor.memory.predict import Overrides, Predictor
from advisor.plan import solve
from advisor.plan.options import options
from advisor.plan.situation import Situation
from advisor.plan.solve import make_plan, overrides_of
from advisor.rules.tree import Compare, Constant, Joint, Name, Node, Not, joined
from advisor.run.constraints import violations
from advisor.run.natives import fact_in
from tests.heavy import sampled
from tests.knowledge.test_every_remedy import (
    ENDS,
    ERAS,
    IDS,
    KNOWLEDGE,
    SETTINGS,
    few_values_and_one_ledger,
    folder,
    opened,
)
from tests.replacing import replace

__all__ = ["few_values_and_one_ledger", "folder"]
BATCH = next(cause for cause in KNOWLEDGE.tree.causes if cause.id == "batch-too-big")
EVERYTHING: Cause = replace(
    BATCH, remedies=tuple(r.id for r in SETTINGS if r.memory == "gpu" and r.kind == "setting"), folklore=()
)
"""A cause that would like to change whatever there is."""


def everything_broken(situation: Situation, overrides: Overrides) -> set[str]:
    """All that the framework would say to these values, whichever key a rule is written at."""
    built = situation.predictor.built(overrides)
    return set(violations(built, list(built.natives.values)))


def rules_of(framework: Framework, era: str) -> Iterator[tuple[str, Constraint]]:
    """Rules of the era about several keys, with the key that they are written at."""
    for key, known in framework.settings.items():
        fact = fact_in(known, era)
        for rule in fact.must if fact is not None else ():
            if not rule.eras or era in rule.eras:
                yield key, rule
    yield from (("", rule) for rule in framework.must if not rule.eras or era in rule.eras)


def at_its_ends(framework: Framework, era: str) -> Iterator[tuple[str, Constraint]]:
    """The era's rules, each in the first and in the last era that has it: between them nothing of it changes."""
    every = [each for each in ERAS if each[0].framework == framework.framework]
    for key, rule in rules_of(framework, era):
        having = [one for _, one, _ in every if any(other is rule for _, other in rules_of(framework, one))]
        if era in (having[0], having[-1]):
            yield key, rule


def terms(tree: Node) -> dict[str, tuple[str, str | None]]:
    """Key → a text for which its part of a refusal holds, and one for which it does not, where that is known."""
    found: dict[str, tuple[str, str | None]] = {}
    for part in joined("and", tree):
        if isinstance(part, Name):
            found[part.name] = ("True", "False")
        elif isinstance(part, Not) and isinstance(part.part, Name):
            found[part.part.name] = ("False", "True")
        elif isinstance(part, Compare) and isinstance(part.left, Name) and isinstance(part.right, Constant):
            number = part.sign == ">" and isinstance(part.right.value, int)
            found[part.left.name] = (str(int(part.right.value or 0) + 1 if number else part.right.value), None)
    return found


def refused(rule: Constraint) -> Node | None:
    """What must not hold together: of `not (a and b)`."""
    tree = rule.holds.tree
    return tree.part if isinstance(tree, Not) and isinstance(tree.part, Joint) else None


def one_switch_before(key: str, rule: Constraint) -> Iterator[Mapping[str, str]]:
    """Settings with which one more of the rule's keys would bring the refusal."""
    together, tree = refused(rule), rule.holds.tree
    if together is not None:
        known = terms(together)
        for last, (_, otherwise) in known.items():
            rest = {name: text for name, (text, _) in known.items() if name != last}
            yield {**rest, **({last: otherwise} if otherwise is not None else {})}
    if len(joined("or", tree)) == 2:  # value == x or other != y: pinned while the other is y
        pinned, while_ = joined("or", tree)
        value = pinned.right if isinstance(pinned, Compare) else Constant(not isinstance(pinned, Not))
        if isinstance(while_, Compare) and while_.sign == "!=" and isinstance(while_.left, Name):
            yield {while_.left.name: str(while_.right).strip('"')}
        elif isinstance(while_, (Name, Not)):
            yield {name: no for name, (_, no) in terms(while_).items() if no is not None}
        yield {key: str(value).strip('"')}


def with_settings(situation: Situation, found: Mapping[str, str]) -> Situation:
    """The same launch with these settings in it."""
    predictor = situation.predictor
    inputs = replace(predictor.inputs, overrides=found)
    return replace(situation, predictor=Predictor(inputs, predictor.crash, predictor.margin))


def near_refusals(framework: Framework, era: str, situation: Situation) -> list[Situation]:
    """The launch itself, and with such settings; those that the framework would refuse as they are, left out."""
    sets = [dict(found) for key, rule in at_its_ends(framework, era) for found in one_switch_before(key, rule)]
    unique = {tuple(sorted(found.items())): found for found in sets}
    known = situation.now.built.natives.values
    allowed = [found for found in unique.values() if set(found) <= set(known)]
    near = [with_settings(situation, found) for found in allowed]
    quiet = everything_broken(situation, {})
    return [situation, *(each for each in near if everything_broken(each, {}) <= quiet)]


@pytest.mark.parametrize(("framework", "era", "versions"), sampled(ERAS, ENDS), ids=IDS)
def test_nothing_that_a_plan_switches_on_is_refused(
    framework: Framework, era: str, versions: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve, "_beyond", lambda *_: "")  # a sentence, half of the time: it switches nothing on
    for situation in near_refusals(framework, era, opened(framework.framework, era, versions, folder).situation):
        chosen = overrides_of(make_plan(situation, EVERYTHING).steps)
        assert everything_broken(situation, chosen) <= everything_broken(situation, {}), (
            situation.predictor.inputs.overrides,
            chosen,
        )


@pytest.mark.parametrize(("framework", "era", "versions"), sampled(ERAS, ENDS), ids=IDS)
def test_nothing_is_offered_that_a_rule_written_at_another_key_refuses(
    framework: Framework, era: str, versions: str, folder: Path
) -> None:
    for situation in near_refusals(framework, era, opened(framework.framework, era, versions, folder).situation)[1:]:
        natives = situation.now.built.natives
        named = {
            name
            for key, rule in rules_of(framework, era)
            for name in (key, *terms(refused(rule) or Constant(None)))
            if set(situation.predictor.inputs.overrides) & {key, *terms(refused(rule) or Constant(None))}
        }
        for remedy in SETTINGS:
            carrier = natives.carrier(remedy.knob or "")
            if carrier is None or carrier.key not in named:
                continue
            for option in (options(remedy, situation, {}) or ([], ""))[0]:
                assert everything_broken(situation, option.overrides) <= everything_broken(situation, {}), remedy.id
