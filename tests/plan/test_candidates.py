"""The values a remedy may try: mildest first, within its bounds, in the type of the old one."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import NewValue
from advisor.plan.candidates import MOST, candidates
from advisor.rules.expression import decode
from advisor.run.build import BuiltRun
from advisor.run.natives import Native, Natives
from advisor.run.run import Knob, Run, Topology
from tests.loops import each
from tests.made_mechanics import made_mechanics

TOKENS = {
    "tries": [
        str(one) for r in load_knowledge().remedies if r.id == "token-budget" and r.value for one in r.value.tries
    ]
}


def run(total: int | None = 2448) -> BuiltRun:
    knobs = {} if total is None else {"data.total_tokens": Knob("data.total_tokens", total, "script")}
    return BuiltRun(Run("verl", "verl", "", "grpo", None, "", Topology(), knobs, made_mechanics()), Natives(None, ""))


def values(rule: dict[str, Any], old: Any, total: int | None = 2448) -> list[Any]:
    return candidates(
        msgspec.convert(rule, NewValue, dec_hook=decode), Native("key", str(old), old, "script"), run(total)
    )


@each(
    ("rule", "old", "expected"),
    [
        ({"to": True}, False, [True]),
        ({"to": True}, True, []),
        ({"next": "value // 2", "floor": 1}, 8, [4, 2, 1]),
        ({"next": "value // 2", "floor": 1}, 1, []),
        ({"next": "below(value, 8) if value > 8 else value // 2", "floor": 2}, 32, [24, 16, 8, 4, 2]),
        ({"next": "below(value, 0.05)", "floor": 0.45}, 0.6, [0.55, 0.5, 0.45]),
        ({"next": "value * 2", "ceiling": 8}, 2, [4, 8]),
        ({"next": "value + 0.05", "ceiling": 0.65}, 0.5, [0.55, 0.6, 0.65]),
        ({"next": "value * 2", "ceiling": 64, "start": 16}, None, [16]),
        (TOKENS, 16384, [9792, 4896, 2448]),
        ({"next": "value // 2", "floor": "first(data.total_tokens, 1)"}, 10000, [5000, 2500, 2448]),
        ({"next": "value", "floor": 1}, 8, [1]),
    ],
)
def test_candidates_run_from_mild_to_strong(rule: dict[str, Any], old: Any, expected: list[Any]) -> None:
    assert values(rule, old) == expected


def test_without_lengths_half_the_present_token_budget_is_proposed() -> None:
    assert values(TOKENS, 16384, total=None) == [8192]
    assert values(TOKENS, None, total=None) == []


def test_a_setting_without_a_limit_gets_one() -> None:
    assert values({"next": "value // 2", "floor": 1, "start": 64}, None) == [64]
    assert values({"next": "value // 2", "floor": 1, "start": 64}, -1) == [64]


@given(st.integers(1, 10**6), st.sampled_from(["value // 2", "below(value, 8)", "value - 3"]), st.integers(1, 64))
def test_lowering_never_raises_never_passes_the_floor_and_always_ends(old: int, steps: Any, floor: int) -> None:
    found = values({"next": steps, "floor": floor}, old)
    assert len(found) <= MOST
    assert all(floor <= value < old for value in found)
    assert found == sorted(found, reverse=True)
