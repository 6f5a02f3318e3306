"""Attention that is not fused holds its scores: heads x queries x keys, in one layer or, uncheckpointed, in all."""

from __future__ import annotations

import pytest

from advisor.memory.cells import PhaseSum
from advisor.memory.ledger import build_ledger
from advisor.run.run import KnobValue, Topology
from advisor.run.shape import find_shape
from tests.memory.evaluate import evaluate
from tests.memory.runs import DEEPSPEED, box, make_run, models

LENGTH = 8192


def phase(name: str, **knobs: KnobValue) -> PhaseSum:
    given: dict[str, KnobValue | None] = {
        "actor.zero_stage": 3,
        "actor.micro_batch": 1,
        "logprob.micro_batch": 1,
        "actor.gradient_checkpointing": True,
        "data.prompt_tokens": 1024,
        "data.response_tokens": LENGTH - 1024,
        **{name.replace("__", "."): value for name, value in knobs.items()},
    }
    run = make_run("Qwen2.5-7B", DEEPSPEED, Topology(1, 8, 8, 8), given)
    found = build_ledger(run, box(8, 79.15)).phase("gpu", name)  # type: ignore[arg-type]
    assert found is not None
    return found


def scores(of: PhaseSum) -> int:
    return sum(cell.expected for cell in of.cells if "attention scores" in cell.formula)


@pytest.mark.parametrize("name", ["actor_update", "log_prob"])
def test_eager_attention_adds_the_scores_of_one_layer(name: str) -> None:
    eager = phase(name, actor__flash_attention=False)
    assert scores(eager) == pytest.approx(8 * 28 * LENGTH**2, rel=0.01)
    assert scores(phase(name, actor__flash_attention=True)) == scores(phase(name)) == 0


def test_without_checkpointing_every_layer_keeps_its_softmax() -> None:
    kept = phase("actor_update", actor__flash_attention=False, actor__gradient_checkpointing=False)
    assert scores(kept) > 28 * 6 * 28 * LENGTH**2 * 0.99


def test_the_formula_of_the_scores_evaluates_to_its_bytes() -> None:
    (cell,) = (c for c in phase("actor_update", actor__flash_attention=False).cells if "attention sco" in c.formula)
    assert evaluate(cell.formula.split(": ", 1)[1]) == pytest.approx(cell.expected, rel=0.01)


def test_a_name_with_an_active_part_is_a_mixture_of_experts() -> None:
    shape = find_shape("Foo-48B-A3B", models(), lambda _: None)
    assert shape is not None
    assert shape.experts > 0
    assert shape.parameters == 48_000_000_000
    assert (find_shape("Foo-48B", models(), lambda _: None) or shape).experts == 0
