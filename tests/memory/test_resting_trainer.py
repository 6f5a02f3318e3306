"""A trainer that leaves the card between its phases: nothing of it stands beside the engine's start and its cache."""

from __future__ import annotations

import pytest

from advisor.memory.cells import Ledger, Place
from advisor.words import Phase
from tests.measured.published import ledger_of

ROLL: dict[str, object] = {
    "actor_train.strategy_args.strategy_name": "megatron_train",
    "actor_train.device_mapping": "list(range(0,8))",
    "actor_infer.device_mapping": "list(range(0,8))",
    "actor_infer.strategy_args.strategy_name": "vllm",
    "actor_infer.strategy_args.strategy_config.gpu_memory_utilization": 0.8,
    "use_kl_loss": True,
}
SLIME: dict[str, object] = {
    "colocate": True,
    "actor-num-nodes": 1,
    "actor-num-gpus-per-node": 8,
    "sglang-mem-fraction-static": 0.8,
}
SKYRL: dict[str, object] = {
    "trainer.placement.colocate_all": True,
    "trainer.placement.policy_num_gpus_per_node": 8,
    "generator.inference_engine.num_engines": 8,
}
TRAINER = {"weights", "gradients", "optimizer", "reference"}


def ledger(framework: str, settings: dict[str, object]) -> Ledger:
    return ledger_of({"framework": framework, "model": "Qwen/Qwen2.5-7B", "gpus": "8xH100-80GB", "settings": settings})


@pytest.mark.parametrize(("framework", "settings"), [("roll", ROLL), ("slime", SLIME), ("skyrl", SKYRL)])
def test_the_engine_has_the_card_to_itself(framework: str, settings: dict[str, object]) -> None:
    found = ledger(framework, settings)
    for name in ("rollout_init", "rollout_generate"):
        phase = found.phase("gpu", name)
        assert phase is not None
        assert not TRAINER & {cell.owner for cell in phase.cells if cell.expected}


@pytest.mark.parametrize(("framework", "settings"), [("roll", ROLL), ("slime", SLIME), ("skyrl", SKYRL)])
def test_the_trainer_s_weights_are_back_for_its_own_phases_and_rest_in_ram(
    framework: str, settings: dict[str, object]
) -> None:
    found = ledger(framework, settings)
    for name in ("log_prob", "actor_update"):
        phase = found.phase("gpu", name)
        assert phase is not None
        assert "weights" in {cell.owner for cell in phase.cells}
    resting = found.phase("host", "rollout_generate")
    assert resting is not None
    assert "offloaded_weights" in {cell.owner for cell in resting.cells}


def owners(found: Ledger, phase: Phase, place: Place = "gpu") -> dict[str, int]:
    """Bytes of every owner in the phase."""
    there = found.phase(place, phase)
    assert there is not None
    return {cell.owner: there.of(cell.owner) for cell in there.cells}


def test_slime_that_does_not_share_its_cards_keeps_all_states_in_every_phase() -> None:
    apart = ledger("slime", {**SLIME, "colocate": False, "rollout-num-gpus": 8})
    scoring, updating = owners(apart, "log_prob"), owners(apart, "actor_update")
    for owner in ("weights", "gradients", "optimizer"):
        assert scoring[owner] == updating[owner] > 0
    resting = apart.phase("host", "actor_update")
    assert resting is not None
    assert "offloaded_optimizer" not in {cell.owner for cell in resting.cells}
    assert ["copy of the weights" in cell.formula for cell in resting.cells if cell.owner == "offloaded_weights"] == [
        True
    ]


def test_a_trainer_that_pauses_as_one_scores_beside_its_gradients_and_optimizer_and_syncs_from_ram() -> None:
    found = ledger("slime", SLIME)
    scoring, updating = owners(found, "log_prob"), owners(found, "actor_update")
    for owner in ("weights", "gradients", "optimizer"):
        assert scoring[owner] == updating[owner] > 0
    assert not owners(found, "weight_sync").get("weights")
    paused = owners(found, "rollout_generate", "host")["offloaded_weights"]
    weights, gradients = 8 * updating["weights"], 8 * updating["gradients"]
    assert paused == pytest.approx(2 * weights + gradients, rel=1e-6)  # what is paused, and the copy for the sync


def test_gradient_buffers_stay_where_only_the_optimizer_lives_on_the_cpu() -> None:
    apart = ledger("slime", {**SLIME, "colocate": False, "rollout-num-gpus": 8, "optimizer-cpu-offload": True})
    assert owners(apart, "log_prob")["gradients"] == owners(apart, "actor_update")["gradients"] > 0
