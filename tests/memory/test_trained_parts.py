"""Runs that train some layers, whole modules beside adapters, or projections of their gradients; and PPO's models.

Sources: modelscope/ms-swift@3602360 swift/callbacks/lisa.py, swift/optimizers/galore, trl ppo_trainer.py.
"""

from __future__ import annotations

import pytest

from advisor.units import GIB
from tests.measured.published import ledger_of

RUN = {"framework": "ms-swift", "model": "Qwen/Qwen2.5-7B-Instruct", "gpus": "1xA100-80GB"}
COMMON = {"torch_dtype": "bfloat16", "dataset": "swift/self-cognition"}
TABLES, LAYER, ALL = 2 * 152064 * 3584, 233_057_792, 7_615_616_512


def gib(owner: str, phase: str = "actor_update", program: str = "swift sft", **settings: object) -> float:
    run = {**RUN, "program": program, "settings": {**COMMON, **settings}}
    found = ledger_of({**run, "gpus": settings.pop("box", "1xA100-80GB")}).phase("gpu", phase)  # type: ignore[arg-type]
    assert found is not None
    return found.of(owner) / GIB  # type: ignore[arg-type]


def test_layers_that_are_trained_at_a_time_alone_have_gradients_and_moments() -> None:
    some = {"tuner_type": "full", "lisa_activated_layers": 2}
    assert gib("gradients", tuner_type="full") == pytest.approx(2 * ALL / GIB)
    assert gib("gradients", **some) == pytest.approx(2 * (TABLES + 2 * LAYER) / GIB, rel=1e-3)
    assert gib("optimizer", **some) == pytest.approx(4 * (TABLES + 2 * LAYER) / GIB, rel=1e-3)
    assert gib("weights", **some) == gib("weights", tuner_type="full")


@pytest.mark.parametrize(("names", "tables"), [("embed_tokens lm_head", 2), ("lm_head", 1), ("norm", 0)])
def test_modules_saved_beside_an_adapter_are_trained_in_copies_of_their_own(names: str, tables: int) -> None:
    lora = {"tuner_type": "lora", "lora_rank": 8}
    more = [gib(owner, **lora, modules_to_save=names) - gib(owner, **lora) for owner in ("weights", "optimizer")]
    assert more == pytest.approx([2 * tables * TABLES / 2 / GIB, 4 * tables * TABLES / 2 / GIB])


def test_moments_of_projected_gradients_are_those_of_their_rank_and_of_the_tables() -> None:
    full = gib("optimizer", tuner_type="full")
    low, high = (gib("optimizer", tuner_type="full", use_galore=True, galore_rank=rank) for rank in (64, 128))
    assert 4 * TABLES / GIB < low < high < full / 4
    assert high - low == pytest.approx(4 * 64 * 20_185_088 / 8 / GIB, rel=1e-3)


def test_a_loss_that_weighs_tokens_takes_the_logits_whatever_the_fused_kernels_say() -> None:
    fused = {"tuner_type": "lora", "use_liger_kernel": True, "per_device_train_batch_size": 8}
    assert gib("logits", **fused, loss_scale="hermes") > 1.5 * gib("logits", **fused)


def test_a_reward_model_stands_on_the_training_cards_and_ppo_gathers_two_models_to_generate() -> None:
    ppo = {"rlhf_type": "ppo", "tuner_type": "full", "deepspeed": "zero3", "box": "8xA100-80GB"}
    named = gib("reference", program="swift rlhf", **ppo, reward_model="some/Reward-8B")
    alone = gib("reference", program="swift rlhf", **ppo)
    assert named - alone == pytest.approx(2 * 8e9 / 8 / GIB)
    grpo = {**ppo, "rlhf_type": "grpo"}
    once, twice = (gib("gathered", "rollout_generate", "swift rlhf", **one) for one in (grpo, ppo))
    assert (once, twice) == pytest.approx((2 * ALL / GIB, (4 * ALL - TABLES) / GIB), rel=1e-3)  # the critic has no head


def test_queries_of_a_reranker_share_a_pass_with_their_negatives() -> None:
    long = {"tuner_type": "full", "deepspeed": "zero3", "box": "8xA100-80GB", "dataset": "my.jsonl", "max_length": 8192}
    one, eight = (gib("activations", **long, task_type=task) for task in ("seq_cls", "reranker"))
    assert eight == pytest.approx(8 * one, rel=0.01)


def test_an_adapter_that_goes_on_training_freezes_the_base() -> None:
    run = {"framework": "verl", "program": "verl.trainer.main_ppo", "model": "Qwen/Qwen3-8B", "gpus": "8xH100-80GB"}
    plain = {"algorithm.adv_estimator": "grpo", "trainer.n_gpus_per_node": 8}
    whole, adapted = (
        ledger_of({**run, "settings": {**plain, **more}}).phase("gpu", "actor_update")
        for more in ({}, {"actor_rollout_ref.model.lora_adapter_path": "/data/adapter"})
    )
    assert whole is not None
    assert adapted is not None
    assert whole.of("optimizer") > 0 == adapted.of("optimizer") == adapted.of("gradients")


def test_moments_in_host_ram_are_those_of_what_is_trained() -> None:
    run = {"framework": "openrlhf", "program": "openrlhf.cli.train_ppo_ray", "model": "Qwen/Qwen3.5-2B"}
    asleep = {"ds.zero_stage": 3, "ds.enable_sleep": True, "vllm.enable_sleep": True, "train.colocate_all": True}
    cards = {"actor.num_nodes": 1, "actor.num_gpus_per_node": 4, "vllm.num_engines": 4, "data.max_len": 4096}
    whole, frozen = (
        ledger_of({**run, "gpus": "4xH100-80GB", "settings": {**asleep, **cards, **more}}).phase("host", "actor_update")
        for more in ({}, {"actor.freeze_visual_encoder": True})
    )
    assert whole is not None
    assert frozen is not None
    assert frozen.of("offloaded_optimizer") < 0.9 * whole.of("offloaded_optimizer")
