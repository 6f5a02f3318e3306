"""An engine that another command serves holds nothing of the cards that this launch trains on."""

from __future__ import annotations

import pytest

from tests.measured.published import ledger_of

RUN = {"framework": "ms-swift", "program": "swift rlhf", "model": "Qwen/Qwen2.5-7B", "gpus": "8xA100-80GB"}
GRPO = {"rlhf_type": "grpo", "tuner_type": "full", "deepspeed": "zero3", "use_vllm": True, "torch_dtype": "bfloat16"}


@pytest.mark.parametrize(("mode", "here"), [("server", False), ("colocate", True)])
def test_a_served_engine_has_no_phases_of_its_own_here(mode: str, here: bool) -> None:
    found = ledger_of({**RUN, "settings": {**GRPO, "vllm_mode": mode}})
    owners = {cell.owner for phase in found.gpu for cell in phase.cells}
    assert ("kv_cache" in owners) is here
    assert (found.phase("gpu", "rollout_generate") is not None) is here
    assert found.phase("gpu", "weight_sync") is not None


def test_an_engine_s_experts_and_cards_are_told_by_its_framework_s_own_words() -> None:
    """prime-rl's data-parallel engines share experts; ROLL's SGLang takes the cards of its worker."""

    def weights(run: dict[str, object]) -> int:
        phase = ledger_of({"gpus": "8xH100-80GB", "model": "Qwen/Qwen3-30B-A3B", **run}).phase("gpu", "rollout_init")
        assert phase is not None
        return phase.of("engine_weights")

    apart = {"deployment.num_train_gpus": 8, "deployment.num_infer_gpus": 8}
    shared = {"inference.vllm.enable_expert_parallel": True, "inference.vllm.data_parallel_size": 8}
    prime = {"framework": "prime-rl", "libraries": {"prime-rl": "0.9.0"}}
    whole, part = (weights({**prime, "settings": {**apart, **more}}) for more in ({}, shared))
    assert part == pytest.approx(whole - 2 * 28.99e9 * 7 / 8, rel=0.01)
    roll = {"actor_infer.strategy_args.strategy_name": "sglang", "actor_train.device_mapping": "list(range(0,8))"}
    one, two = (
        weights({"framework": "roll", "settings": {**roll, "actor_infer.num_gpus_per_worker": cards}})
        for cards in (1, 2)
    )
    assert two == pytest.approx(one / 2, rel=0.01)
