"""No plan makes a framework refuse its launch: launches that stand one switch before a refusal, in every era of every
dialect, and whatever would be switched on for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from advisor.knowledge.schema import Cause, Framework, Rule
from advisor.memory.predict import Overrides, Predictor
from advisor.plan.options import options
from advisor.plan.situation import Situation
from advisor.plan.solve import make_plan, overrides_of
from advisor.run.bound import fact_in
from advisor.run.constraints import violations
from tests.knowledge.test_every_remedy import ERAS, IDS, KNOWLEDGE, SETTINGS, few_values_and_one_ledger, folder, opened
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


def rules_of(framework: Framework, era: str) -> Iterator[tuple[str, Rule]]:
    """Rules of the era about several keys, with the key that they are written at."""
    for key, known in framework.settings.items():
        fact = fact_in(known, era)
        for rule in fact.must if fact is not None else ():
            if not rule.get("eras") or era in rule["eras"]:
                yield key, rule
    yield from (("", rule) for rule in framework.must if not rule.get("eras") or era in rule["eras"])


def one_switch_before(key: str, rule: Rule) -> Iterator[Mapping[str, str]]:
    """Settings with which one more of the rule's keys would bring the refusal."""
    if rule["rule"] == "not_together":
        terms = {str(t["key"]): str(t["is"]) if "is" in t else str(int(t["above"]) + 1) for t in rule["all"]}
        held = {str(t["key"]): t["is"] for t in rule["all"] if isinstance(t.get("is"), bool)}
        for last in terms:
            other = {last: str(not held[last])} if last in held else {}
            yield {**{name: text for name, text in terms.items() if name != last}, **other}
    if rule["rule"] == "fixed_while":
        yield {str(rule["key"]): str(rule["is"])}
        yield {key: str(rule["value"]).lower() if rule["value"] is False else str(rule["value"])}


def with_settings(situation: Situation, found: Mapping[str, str]) -> Situation:
    """The same launch with these settings in it."""
    predictor = situation.predictor
    inputs = replace(predictor.inputs, overrides=found)
    return replace(situation, predictor=Predictor(inputs, predictor.crash, predictor.margin))


def near_refusals(framework: Framework, era: str, situation: Situation) -> list[Situation]:
    """The launch itself, and with such settings; those that the framework would refuse as they are, left out."""
    sets = [dict(found) for key, rule in rules_of(framework, era) for found in one_switch_before(key, rule)]
    unique = {tuple(sorted(found.items())): found for found in sets}
    known = situation.now.built.natives.values
    allowed = [found for found in unique.values() if set(found) <= set(known)]
    near = [with_settings(situation, found) for found in allowed]
    quiet = everything_broken(situation, {})
    return [situation, *(each for each in near if everything_broken(each, {}) <= quiet)]


@pytest.mark.parametrize(("framework", "era", "versions"), ERAS, ids=IDS)
def test_nothing_that_a_plan_switches_on_is_refused(
    framework: Framework, era: str, versions: str, folder: Path
) -> None:
    for situation in near_refusals(framework, era, opened(framework.framework, era, versions, folder).situation):
        chosen = overrides_of(make_plan(situation, EVERYTHING).steps)
        assert everything_broken(situation, chosen) <= everything_broken(situation, {}), (
            situation.predictor.inputs.overrides,
            chosen,
        )


@pytest.mark.parametrize(("framework", "era", "versions"), ERAS, ids=IDS)
def test_nothing_is_offered_that_a_rule_written_at_another_key_refuses(
    framework: Framework, era: str, versions: str, folder: Path
) -> None:
    for situation in near_refusals(framework, era, opened(framework.framework, era, versions, folder).situation)[1:]:
        natives = situation.now.built.natives
        named = {
            str(term.get("key", ""))
            for key, rule in rules_of(framework, era)
            for term in [*rule.get("all", []), {"key": key}]
            if set(situation.predictor.inputs.overrides) & {key, *(str(t["key"]) for t in rule.get("all", []))}
        }
        for remedy in SETTINGS:
            carrier = natives.carrier(remedy.knob or "")
            if carrier is None or carrier.key not in named:
                continue
            for option in (options(remedy, situation, {}) or ([], ""))[0]:
                assert everything_broken(situation, option.overrides) <= everything_broken(situation, {}), remedy.id
