"""Plans for a full host: who killed or refused, what holds most, and when it was."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
    "data.max_prompt_length=512 data.max_response_length=1024 actor_rollout_ref.model.path=Qwen/{model} "
    "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=2 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
)
BY_KERNEL = "Out of memory: Killed process 7 (ray::WorkerDict) total-vm:9kB, anon-rss:8kB, file-rss:0kB\n"
BY_RAY = "(raylet) node_manager.cc:3069: 3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers\n"
LOADING = "Loading checkpoint shards:  64%|##  | 9/14 [00:51<00:28,  5.7s/it]\n"


@pytest.mark.parametrize(("log", "offered"), [(BY_RAY, True), (BY_KERNEL, False)])
def test_rays_threshold_is_not_raised_where_the_kernel_killed(planned: Planned, log: str, offered: bool) -> None:
    steps = planned(VERL.format(model="Qwen2.5-7B"), log)
    assert ("ray-threshold" in steps) is offered


@pytest.mark.parametrize(("model", "patched"), [("Qwen2.5-3B", True), ("Qwen2.5-7B", False)])
def test_a_framework_that_loads_on_rank_0_is_offered_no_switch_for_it(
    planned: Planned, model: str, patched: bool
) -> None:
    steps = planned(VERL.format(model=model), LOADING + BY_RAY)
    assert ("load-once-tied" in steps) is patched
    assert "load-once" not in steps


def test_an_allocation_that_was_refused_asks_first_who_refused_it(planned: Planned) -> None:
    assert next(iter(planned("python train.py\n", "OSError: [Errno 12] Cannot allocate memory\n"))) == "look-at-limits"
