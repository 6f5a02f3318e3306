"""What a regex needs: no text that it matches lacks it."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.knowledge.literals import needed
from advisor.knowledge.load import load_knowledge
from tests.heavy import examples
from tests.loops import each

KNOWLEDGE = load_knowledge()
RULES = [*KNOWLEDGE.signatures.frames, *(rule for one in KNOWLEDGE.frameworks for rule in one.frames)]


@each(
    ("pattern", "literals"),
    [
        (r"ray_trainer\.py:_validate$", ("ray_trainer.py:_validate",)),
        (r"(?:vllm|sglang)_rollout", ("_rollout",)),
        (r":(?:wake_up|resume)$", ("resume", "wake_up")),
        (r"(?i)Sharding\w*Manager", ("sharding",)),
        (r"(?:checkpoint){1,3}", ("checkpoint",)),
        (r"(?:checkpoint)?", ()),
        (r"(?:checkpoint|\w+)", ()),
        (r"ab", ()),
        (r"(?=checkpoint)\w+", ()),
    ],
)
def test_the_longest_literals_that_must_stand_there_are_found(pattern: str, literals: tuple[str, ...]) -> None:
    assert needed(pattern) == literals


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data(), rule=st.sampled_from(RULES))
def test_whatever_a_rule_matches_holds_what_the_rule_needs(data: st.DataObject, rule) -> None:  # type: ignore[no-untyped-def]
    text = data.draw(st.from_regex(rule.frame))
    assert re.search(rule.frame, text)
    assert not rule.needs or any(literal in text.lower() for literal in rule.needs)


def test_most_rules_of_ours_are_spared_where_they_cannot_match() -> None:
    assert sum(bool(rule.needs) for rule in RULES) > 0.9 * len(RULES)
