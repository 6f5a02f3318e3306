"""Many done steps show that host memory grew."""

from __future__ import annotations

import pytest

from advisor.diagnosis.conditions import contradicted, holds
from advisor.diagnosis.fact import Fact, Facts
from advisor.diagnosis.tree import walk
from advisor.knowledge import load_knowledge
from advisor.rules.expression import Expression

K = load_knowledge()


def facts_of(**values: object) -> Facts:
    return {name.replace("__", "."): Fact(value, "log", "said") for name, value in values.items()}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "phase", "cause"),
    [
        (45, None, "host-growth"),
        (45, "rollout_generate", "host-growth"),
        (45, "checkpoint", "checkpoint-gather"),
        (4, "rollout_generate", "host-too-small"),
    ],
)
def test_what_had_room_for_many_steps_has_grown(steps: int, phase: str | None, cause: str) -> None:
    known = facts_of(memory="host", steps_done=steps, first_step=False, **({"phase": phase} if phase else {}))
    assert walk(K.tree, known, {}).cause.id == cause


def test_groups_of_conditions_may_hold_groups() -> None:
    inner = "steps_done >= 10 and not known(phase)"
    rule = Expression(f"sleep or {inner}")
    assert holds(rule, facts_of(steps_done=12)) is not None
    assert holds(rule, facts_of(steps_done=9)) is None
    assert holds(rule, facts_of(steps_done=12, phase="validation")) is None
    assert contradicted(Expression(inner), facts_of(steps_done=9))
    assert not contradicted(Expression(inner), facts_of(sleep=True))
