"""What torch keeps of passes over answers of other lengths is shown, and never makes a run die."""

from __future__ import annotations

import pytest

from advisor.memory.cells import PhaseSum
from tests.measured.published import ledger_of

VERL = {"framework": "verl", "program": "python3 -m verl.trainer.main_ppo", "model": "Qwen/Qwen2.5-7B-Instruct"}
SETTINGS = {
    "algorithm.adv_estimator": "grpo",
    "data.max_prompt_length": 1024,
    "data.max_response_length": 4096,
    "data.train_batch_size": 512,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 128,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.5,
    "trainer.n_gpus_per_node": 8,
}
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def update(gpus: str, **more: object) -> PhaseSum:
    """The update of a GRPO run of verl."""
    found = ledger_of({**VERL, "gpus": gpus, "settings": {**SETTINGS, **more}}).phase("gpu", "actor_update")
    assert found is not None
    return found


def left(phase: PhaseSum) -> int:
    """Bytes that nothing uses."""
    return sum(one.expected for one in phase.cells if one.kind == "unused")


def unpadded(value: bool) -> dict[str, object]:
    """Whether passes see real tokens only, and so differ in length."""
    return {"actor_rollout_ref.model.use_remove_padding": value}


def test_as_much_is_kept_as_users_of_verl_measured() -> None:
    phase = update("8xH200-141GB", **unpadded(True))
    own = sum(one.expected for one in phase.cells if one.pooled and one.kind != "unused")
    assert left(phase) == pytest.approx(0.1 * own, rel=0.01)


def test_nothing_is_kept_where_every_pass_is_as_long_or_segments_grow() -> None:
    assert left(update("8xH200-141GB", **unpadded(False))) == 0
    assert left(update("8xH200-141GB", **unpadded(True), **EXPANDABLE)) == 0


def test_it_fills_no_card() -> None:
    phase = update("8xA100-40GB", **unpadded(True))
    own = phase.expected - left(phase)
    assert left(phase) <= max(0, 0.8 * 39.4 * 2**30 - own) or left(phase) == 0


def test_a_budget_that_the_rows_of_a_gpu_may_not_fill_is_not_taken_as_full() -> None:
    budget = {
        **unpadded(True),
        "actor_rollout_ref.actor.use_dynamic_bsz": True,
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": 40_000,
    }
    phase = update("8xH200-141GB", **budget)
    assert phase.rows is not None
    assert phase.by_data[0] < 0.8 * phase.expected
