"""A trainer that leaves the card between its phases: nothing of it stands beside the engine's start and its cache."""

from __future__ import annotations

import pytest

from advisor.memory.cells import Ledger
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
TRAINER = {"weights", "gradients", "optimizer", "reference"}


def ledger(framework: str, settings: dict[str, object]) -> Ledger:
    return ledger_of({"framework": framework, "model": "Qwen/Qwen2.5-7B", "gpus": "8xH100-80GB", "settings": settings})


@pytest.mark.parametrize(("framework", "settings"), [("roll", ROLL), ("slime", SLIME)])
def test_the_engine_has_the_card_to_itself(framework: str, settings: dict[str, object]) -> None:
    found = ledger(framework, settings)
    for name in ("rollout_init", "rollout_generate"):
        phase = found.phase("gpu", name)
        assert phase is not None
        assert not TRAINER & {cell.owner for cell in phase.cells if cell.expected}


@pytest.mark.parametrize(("framework", "settings"), [("roll", ROLL), ("slime", SLIME)])
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


def test_slime_that_does_not_share_its_cards_keeps_its_weights() -> None:
    apart = ledger("slime", {**SLIME, "colocate": False, "rollout-num-gpus": 8})
    resting = apart.phase("host", "actor_update")
    assert resting is not None
    assert "offloaded_weights" not in {cell.owner for cell in resting.cells}


def test_megatron_s_checkpoint_is_written_by_every_rank() -> None:
    split = ledger("slime", {**SLIME, "tensor-model-parallel-size": 8}).phase("host", "checkpoint")
    assert split is not None
    size = sum(cell.expected for cell in split.cells if cell.owner == "checkpoint")
    assert size == pytest.approx((2 + 12) * 7.6e9, rel=0.05)


@pytest.mark.parametrize(("model", "bytes_each"), [("Qwen/Qwen3-30B-A3B", 2.0), ("Qwen/Qwen3-30B-A3B-FP8", 1.0)])
def test_an_engine_that_loads_a_quantised_checkpoint_holds_less(model: str, bytes_each: float) -> None:
    run = {"framework": "slime", "model": model, "gpus": "8xH100-80GB", "settings": dict(SLIME)}
    phase = ledger_of(run).phase("gpu", "rollout_generate")
    assert phase is not None
    weights = sum(cell.expected for cell in phase.cells if cell.owner == "engine_weights")
    assert weights == pytest.approx(bytes_each * 30.5e9, rel=0.05)
