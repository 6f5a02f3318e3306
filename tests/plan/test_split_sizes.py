"""A size that splits sequences or matrices over GPUs divides them, in every dialect: no plan asks for more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework, SettingFact
from tests.loops import each
from tests.plan.planned import Planned
from tests.plan.test_usual_ways_out import BARE, UPDATE

SPLITS = {"actor.sequence_parallel", "actor.tensor_parallel"}
COUNTS = ("gpus", "actor_gpus")
DIALECTS = load_knowledge().frameworks


def facts_of(known: SettingFact) -> Iterator[SettingFact]:
    yield known
    if known.before is not None:
        yield known.before


@each("dialect", DIALECTS, ids=lambda dialect: dialect.framework)
def test_every_size_that_splits_is_held_against_the_gpus(dialect: Framework) -> None:
    loose = [
        key
        for key, known in dialect.settings.items()
        for fact in facts_of(known)
        if SPLITS in (fact.knob, *fact.also) and not any(set(rule.holds.names()) & set(COUNTS) for rule in fact.must)
    ]
    assert loose == []


@pytest.mark.parametrize("cards", [2, 4, 6])
def test_no_sequence_is_split_over_more_gpus_than_train(planned: Planned, cards: int) -> None:
    launch = (
        f"NPROC_PER_NODE={cards} swift sft --model Qwen/Qwen3-14B --train_type full --dataset x/y --max_length 32768"
        " --per_device_train_batch_size 1 --deepspeed zero3 --output_dir out\n"
    )
    step = planned(launch, BARE, *UPDATE, "--gpus", f"{cards}xA100-80GB").get("sequence-parallel", {})
    changes = step.get("changes", [])
    assert isinstance(changes, list)
    assert all(cards % int(change["new"]) == 0 for change in changes)
