"""Tensor parallelism beside FSDP's shards: what one rank computes, keeps and gathers of a model."""

from __future__ import annotations

import pytest

from advisor.memory.attribution import attribute
from advisor.memory.cells import PhaseSum
from advisor.memory.ledger import build_ledger
from advisor.run.run import KnobValue, Run, Topology
from advisor.units import GIB
from tests.loops import each
from tests.measured.published import ledger_of, size
from tests.replacing import replace

from .runs import FSDP, box, crash, make_run

Knobs = dict[str, KnobValue | None]


def run_of(ways: int, **more: KnobValue) -> Run:
    knobs: Knobs = {
        "actor.tensor_parallel": ways,
        "actor.gradient_checkpointing": True,
        "actor.micro_batch": 1,
        "data.total_tokens": 8192,
        "data.longest_row": "cap",
        **{name.replace("__", "."): value for name, value in more.items()},
    }
    return make_run("Qwen2.5-7B", FSDP, Topology(1, 8, 8, 0, model_parallel=ways), knobs, "sft")


def update(ways: int, **more: KnobValue) -> PhaseSum:
    found = build_ledger(run_of(ways, **more), box(8, 80)).phase("gpu", "actor_update")
    assert found is not None
    return found


def owned(phase: PhaseSum, owner: str) -> int:
    return sum(cell.expected for cell in phase.cells if cell.owner == owner)


def test_states_are_spread_over_both_dimensions_of_the_mesh_alike() -> None:
    for owner in ("weights", "gradients", "optimizer"):
        assert owned(update(1), owner) == owned(update(4), owner)


@pytest.mark.parametrize("owner", ["logits", "gathered"])
def test_logits_and_gathered_units_are_those_of_one_rank(owner: str) -> None:
    assert owned(update(4), owner) == pytest.approx(owned(update(1), owner) / 4, rel=0.01)


def test_layer_inputs_are_whole_unless_the_stream_is_split_too() -> None:
    whole, split = owned(update(4), "activations"), owned(update(4, actor__tensor_splits_stream=True), "activations")
    assert owned(update(1), "activations") == whole
    assert split == pytest.approx(whole / 4, rel=0.02)


def test_without_checkpointing_the_gathered_inputs_of_a_layer_stay_whole() -> None:
    off: dict[str, KnobValue] = {"actor__gradient_checkpointing": False}
    apart = owned(update(4, **off, actor__tensor_splits_stream=True), "activations")
    assert owned(update(1, **off), "activations") / 4 < apart < owned(update(4, **off), "activations")


def test_a_shard_size_counts_the_other_dimension() -> None:
    assert owned(update(4, actor__shard_size=2), "optimizer") == owned(update(1), "optimizer")


def test_the_logits_of_one_rank_are_found_by_their_size() -> None:
    best = attribute(run_of(4), crash(8192 * 38016 * 4, "actor_update"))[0]
    assert best.matches
    assert best.shape == "fp32 [8192, 38016]"


def test_pieces_that_are_checkpointed_apart_keep_an_input_each() -> None:
    def kept(checkpoints: str) -> int:
        mechanics = replace(FSDP, checkpoints=checkpoints)
        run = make_run("Qwen2.5-7B", mechanics, Topology(1, 8, 8, 0), dict(_plain()), "sft")
        phase = build_ledger(run, box(8, 80)).phase("gpu", "actor_update")
        assert phase is not None
        return max(cell.expected for cell in phase.cells if cell.owner == "activations")

    assert kept("pieces") == 4 * kept("layer")
    assert kept("pieces") < kept("mlp") < 28 * 8192 * 232_000


def _plain() -> Knobs:
    return {
        "actor.gradient_checkpointing": True,
        "actor.micro_batch": 1,
        "data.total_tokens": 8192,
        "data.longest_row": "cap",
    }


def test_a_measured_peak_of_seventy_billion_on_two_dimensions() -> None:
    """pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md, table 4: 71.9 GiB, 67.6 with AsyncTP."""
    knobs: Knobs = {
        **_plain(),
        "actor.shard_size": 32,
        "actor.tensor_parallel": 8,
        "actor.tensor_splits_stream": True,
        "actor.micro_batch": 16,
    }
    mechanics = replace(FSDP, logits_update_bytes=12)
    topology = Topology(32, 8, 256, 0, model_parallel=8)
    run = make_run("meta-llama/Llama-3.1-70B", mechanics, topology, knobs, "sft")
    peak = build_ledger(run, box(8, 94, nodes=32)).peak("gpu")
    assert peak is not None
    assert abs(peak.expected / GIB / 71.9 - 1) < 0.10
    assert peak.low < 71.9 * GIB < peak.high


def _of_dialect(framework: str, settings: dict[str, object]) -> dict[str, int]:
    """Expected bytes by owner, in the actor's update of a run file."""
    run = {"framework": framework, "model": "Qwen/Qwen2.5-7B", "gpus": "8xH100-80GB", "settings": settings}
    phase = ledger_of(run).phase("gpu", "actor_update")
    assert phase is not None
    return {owner: owned(phase, owner) for owner in ("optimizer", "logits", "activations")}


NEMO_RL = {
    "policy.max_total_sequence_length": 8192,
    "policy.train_micro_batch_size": 1,
    "policy.dtensor_cfg.activation_checkpointing": True,
    "policy.dtensor_cfg.tensor_parallel_size": 1,
    "cluster.gpus_per_node": 8,
    "cluster.num_nodes": 1,
}


def test_nemo_rl_splits_the_matrices_and_where_asked_the_stream() -> None:
    two: dict[str, object] = {**NEMO_RL, "policy.dtensor_cfg.tensor_parallel_size": 2}
    one, split = _of_dialect("nemo-rl", dict(NEMO_RL)), _of_dialect("nemo-rl", two)
    streams = _of_dialect("nemo-rl", {**two, "policy.dtensor_cfg.sequence_parallel": True})
    assert split["optimizer"] == one["optimizer"]
    assert split["logits"] == pytest.approx(one["logits"] / 2, rel=0.01)
    assert split["activations"] == one["activations"]
    assert streams["activations"] == pytest.approx(one["activations"] / 2, rel=0.01)


def test_areal_says_it_in_the_backend_and_always_splits_the_stream() -> None:
    def sized(backend: str) -> dict[str, int]:
        own: dict[str, object] = {"actor.mb_spec.max_tokens_per_mb": 10240, "actor.gradient_checkpointing": True}
        return _of_dialect("areal", {**own, "actor.backend": backend, "rollout.backend": "sglang:d4"})

    one, two = sized("fsdp:d4"), sized("fsdp:d2t2")
    assert two["optimizer"] == one["optimizer"]
    for owner in ("logits", "activations"):
        assert two[owner] == pytest.approx(one[owner] / 2, rel=0.01)


def test_fused_kernels_keep_the_inputs_of_norms_and_no_activated_gate() -> None:
    """Liger: per token and layer 8 B less of the stream, 2 B less of the MLP; nothing of it where layers are recomputed
    but in the layer that is."""
    plain, fused = (
        owned(update(1, actor__gradient_checkpointing=False, actor__fused_layers=on), "activations")
        for on in (False, True)
    )
    assert plain - fused == 28 * 8192 * (8 * 3584 + 2 * 18944)
    assert owned(update(1, actor__fused_layers=True), "activations") <= owned(update(1), "activations")


@each(("backend", "ranks"), [("fsdp:d4", 4), ("fsdp:d2t2", 2), ("megatron:d2t2", 2), ("fsdp:t4", 1)])
def test_ranks_that_split_matrices_see_the_same_data(backend: str, ranks: int) -> None:
    settings = {"actor.backend": backend, "rollout.backend": "sglang:d4"}
    run = size({"framework": "areal", "model": "Qwen/Qwen2.5-7B", "gpus": "8xH100-80GB", "settings": settings}).run
    assert run.topology.data_parallel == ranks


@pytest.mark.parametrize(
    ("framework", "version", "both"), [("ms-swift", "4.5.2", True), ("trl", "1.0.0", True), ("trl", "0.21.0", False)]
)
def test_where_one_switch_is_both_the_fused_loss_fuses_the_layers(framework: str, version: str, both: bool) -> None:
    def kept(key: str, on: bool) -> int:
        own = {"per_device_train_batch_size": 4, "gradient_checkpointing": False, "max_completion_length": 2048}
        run = {
            "framework": framework,
            "model": "Qwen/Qwen2.5-3B",
            "gpus": "1xH100-80GB",
            "libraries": {framework: version},
            "settings": {**own, key: on} | ({"tuner_type": "full", "rlhf_type": "grpo"} if framework != "trl" else {}),
        }
        phase = ledger_of(run).phase("gpu", "actor_update")
        assert phase is not None
        return max(cell.expected for cell in phase.cells if cell.owner == "activations")

    key = "use_liger_kernel" if both else "use_liger_loss"
    assert (kept(key, True) < kept(key, False)) is both
