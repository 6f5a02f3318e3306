"""What the weight sync gathers, and what of the trainer sleeps meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.knowledge.schema import Mechanics
from advisor.memory.cells import Ledger, Owner, total
from advisor.memory.fit import Walls, unfit
from advisor.memory.gpu_phases import sync_gathers
from advisor.memory.inputs import read_inputs
from advisor.memory.ledger import build_ledger
from advisor.run.run import KnobValue, Topology
from advisor.units import GIB
from advisor.words import Phase
from tests.replacing import replace

from .runs import DEEPSPEED, box, make_run, shape

FULL = replace(DEEPSPEED, sync_gathers="full", wakes_beside=("weights", "gradients", "master", "moments"))
ALL = Topology(1, 8, 8, 8, 4)
LORA: dict[str, KnobValue | None] = {"actor.lora_rank": 8, "actor.full_finetuning": False}
OFFLOADED: dict[str, Any] = {"actor__optimizer_offload": True, "actor__param_offload": True}
OFF: dict[str, KnobValue | None] = {"actor.optimizer_offload": True, "actor.param_offload": True}


def ledger(mechanics: Mechanics = FULL, model: str = "Qwen2.5-72B-Instruct", **knobs: KnobValue) -> Ledger:
    given: dict[str, KnobValue | None] = {
        "actor.zero_stage": 3,
        "actor.micro_batch": 1,
        "data.prompt_tokens": 1024,
        "data.response_tokens": 1024,
        "rollout.memory_share": 0.5,
        "rollout.sleeps": True,
        "reference.present": False,
        **{name.replace("__", "."): value for name, value in knobs.items()},
    }
    return build_ledger(make_run(model, mechanics, ALL, given), box(8, 79.15))


def owned(found: Ledger, phase: Phase, owner: Owner, place: str = "gpu") -> int:
    one = found.phase("gpu" if place == "gpu" else "host", phase)
    assert one is not None
    return sum(cell.expected for cell in one.cells if cell.owner == owner)


def gathered(batches: int | None) -> int:
    knobs: dict[str, KnobValue | None] = {"actor.zero_stage": 3, "sync.batches": batches}
    return total(sync_gathers(read_inputs(make_run("Qwen2.5-72B-Instruct", FULL, ALL, knobs), box(8, 79.15))))


def test_a_sync_in_one_piece_gathers_the_whole_model() -> None:
    assert gathered(None) == 2 * shape("Qwen2.5-72B").parameters


def test_a_sync_in_pieces_gathers_the_layers_of_one_piece_but_embedding_and_head_together() -> None:
    model = shape("Qwen2.5-72B")
    assert gathered(4) == pytest.approx(2 * model.parameters / 4, rel=0.05)
    assert gathered(4) > gathered(8) > gathered(16)
    assert gathered(80) == 2 * 2 * model.vocab * model.hidden


def test_the_known_fit_of_a_72b_lora_on_four_cards_fits() -> None:
    """ms-swift's vllm_72b_4gpu.sh: 4 x 80 GB, 16 pieces, engine share 0.55, TP 4."""
    knobs: dict[str, KnobValue | None] = {
        **LORA,
        **OFF,
        "actor.zero_stage": 3,
        "actor.gradient_checkpointing": True,
        "actor.micro_batch": 1,
        "data.prompt_tokens": 2048,
        "data.response_tokens": 1024,
        "rollout.memory_share": 0.55,
        "rollout.sleeps": True,
        "sync.batches": 16,
    }
    run = make_run("Qwen2.5-72B-Instruct", FULL, Topology(1, 4, 4, 4, 4), knobs)
    assert unfit(build_ledger(run, box(4, 79.15)), "gpu", Walls(0.08)) == []


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_below_zero_3_nothing_is_gathered(stage: int) -> None:
    assert owned(ledger(actor__zero_stage=stage, model="Qwen2.5-7B"), "weight_sync", "gathered") == 0


def test_full_training_may_sync_one_tensor_at_a_time_where_only_adapters_are_merged_in_bulk() -> None:
    merging = replace(FULL, sync_gathers="full_to_merge")
    assert owned(ledger(merging, **OFFLOADED), "weight_sync", "gathered") < 10 * GIB
    lora = ledger(merging, actor__lora_rank=8, actor__full_finetuning=False, **OFFLOADED)
    assert owned(lora, "weight_sync", "gathered") == 2 * shape("Qwen2.5-72B").parameters


def test_masters_stay_on_the_card_where_only_the_moments_sleep() -> None:
    parameters = shape("Qwen2.5-7B").parameters
    kept = {
        stay: ledger(replace(FULL, masters_stay=stay), "Qwen2.5-7B", actor__state_sleep=True) for stay in (True, False)
    }
    assert owned(kept[False], "rollout_generate", "optimizer") == 0
    assert owned(kept[True], "rollout_generate", "optimizer") == pytest.approx(4 * parameters / 8, rel=1e-6)
    asleep = {stay: owned(found, "rollout_generate", "offloaded_optimizer", "host") for stay, found in kept.items()}
    assert asleep[False] == pytest.approx(12 * parameters, rel=1e-6)
    assert asleep[True] == pytest.approx(8 * parameters, rel=1e-6)
    assert owned(kept[True], "actor_update", "optimizer") == pytest.approx(12 * parameters / 8, rel=1e-6)
