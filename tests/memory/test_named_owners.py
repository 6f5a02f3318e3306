"""Every owner, phase and form of parallelism that is named for the ledger stands in the ledger of a run that has it."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.memory.cells import Cell, Ledger, Place
from tests.loops import each
from tests.measured.published import ledger_of

VERL: dict[str, Any] = {
    "framework": "verl",
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "gpus": "8xA100-80GB",
    "host_ram": "1000GB",
    "libraries": {"verl": "0.5.0", "vllm": "0.8.5"},
    "knobs": {
        "data.train_batch": 256,
        "data.prompt_tokens": 1024,
        "data.response_tokens": 1024,
        "rollout.samples_per_prompt": 4,
        "actor.mini_batch": 64,
        "actor.micro_batch": 2,
        "logprob.micro_batch": 4,
        "rollout.memory_share": 0.5,
        "actor.gradient_checkpointing": True,
        "actor.param_offload": True,
        "actor.optimizer_offload": True,
        "algorithm.kl": True,
        "checkpoint.every": 10,
        "actor.lora_rank": 0,
    },
}
SFT: dict[str, Any] = {
    "framework": "ms-swift",
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "gpus": "4xA100-80GB",
    "knobs": {
        "algorithm.estimator": "sft",
        "actor.full_finetuning": True,
        "actor.load_precision": "bfloat16",
        "actor.gradient_checkpointing": True,
        "actor.micro_batch": 1,
        "data.pack_tokens": 8192,
    },
}


def run(base: dict[str, Any], model: str = "", gpus: str = "", **knobs: Any) -> dict[str, Any]:
    """A run file with further knobs ("__" stands for the dot)."""
    said = {**base["knobs"], **{name.replace("__", "."): value for name, value in knobs.items()}}
    return {**base, "model": model or base["model"], "gpus": gpus or base["gpus"], "knobs": said}


def cells(ledger: Ledger, place: Place, owner: str, phase: str = "") -> list[Cell]:
    sums = ledger.gpu if place == "gpu" else ledger.host
    return [c for s in sums if phase in ("", s.phase) for c in s.cells if c.owner == owner]


def words(ledger: Ledger, place: Place = "gpu") -> str:
    sums = ledger.gpu if place == "gpu" else ledger.host
    return "\n".join(c.formula for s in sums for c in s.cells)


def peak(stated: dict[str, Any]) -> int:
    found = ledger_of(stated).peak("gpu")
    assert found is not None
    return found.expected


def update(stated: dict[str, Any]) -> int:
    found = ledger_of(stated).phase("gpu", "actor_update")
    assert found is not None
    return found.expected


GPU_OWNERS = (
    "weights",
    "gradients",
    "optimizer",
    "gathered",
    "activations",
    "logits",
    "engine_weights",
    "kv_cache",
    "engine_rest",
    "context",
    "fragmentation",
)


@each("owner", GPU_OWNERS)
def test_an_owner_on_the_card(owner: str) -> None:
    assert cells(ledger_of(VERL), "gpu", owner)


@each(
    "owner",
    [
        "offloaded_weights",
        "offloaded_optimizer",
        "reference",
        "engine_copy",
        "processes",
        "object_store",
        "driver",
        "loading",
        "checkpoint",
    ],
)
def test_an_owner_in_host_ram(owner: str) -> None:
    assert cells(ledger_of(VERL), "host", owner)


def test_all_phases_of_a_ppo_run_are_there_on_card_and_host() -> None:
    ledger = ledger_of(run(VERL, critic__present=True, algorithm__estimator="ppo"))
    named = {
        "model_load",
        "rollout_init",
        "rollout_generate",
        "weight_sync",
        "log_prob",
        "actor_update",
        "critic_update",
        "optimizer_step",
        "checkpoint",
        "validation",
    }
    assert {s.phase for s in ledger.gpu} == {s.phase for s in ledger.host} == named


def test_every_cell_shows_its_formula() -> None:
    assert all(c.formula for s in (*ledger_of(VERL).gpu, *ledger_of(VERL).host) for c in s.cells)


def test_what_the_engine_and_the_driver_are_made_of_is_told() -> None:
    told = words(ledger_of(VERL))
    for said in ("CUDA graphs", "left by the sleeping engine", "NCCL communicators", "CUDA context", "layer inputs"):
        assert said in told
    assert "powers of two" in words(ledger_of(VERL), "host")


def test_swap_space_of_the_old_engine_is_pinned_and_the_new_one_has_none() -> None:
    old = ledger_of({**VERL, "libraries": {"verl": "0.2.0", "vllm": "0.6.3"}})
    new = ledger_of({**VERL, "libraries": {"verl": "0.5.0", "vllm": "0.10.0"}})
    swaps = [sum(c.expected for c in cells(ledger, "host", "swap", "rollout_generate")) for ledger in (old, new)]
    assert swaps[0] > 0 == swaps[1]


def test_helper_processes_of_loaders_agents_and_rewards_are_counted() -> None:
    def processes(**knobs: Any) -> int:
        return cells(ledger_of(run(VERL, **knobs)), "host", "processes", "actor_update")[0].expected

    few = processes(host__agent_workers=0, data__loader_workers=0, host__reward_workers=0)
    for knob in ("host__agent_workers", "data__loader_workers", "host__reward_workers"):
        others = dict.fromkeys(("host__agent_workers", "data__loader_workers", "host__reward_workers"), 0)
        assert processes(**{**others, knob: 8}) - few == 8_000_000_000


def test_the_more_is_sharded_the_less_a_card_holds() -> None:
    """DDP, then ZeRO 1, 2 and 3, then 3 with CPU Adam, then with weights off the card."""
    stages = [peak(run(SFT, actor__zero_stage=stage)) for stage in (1, 2, 3)]
    cpu = peak(run(SFT, actor__zero_stage=3, actor__optimizer_offload=True))
    both = peak(run(SFT, actor__zero_stage=3, actor__optimizer_offload=True, actor__param_offload=True))
    assert stages[0] > stages[1] > stages[2] > cpu > both
    assert "DDP's buckets" in words(ledger_of(SFT))


def test_cpu_adam_moves_to_the_host() -> None:
    ledger = ledger_of(run(SFT, actor__zero_stage=3, actor__optimizer_offload=True))
    assert "CPU Adam" in words(ledger, "host")


def test_fsdp_over_a_part_of_the_cards_holds_more_than_over_all_of_them() -> None:
    assert peak(run(VERL, actor__shard_size=4)) > peak(run(VERL, actor__shard_size=8))


def test_fsdp2_holds_the_buffer_that_a_unit_is_copied_from() -> None:
    settings = {"actor_rollout_ref.actor.strategy": "fsdp2"}
    assert "3 layers" in words(ledger_of({**VERL, "settings": settings}))
    assert "2 layers" in words(ledger_of(VERL))


@each("kind", ["tensor", "pipeline", "context", "expert"])
def test_megatron_shares_by_every_parallel_size(kind: str) -> None:
    model = "Qwen/Qwen3-30B-A3B"
    others = {} if kind == "tensor" else {"actor__tensor_parallel": 1}
    few, many = (peak(run(SFT, model, "8xH100-80GB", **others, **{f"actor__{kind}_parallel": n})) for n in (2, 4))
    assert few > many


def test_megatron_steps_on_the_cpu_for_a_part() -> None:
    knobs = {"actor__tensor_parallel": 4}
    whole, half = (peak(run(SFT, **knobs, actor__optimizer_cpu_part=part)) for part in (0.0, 0.5))
    assert whole > half


@pytest.mark.parametrize("knob", ["actor__sequence_parallel"])
def test_ulysses_and_ring_share_the_tokens_of_a_sequence(knob: str) -> None:
    assert peak(run(VERL, data__response_tokens=8192, **{knob: 4})) < peak(run(VERL, data__response_tokens=8192))


def test_lora_needs_less_than_all_weights_and_a_quantised_base_less_than_that() -> None:
    lora = {"actor__lora_rank": 16, "actor__full_finetuning": False, "data__pack_tokens": 512}
    full = peak(run(SFT, gpus="1xH100-80GB", data__pack_tokens=512))
    plain = peak(run(SFT, gpus="1xH100-80GB", **lora))
    quantised = peak(run(SFT, gpus="1xH100-80GB", **lora, actor__quantized_bits=4))
    assert full > plain > quantised


def test_optimizers_of_one_byte_and_of_bf16_hold_less() -> None:
    usual = peak(run(SFT, actor__zero_stage=2))
    kahan = peak(run(SFT, actor__zero_stage=2, actor__optimizer="adamw_bf16"))
    eight = peak(run(SFT, actor__zero_stage=2, actor__optimizer="paged_adamw_8bit"))
    assert usual > kahan > eight


def test_checkpointing_and_offloaded_activations_lower_the_update() -> None:
    long = {"data__response_tokens": 8192, "actor__fused_loss": True}
    none, some, off = (
        update(run(VERL, **long, **knobs))
        for knobs in (
            {"actor__gradient_checkpointing": False},
            {},
            {"actor__activation_offload": True},
        )
    )
    assert none > some > off
    assert cells(ledger_of(run(VERL, actor__activation_offload=True)), "host", "offloaded_activations", "actor_update")


def test_a_fused_loss_holds_one_chunk_of_logits() -> None:
    fused, whole = (ledger_of(run(VERL, data__response_tokens=8192, actor__fused_loss=on)) for on in (True, False))
    assert all("one chunk" in cell.formula for cell in cells(fused, "gpu", "logits"))
    assert cells(whole, "gpu", "logits", "actor_update")


def test_entropy_in_chunks_saves_where_there_are_no_gradients() -> None:
    knobs = {"logprob__entropy_in_chunks": True, "actor__entropy": True}
    logits = cells(ledger_of(run(VERL, data__response_tokens=8192, **knobs)), "gpu", "logits")
    assert all("in chunks of 2048 tokens" in cell.formula for cell in logits)


def test_without_padding_a_pass_holds_its_real_tokens_and_a_budget_caps_them() -> None:
    padded = update(run(VERL, actor__remove_padding=False, actor__micro_batch=16))
    real = update(run(VERL, actor__remove_padding=True, actor__micro_batch=16))
    capped = update(run(VERL, actor__remove_padding=True, actor__dynamic_batch=True, actor__tokens_per_gpu=2048))
    assert padded > real > capped


def test_a_vision_tower_counts_and_a_frozen_one_keeps_nothing_for_backward() -> None:
    model = "Qwen/Qwen2.5-VL-7B-Instruct"
    trained = ledger_of(run(SFT, model, actor__zero_stage=2, actor__freeze_vision=False))
    frozen = ledger_of(run(SFT, model, actor__zero_stage=2, actor__freeze_vision=True))
    assert "vision tower" in words(trained)
    assert "a frozen vision tower" in words(frozen)
    optimizers = [sum(c.expected for c in cells(x, "gpu", "optimizer", "actor_update")) for x in (trained, frozen)]
    assert optimizers[0] - optimizers[1] == pytest.approx(12 * 676_550_144 / 4, rel=1e-3)


def test_experts_of_the_engine_are_spread_over_its_expert_parallel_ranks() -> None:
    model = "Qwen/Qwen3-30B-A3B"
    wide, narrow = (
        cells(ledger_of(run(VERL, model, rollout__expert_parallel=size)), "gpu", "engine_weights")[0].expected
        for size in (1, 8)
    )
    assert wide > 3 * narrow


def test_the_smallest_of_unequal_cards_decides() -> None:
    listed = [{"name": "A", "total_bytes": 80 * 2**30}, {"name": "B", "total_bytes": 40 * 2**30}]
    assert ledger_of({**VERL, "gpus": listed}).gpu_capacity == 40 * 2**30


def test_several_nodes_shard_over_all_cards_and_count_the_host_of_one() -> None:
    one, four = ledger_of(VERL), ledger_of({**VERL, "nodes": 4})
    states = [sum(c.expected for c in cells(x, "gpu", "optimizer", "actor_update")) for x in (one, four)]
    assert states[0] == pytest.approx(4 * states[1], rel=1e-3)
    rest = [sum(c.expected for c in cells(x, "host", "offloaded_optimizer", "rollout_generate")) for x in (one, four)]
    assert rest[0] == pytest.approx(4 * rest[1], rel=1e-3)


def test_an_engine_on_cards_of_its_own_is_not_counted_beside_the_trainer() -> None:
    beside = ledger_of(run(VERL, rollout__sleeps=False))
    apart = ledger_of(run(VERL, rollout__sleeps=False, rollout__colocated=False, rollout__engines=2))
    assert cells(beside, "gpu", "kv_cache", "actor_update")
    assert not cells(apart, "gpu", "kv_cache", "actor_update")


def test_a_reward_model_on_the_same_card_counts_there() -> None:
    settings = {"colocate_all_models": True, "reward_pretrain": "my/reward-7b", "pretrain": "Qwen/Qwen2.5-7B"}
    stated = {"framework": "openrlhf", "libraries": {"openrlhf": "0.9.0"}, "gpus": "8xA100-80GB", "settings": settings}
    assert "reward model" in words(ledger_of({**stated, "model": "Qwen/Qwen2.5-7B"}))
