"""Every dialect whose Megatron spreads experts says over how many GPUs: a rank holds its part of them, no more."""

from __future__ import annotations

import pytest

from advisor.memory.gathered import gathered_units
from advisor.memory.inputs import Inputs, of_rank, read_inputs
from advisor.memory.layer import mlp_width
from advisor.memory.megatron import expert_parameters
from advisor.memory.parameters import MLP, adapter_parameters
from advisor.memory.states import weights_cell
from advisor.run.run import Topology
from tests.loops import each
from tests.measured.published import ledger_of
from tests.memory.runs import FSDP, box, make_run, shape

NEMO = "policy.megatron_cfg."
ROLL = "actor_train.strategy_args."
SKYRL = "trainer.policy.megatron_config."
EIGHT: dict[str, dict[str, object]] = {
    "nemo-rl": {f"{NEMO}enabled": True, f"{NEMO}expert_model_parallel_size": 8, "cluster.gpus_per_node": 8},
    "roll": {
        f"{ROLL}strategy_name": "megatron_train",
        f"{ROLL}strategy_config.expert_model_parallel_size": 8,
        "actor_train.device_mapping": "list(range(0,8))",
    },
    "areal": {"actor.backend": "megatron:d8e8", "rollout.backend": "sglang:d8"},
    "skyrl": {"trainer.strategy": "megatron", f"{SKYRL}expert_model_parallel_size": 8},
    "slime": {"expert-model-parallel-size": 8, "actor-num-nodes": 1, "actor-num-gpus-per-node": 8},
    "verl-sft": {"engine": "megatron", "engine.expert_model_parallel_size": 8},
    "verl": {
        "actor_rollout_ref.actor.strategy": "megatron",
        "actor_rollout_ref.actor.megatron.expert_model_parallel_size": 8,
        "trainer.n_gpus_per_node": 8,
    },
}


PROGRAMS = {"verl-sft": "verl.trainer.sft_trainer"}


def weights_gib(framework: str, settings: dict[str, object], model: str = "Qwen/Qwen3-30B-A3B") -> float:
    run = {"framework": framework, "model": model, "gpus": "8xH100-80GB", "settings": settings}
    if framework in PROGRAMS:
        run["program"] = PROGRAMS[framework]
    phase = ledger_of(run).phase("gpu", "actor_update")
    assert phase is not None
    return sum(cell.expected for cell in phase.cells if cell.owner == "weights") / 2**30


@each("framework", sorted(EIGHT))
def test_a_rank_holds_an_eighth_of_the_experts(framework: str) -> None:
    one = {key: "megatron:d8" if value == "megatron:d8e8" else 1 if "expert" in key else value
           for key, value in EIGHT[framework].items()}  # fmt: skip
    assert weights_gib(framework, one) == pytest.approx(56.9, rel=0.01)  # 2 bytes of 30.5e9
    assert weights_gib(framework, EIGHT[framework]) == pytest.approx(9.6, rel=0.02)  # 1.54e9 + 29e9 / 8


def test_areal_splits_experts_otherwise_than_the_other_layers() -> None:
    """areal/api/alloc_mode.py: the experts' tensor-parallel size is 1 where the second part does not name it."""
    apart = {"actor.backend": "megatron:(attn:d2t4|ffn:d1e8)", "rollout.backend": "sglang:d8"}
    assert weights_gib("areal", apart) == pytest.approx(2 / 2**30 * (1.54e9 / 4 + 28.99e9 / 8), rel=0.02)


def test_nemo_rl_s_stream_is_whole_unless_sequence_parallel_is_on() -> None:
    def kept(*, split: bool) -> int:
        own = {**EIGHT["nemo-rl"], f"{NEMO}tensor_model_parallel_size": 4, f"{NEMO}activation_checkpointing": True}
        settings = {**own, f"{NEMO}sequence_parallel": split, "policy.max_total_sequence_length": 8192}
        run = {"framework": "nemo-rl", "model": "Qwen/Qwen3-30B-A3B", "gpus": "8xH100-80GB", "settings": settings}
        phase = ledger_of(run).phase("gpu", "actor_update")
        assert phase is not None
        return max(cell.expected for cell in phase.cells if cell.owner == "activations")

    assert kept(split=False) == pytest.approx(4 * kept(split=True), rel=0.02)


def test_experts_that_every_token_passes_count_in_its_width_and_leading_dense_layers_hold_none() -> None:
    mixture = shape("Qwen1.5-MoE-A2.7B")
    assert mlp_width(mixture) == 4 * 1408 + 5632
    latent = shape("DeepSeek-V3")
    assert expert_parameters(latent) == (61 - 3) * 256 * 3 * 7168 * 2048
    dense, mixed = 3 * (7168 + 18432), 3 * (256 * (7168 + 2048) + (7168 + 2048))
    assert adapter_parameters(latent, 1, MLP) == 3 * dense + 58 * mixed


def test_a_rank_of_fsdp_with_experts_in_parallel_gathers_its_own_experts_alone() -> None:
    """NeMo-RL's automodel worker, prime-rl: states are spread over all ranks whatever the size."""
    eight = Topology(nodes=1, gpus_per_node=8, actor_gpus=8, rollout_gpus=0)

    def inputs(ways: int) -> Inputs:
        run = make_run("Qwen/Qwen3-30B-A3B", FSDP, eight, {"actor.expert_parallel": ways}, "sft")
        return read_inputs(run, box(8, 80))

    def gathered(ways: int) -> int:
        return sum(cell.expected for cell in gathered_units(of_rank(inputs(ways)), backward=False))

    assert weights_cell(inputs(1)).expected == weights_cell(inputs(8)).expected
    experts_of_a_layer = 128 * 3 * 2048 * 768
    saved = 2 * 2 * experts_of_a_layer * 7 / 8  # of 2 layers, in bf16
    assert gathered(1) - gathered(8) == pytest.approx(saved, rel=0.001)
