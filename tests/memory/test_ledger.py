"""Properties every ledger has, and what its knobs do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.crash.evidence import Crash
from advisor.machine.inventory import Machine
from advisor.memory.cells import OWNERS, Ledger
from advisor.memory.fit import Walls, unfit
from advisor.memory.ledger import build_ledger, difference
from advisor.run.run import Knob, KnobValue, Run, Topology
from advisor.units import GIB
from tests.loops import each
from tests.memory.runs import explained_host
from tests.replacing import replace

from .runs import DEEPSPEED, FSDP, box, easyr1, logic_rl, make_run, openrlhf

KNOBS: dict[str, st.SearchStrategy[KnobValue | None]] = {
    "actor.zero_stage": st.sampled_from([None, 0, 1, 2, 3]),
    "actor.micro_batch": st.one_of(st.none(), st.integers(1, 64)),
    "actor.gradient_checkpointing": st.booleans(),
    "actor.remove_padding": st.booleans(),
    "actor.dynamic_batch": st.booleans(),
    "actor.tokens_per_gpu": st.one_of(st.none(), st.integers(1024, 65536)),
    "actor.param_offload": st.booleans(),
    "actor.optimizer_offload": st.booleans(),
    "actor.full_cpu_offload": st.booleans(),
    "actor.activation_offload": st.booleans(),
    "actor.state_sleep": st.booleans(),
    "actor.lora_rank": st.sampled_from([None, 0, 16]),
    "actor.quantized_bits": st.sampled_from([None, 4, 8]),
    "actor.optimizer": st.sampled_from([None, "adamw_8bit", "adamw_bf16"]),
    "actor.load_precision": st.sampled_from([None, "bf16", "fp32"]),
    "actor.entropy": st.booleans(),
    "critic.present": st.booleans(),
    "reference.offload": st.booleans(),
    "data.total_tokens": st.one_of(st.none(), st.integers(64, 40000)),
    "data.response_tokens": st.one_of(st.none(), st.integers(32, 32768)),
    "data.train_batch": st.one_of(st.none(), st.integers(1, 1024)),
    "data.max_pixels": st.one_of(st.none(), st.integers(1000, 4_194_304)),
    "rollout.memory_share": st.one_of(st.none(), st.floats(0.05, 0.95)),
    "rollout.sleeps": st.booleans(),
    "rollout.eager": st.sampled_from([None, True, False]),
    "rollout.engine": st.sampled_from([None, "vllm", "sglang", "hf"]),
    "leak.gathered_weights": st.sampled_from([None, True, False]),
}
MODELS = st.sampled_from(["Qwen2.5-0.5B", "Qwen2.5-VL-7B", "Llama-3.1-70B", "Qwen3-30B-A3B", "DeepSeek-V3"])
TOPOLOGIES = st.builds(
    Topology,
    nodes=st.integers(1, 4),
    gpus_per_node=st.sampled_from([1, 2, 8]),
    actor_gpus=st.sampled_from([1, 2, 8, 32]),
    rollout_gpus=st.sampled_from([0, 1, 8]),
    tensor_parallel=st.sampled_from([1, 2, 8]),
    sequence_parallel=st.sampled_from([1, 2]),
    colocated=st.booleans(),
    roles_share_cards=st.booleans(),
)


@given(MODELS, TOPOLOGIES, st.fixed_dictionaries(KNOBS), st.sampled_from([FSDP, DEEPSPEED]), st.booleans())
def test_every_cell_of_every_run_is_ordered_and_explained(
    model: str, topology: Topology, knobs: dict[str, KnobValue | None], mechanics: object, card_known: bool
) -> None:
    assert isinstance(mechanics, type(FSDP))
    machine = box(topology.gpus_per_node, 80, 760) if card_known else Machine()
    ledger = build_ledger(make_run(model, mechanics, topology, knobs), machine)
    sums = (*ledger.gpu, *ledger.host)
    assert sums
    for phase in sums:
        for cell in phase.cells:
            assert 0 <= cell.low <= cell.expected <= cell.high, cell
            assert cell.formula
            assert cell.owner in OWNERS


@given(st.integers(1, 32), st.integers(1, 32))
def test_a_smaller_micro_batch_never_needs_more(first: int, second: int) -> None:
    small, large = sorted((first, second))
    saved = difference(*(build_ledger(logic_rl(actor__micro_batch=m), box(4, 80)) for m in (large, small)), "gpu")
    assert all(size >= 0 for size in saved.values())


def test_an_unknown_model_gives_no_sums_and_says_what_is_missing() -> None:
    ledger = build_ledger(make_run(None, FSDP, Topology(1, 8, 8, 8), {}), box(8, 80, 512))
    assert (ledger.gpu, ledger.host) == ((), ())
    assert "shape of the model" in ledger.missing[0]
    assert ledger.gpu_capacity == 80 * GIB
    assert unfit(ledger, "gpu", Walls(0.08)) is None
    assert explained_host(ledger) == (0, 0, 0)


def test_no_gpus_known_gives_no_sums_and_says_what_is_missing() -> None:
    ledger = build_ledger(make_run("Qwen2.5-7B", FSDP, Topology(known=False), {}), Machine())
    assert ledger.gpu == ()
    assert "number of GPUs" in ledger.missing[0]


def test_the_cards_size_may_come_from_the_log() -> None:
    run = logic_rl()
    told = Crash("oom", "gpu", "actor_update", gpu_total_bytes=80 * GIB)
    assert build_ledger(run, Machine(), told).gpu_capacity == 80 * GIB
    unknown = build_ledger(run, Machine())
    assert unknown.gpu_capacity is None
    assert any("card's size" in sentence for sentence in unknown.assumed)
    assert unknown.basis == "estimated"


def test_a_guessed_length_is_named_and_makes_the_ledger_an_estimate() -> None:
    ledger = build_ledger(make_run("Qwen2.5-7B", FSDP, Topology(1, 8, 8, 8), {"actor.micro_batch": 1}), box(8, 80))
    assert any("longest sequence" in sentence for sentence in ledger.assumed)
    update = ledger.phase("gpu", "actor_update")
    assert update is not None
    assert {cell.basis for cell in update.cells if cell.owner in ("activations", "logits")} == {"estimated"}


def test_a_knob_that_was_assumed_is_named() -> None:
    run = easyr1()
    knobs = {**run.knobs, "rollout.memory_share": Knob("rollout.memory_share", 0.6, "assumed")}
    ledger = build_ledger(replace(run, knobs=knobs), box(8, 40))
    assert "rollout.memory_share = 0.6" in ledger.assumed


def phase_bytes(ledger: Ledger, owner: str, phase: str = "actor_update") -> int:
    return sum(c.expected for s in ledger.gpu if s.phase == phase for c in s.cells if c.owner == owner)


@each(
    ("stage", "weights", "gradients", "optimizer"),
    [(0, 2, 2, 12), (1, 2, 2, 1.5), (2, 2, 0.25, 1.5), (3, 0.25, 0.25, 1.5)],
)
def test_zero_stages_shard_what_the_paper_says(stage: int, weights: float, gradients: float, optimizer: float) -> None:
    knobs: dict[str, KnobValue | None] = {
        "actor.zero_stage": stage,
        "deepspeed.config": f"zero{stage}",
        "data.total_tokens": 512,
        "actor.micro_batch": 1,
    }
    ledger = build_ledger(make_run("Qwen2.5-7B", DEEPSPEED, Topology(1, 8, 8, 0), knobs, "sft"), box(8, 80))
    parameters = 7_615_616_512
    assert phase_bytes(ledger, "weights") == pytest.approx(weights * parameters, abs=8)
    assert phase_bytes(ledger, "gradients") == pytest.approx(gradients * parameters, abs=8)
    assert phase_bytes(ledger, "optimizer") == pytest.approx(optimizer * parameters, abs=8)


@each(("size", "shards"), [(None, 8), (-1, 8), (0, 8), (4, 4), (64, 8)])
def test_a_shard_size_below_one_means_every_gpu(size: int | None, shards: int) -> None:
    knobs: dict[str, KnobValue | None] = {"actor.shard_size": size, "data.total_tokens": 512, "actor.micro_batch": 1}
    ledger = build_ledger(make_run("Qwen2.5-7B", FSDP, Topology(1, 8, 8, 8), knobs), box(8, 80, 500))
    assert phase_bytes(ledger, "optimizer") == pytest.approx(8 * 7_615_616_512 / shards, abs=8)


def test_weights_that_return_only_to_wake_beside_the_engine_are_there_when_it_starts() -> None:
    old = replace(FSDP, wakes_beside=("weights",))
    run = easyr1()
    saved = difference(build_ledger(replace(run, mechanics=old), box(8, 40)), build_ledger(run, box(8, 40)), "gpu")
    assert saved["rollout_init"] > 3 * GIB
    assert saved["weight_sync"] > 3 * GIB
    assert saved["rollout_generate"] == saved["actor_update"] == 0


def test_offload_that_returns_for_the_update_lowers_only_the_other_phases() -> None:
    saved = difference(build_ledger(easyr1(False, False), box(8, 40)), build_ledger(easyr1(), box(8, 40)), "gpu")
    assert saved["actor_update"] == saved["optimizer_step"] == 0
    assert saved["rollout_generate"] > 11 * GIB
    assert saved["log_prob"] > 7 * GIB


def test_cpu_adam_lowers_the_update_itself() -> None:
    run = openrlhf(False)
    knobs = {**run.knobs, "actor.optimizer_offload": Knob("actor.optimizer_offload", False, "script")}
    saved = difference(build_ledger(replace(run, knobs=knobs), box(8, 80)), build_ledger(run, box(8, 80)), "gpu")
    assert saved["actor_update"] > 14 * 70_553_706_496 / 32


def test_an_engine_that_does_not_sleep_holds_its_share_in_every_phase() -> None:
    run = easyr1()
    knobs = {**run.knobs, "rollout.sleeps": Knob("rollout.sleeps", False, "script")}
    awake = build_ledger(replace(run, knobs=knobs), box(8, 40))
    assert phase_bytes(awake, "kv_cache") > 10 * GIB
    apart = replace(run, topology=replace(run.topology, colocated=False))
    assert phase_bytes(build_ledger(apart, box(8, 40)), "kv_cache") == 0
    assert phase_bytes(build_ledger(apart, box(8, 40)), "engine_rest") == 0


def test_a_critic_brings_states_and_a_phase() -> None:
    run = easyr1(False, False)
    with_critic = replace(run, knobs={**run.knobs, "critic.present": Knob("critic.present", True, "script")})
    ledger = build_ledger(with_critic, box(8, 80))
    assert ledger.phase("gpu", "critic_update") is not None
    assert phase_bytes(ledger, "critic", "critic_update") == pytest.approx(16 * 8_292_166_656 / 8, abs=8)
    assert phase_bytes(ledger, "critic", "rollout_generate") == pytest.approx(12 * 8_292_166_656 / 8, abs=8)


def test_sequence_parallelism_divides_the_tokens_of_a_pass() -> None:
    def logits(parallel: int) -> int:
        topology = Topology(1, 8, 8, 8, sequence_parallel=parallel)
        knobs: dict[str, KnobValue | None] = {"data.total_tokens": 32768, "actor.micro_batch": 1}
        knobs["actor.gradient_checkpointing"] = True
        return phase_bytes(build_ledger(make_run("Qwen2.5-7B", FSDP, topology, knobs), box(8, 80)), "logits")

    assert logits(1) == pytest.approx(4 * logits(4), rel=1e-6)


def test_pinned_copies_may_be_rounded_up_to_powers_of_two() -> None:
    host = build_ledger(easyr1(), box(8, 40, 760)).phase("host", "rollout_generate")
    assert host is not None
    optimizer = next(cell for cell in host.cells if cell.owner == "offloaded_optimizer")
    assert optimizer.expected < optimizer.high <= 2 * optimizer.expected


def test_tied_embeddings_make_every_rank_load_the_model() -> None:
    def loading(model: str) -> int:
        run: Run = make_run(model, FSDP, Topology(1, 8, 8, 8), {"data.total_tokens": 1024})
        host = build_ledger(run, box(8, 80, 500)).phase("host", "model_load")
        assert host is not None
        return sum(cell.expected for cell in host.cells if cell.owner == "loading")

    assert loading("Qwen2.5-3B") == 8 * 4 * 3_085_938_688
    assert loading("Qwen2.5-7B") == 4 * 7_615_616_512


def test_the_object_store_counts_what_lies_in_it_and_not_its_ceiling() -> None:
    host = build_ledger(logic_rl(), box(4, 80, 1000)).phase("host", "actor_update")
    assert host is not None
    store = next(cell for cell in host.cells if cell.owner == "object_store")
    assert store.high < 10 * GIB
    assert "300 GiB of the object store" in store.formula


def test_sleep_level_two_keeps_no_copies() -> None:
    run = easyr1()
    two = replace(run, mechanics=replace(run.mechanics, sleep_level=2))
    saved = difference(build_ledger(run, box(8, 40, 760)), build_ledger(two, box(8, 40, 760)), "host")
    assert saved["actor_update"] == pytest.approx(2 * 8_292_166_656 * 4, rel=1e-6)


def test_the_card_that_the_run_died_on_counts_and_not_a_larger_one_that_was_described() -> None:
    died = Crash("oom", "gpu", "actor_update", gpu_total_bytes=round(44.43 * GIB))
    found = build_ledger(easyr1(), box(8, 79.15), died)
    assert found.gpu_capacity == died.gpu_total_bytes
    assert found.basis == "estimated"
    assert "44.43 GiB" in found.doubts[0]
    assert "79.15 GiB" in found.doubts[0]


def test_what_drivers_report_differently_for_one_card_is_no_contradiction() -> None:
    found = build_ledger(
        easyr1(), box(8, 79.15), Crash("oom", "gpu", "actor_update", gpu_total_bytes=round(79.33 * GIB))
    )
    assert (found.gpu_capacity, found.doubts) == (round(79.15 * GIB), ())


def test_a_deepspeed_file_that_was_not_read_leaves_the_stage_open() -> None:
    knobs: dict[str, KnobValue | None] = {
        "deepspeed.config": "ds.json",
        "actor.zero_stage": None,
        "actor.micro_batch": 1,
    }

    def states(given: dict[str, KnobValue | None]) -> tuple[Ledger, int, int]:
        found = build_ledger(make_run("Qwen2.5-7B", DEEPSPEED, Topology(1, 8, 8, 8), given), box(8, 80))
        phase = found.phase("gpu", "optimizer_step")
        assert phase is not None
        kept = [cell for cell in phase.cells if cell.owner in ("weights", "gradients", "optimizer")]
        return found, sum(cell.low for cell in kept), sum(cell.high for cell in kept)

    found, low, high = states(knobs)
    assert found.basis == "estimated"
    assert any("ds.json" in guess for guess in found.assumed)
    for stage in (0, 1, 2, 3):
        _, least, most = states({"actor.zero_stage": stage, "actor.micro_batch": 1})
        assert low <= least <= most <= high
