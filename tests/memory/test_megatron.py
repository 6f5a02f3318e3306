"""Megatron's shares, and peaks measured by ms-swift's Megatron examples (the reading stands in their comments)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from advisor.memory.cells import PhaseSum
from advisor.memory.ledger import build_ledger
from advisor.memory.megatron import split_of
from advisor.run.run import KnobValue, Run, Topology
from advisor.units import GIB
from tests.loops import each
from tests.made_mechanics import made_mechanics
from tests.measured.published import ledger_of

from .runs import box, make_run, shape

MEGATRON = made_mechanics(
    trainer="megatron",
    weight_bytes=2,
    gradient_bytes=4,
    master_bytes=4,
    moment_bytes=8,
    step_extra_bytes=0,
    logits_update_bytes=6,
)
Knobs = dict[str, KnobValue | None]
PACKED: Knobs = {"data.pack_tokens": 8192}
LORA: Knobs = {"actor.lora_rank": 32, "actor.full_finetuning": False}
ROWS: list[tuple[str, int, float, Knobs]] = [
    ("Qwen2.5-7B", 4, 50, {"actor.tensor_parallel": 4, "data.pack_tokens": 32768}),
    ("Qwen3-32B", 8, 80, {"actor.tensor_parallel": 8, **PACKED}),
    ("Qwen3-4B", 4, 28, {"actor.tensor_parallel": 4, "reference.present": True, **PACKED}),
    ("Qwen3-30B-A3B", 16, 60, {"actor.pipeline_parallel": 2, "actor.expert_parallel": 8, **PACKED}),
    ("Qwen3-30B-A3B", 4, 75, {"actor.expert_parallel": 4, "actor.optimizer_cpu_part": 1.0, **PACKED}),
    ("Qwen3-30B-A3B", 4, 49, {"actor.expert_parallel": 4, **LORA, **PACKED}),
    ("Moonlight-16B-A3B", 8, 60, {"actor.pipeline_parallel": 2, "actor.expert_parallel": 4, **PACKED}),
]


def run_of(model: str, gpus: int, knobs: Knobs) -> Run:
    common: Knobs = {"actor.recompute_granularity": "full", "reference.present": False}
    topology = Topology(max(1, gpus // 8), min(8, gpus), gpus, 0)
    return make_run(model, MEGATRON, topology, {**common, **knobs}, "sft")


def peak(model: str, gpus: int, knobs: Knobs) -> PhaseSum:
    found = build_ledger(run_of(model, gpus, knobs), box(min(8, gpus), 80, 1000)).peak("gpu")
    assert found is not None
    return found


@each(("model", "gpus", "measured", "knobs"), ROWS)
def test_a_measured_peak_lies_in_the_interval_and_near_what_is_expected(
    model: str, gpus: int, measured: float, knobs: Knobs
) -> None:
    found = peak(model, gpus, knobs)
    assert found.low < measured * GIB < found.high
    assert abs(found.expected / GIB / measured - 1) < 0.10
    assert found.high < 1.45 * found.expected


def test_the_fullest_rank_has_its_part_of_layers_tables_and_experts() -> None:
    mixture = shape("Qwen3-30B-A3B")
    sizes: Knobs = {
        "actor.tensor_parallel": 4,
        "actor.expert_parallel": 4,
        "actor.expert_tensor_parallel": 1,
    }
    split = split_of(run_of("Qwen3-30B-A3B", 16, sizes), mixture)
    assert split is not None
    experts = 48 * 128 * 3 * 2048 * 768
    assert split.parameters == (mixture.parameters - experts) / 4 + experts / 4
    assert split.optimizer == (mixture.parameters - experts) / 4 / 4 + experts / 4 / 4


def test_experts_are_split_as_the_other_layers_are_unless_the_run_says_otherwise() -> None:
    mixture = shape("Qwen3-30B-A3B")
    split = split_of(run_of("Qwen3-30B-A3B", 16, {"actor.tensor_parallel": 4, "actor.expert_parallel": 4}), mixture)
    assert split is not None
    experts = 48 * 128 * 3 * 2048 * 768
    assert split.parameters == (mixture.parameters - experts) / 4 + experts / 16


@pytest.mark.parametrize("size", ["actor.tensor_parallel", "actor.pipeline_parallel"])
def test_every_rank_more_holds_less(size: str) -> None:
    one, two, four = (peak("Qwen3-32B", 8, {size: count, **PACKED}).expected for count in (1, 2, 4))
    assert one > two > four


def test_context_parallel_ranks_share_the_tokens_of_a_row_and_not_the_weights() -> None:
    whole, half = (peak("Qwen2.5-7B", 8, {"actor.context_parallel": count, **PACKED}) for count in (1, 2))
    weights = [sum(x.expected for x in found.cells if x.owner == "weights") for found in (whole, half)]
    kept = [sum(x.expected for x in found.cells if x.owner in ("activations", "logits")) for found in (whole, half)]
    assert weights[0] == weights[1]
    assert kept[1] == pytest.approx(kept[0] / 2, rel=0.01)


def test_an_optimizer_on_the_cpu_moves_from_the_card_to_the_node() -> None:
    knobs: Knobs = {"actor.tensor_parallel": 8, **PACKED}
    ledgers = [
        build_ledger(run_of("Qwen3-32B", 8, {**knobs, "actor.optimizer_cpu_part": part}), box(8, 80, 1000))
        for part in (0.0, 0.5)
    ]
    update = [ledger.phase("gpu", "actor_update") for ledger in ledgers]
    node = [ledger.phase("host", "actor_update") for ledger in ledgers]
    assert update[0] is not None
    assert update[1] is not None
    assert node[0] is not None
    assert node[1] is not None
    assert update[0].expected - update[1].expected == pytest.approx(6 * 32_762_123_264 / 8, rel=0.05)
    assert node[1].expected - node[0].expected == pytest.approx(8 * 32_762_123_264, rel=0.01)


def test_without_any_size_the_states_are_an_even_spread_and_the_ledger_says_so() -> None:
    ledger = build_ledger(run_of("Qwen3-32B", 8, PACKED), box(8, 80))
    assert "Megatron: states spread evenly over all training GPUs" in ledger.assumed


@pytest.mark.parametrize(("offloaded", "kept"), [(False, True), (True, False)])
def test_gradient_buffers_of_megatron_stay_unless_the_weights_leave_with_them(offloaded: bool, kept: bool) -> None:
    parameters: Knobs = {"actor.tensor_parallel": 4, "actor.param_offload": offloaded, "actor.optimizer_offload": True}
    mechanics = replace(MEGATRON, offload_lowers_update=False)
    run = replace(run_of("Qwen2.5-7B", 4, {**PACKED, **parameters}), mechanics=mechanics)
    ledger = build_ledger(run, box(4, 80))
    for phase in ("model_load", "log_prob", "checkpoint"):
        found = ledger.phase("gpu", phase)
        held = found is not None and any(cell.owner == "gradients" for cell in found.cells)
        assert held is (kept and found is not None)


VERL = {
    "framework": "verl",
    "model": "Qwen/Qwen2.5-7B",
    "gpus": "8xH100-80GB",
    "program": "verl.trainer.main_ppo",
}


@each("version", ["0.4.1", "0.6.1", "0.7.0", "0.8.0"])
def test_verl_s_megatron_packs_the_rows_of_a_pass_unless_its_key_says_otherwise(version: str) -> None:
    settings: dict[str, object] = {
        "actor_rollout_ref.actor.strategy": "megatron",
        "actor_rollout_ref.actor.megatron.tensor_model_parallel_size": 2,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 8,
        "data.max_prompt_length": 1024,
        "data.max_response_length": 3072,
    }

    def kept(**more: object) -> int:
        phase = ledger_of({**VERL, "libraries": {"verl": version}, "settings": {**settings, **more}}).phase(
            "gpu", "actor_update"
        )
        assert phase is not None
        return phase.of("activations")

    one_long_row = {
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 1,
        "data.max_response_length": 8 * 4096 - 1024,
    }
    whole = kept(**one_long_row)
    assert kept() == pytest.approx((1 + 0.3 * 7) / 8 * whole, rel=0.01)
    if version in PADDED:
        assert kept(**PADDED[version]) == pytest.approx(whole, rel=0.01)


PADDED: dict[str, dict[str, object]] = {
    "0.7.0": {"actor_rollout_ref.actor.megatron.use_remove_padding": False},
    "0.8.0": {"actor_rollout_ref.model.use_remove_padding": False},
}


def test_the_part_of_the_optimizer_that_steps_on_the_cpu_does_not_rest_there_a_second_time() -> None:
    prefix = "actor_rollout_ref.actor.megatron"
    settings: dict[str, object] = {"actor_rollout_ref.actor.strategy": "megatron", f"{prefix}.optimizer_offload": True}
    settings[f"{prefix}.tensor_model_parallel_size"] = 2

    def rests(fraction: float) -> int:
        moved = {
            "+actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_cpu_offload": True,
            "+actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_offload_fraction": fraction,
        }
        run = {**VERL, "libraries": {"verl": "0.6.1"}, "settings": {**settings, **(moved if fraction else {})}}
        phase = ledger_of(run).phase("host", "actor_update")
        assert phase is not None
        return phase.of("offloaded_optimizer")

    assert rests(1) == pytest.approx(16 / 12 * rests(0), rel=1e-6)  # the gradients come with it, in fp32
