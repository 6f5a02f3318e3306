"""Between a framework's values and knobs: what from_knob gives, to_knob takes back to the same knob."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import SettingFact
from advisor.rules.expression import Expression
from advisor.run.conversion import from_knob, meaning, speaks_in_words, to_knob, words_of
from advisor.run.natives import Native, Natives, RunScope
from advisor.run.run import Topology
from tests.loops import each

WORDS = [
    (framework.framework, key, fact, fact.to_knob)
    for framework in load_knowledge().frameworks
    for key, fact in framework.settings.items()
    if fact.knob is not None and fact.to_knob is not None and speaks_in_words(fact.to_knob)
]


def natives(fact: SettingFact, value: int | str | None = None) -> Natives:
    return Natives(None, "", {"key": Native("key", None if value is None else str(value), value, "script", fact)})


@each(("framework", "key", "fact", "rule"), WORDS, ids=[f"{one[0]} {one[1]}" for one in WORDS])
def test_every_word_of_a_dialect_can_be_found_by_what_it_means(
    framework: str, key: str, fact: SettingFact, rule: Expression
) -> None:
    known = natives(fact)
    for word in words_of(rule, fact):
        target = meaning(rule, word, fact, known)
        if target is not None:
            found = from_knob(fact, str(fact.knob), target, known, "key")
            assert found is not None or fact.also
            assert found is None or meaning(rule, found, fact, known) == target


@given(
    st.sampled_from(["value * 3", "value + 7", "value - 2", "(value + 1) * 4", "100 - value", "value // 2", "value"]),
    st.integers(1, 1000),
)
def test_arithmetic_in_which_the_value_stands_once_is_turned_round(text: str, value: int) -> None:
    fact = SettingFact(knob="k", type="int", to_knob=Expression(text))
    known = natives(fact)
    target = to_knob(value, fact.to_knob, RunScope(known)).value
    assert target is not None
    found = from_knob(fact, "k", target, known, "key")
    assert found is not None
    assert to_knob(int(found), fact.to_knob, RunScope(known)).value == target


def test_where_no_value_gives_the_knob_there_is_none() -> None:
    fact = SettingFact(knob="k", type="int", to_knob=Expression("value * 2"))
    assert from_knob(fact, "k", 7, natives(fact), "key") is None


@each(
    ("rule", "value", "made", "how"),
    [
        ("value // dp", 160, 40, "160 // 4 data-parallel ranks = 40"),
        ("value // dp * samples", 160, 40, "(160 // 4 data-parallel ranks) * 1 samples = 40"),
        ("value * samples // dp", 64, 16, "64 * 1 samples // 4 data-parallel ranks = 16"),
        ("0.4 if other and value >= 0.9 else value", 0.95, 0.4, "0.95 becomes 0.4 with other"),
        ("0.4 if other and value >= 0.9 else value", 0.5, 0.5, ""),
        ("value // unknown", 160, None, ""),
    ],
)
def test_a_knob_says_how_it_came(rule: str, value: float, made: float | None, how: str) -> None:
    fact = SettingFact(type="bool")
    known = Natives(None, "", {"other": Native("other", "true", True, "script", fact)})
    found = to_knob(value, Expression(rule), RunScope(known, Topology(actor_gpus=4)))
    assert (found.value, found.how) == (made, how)
