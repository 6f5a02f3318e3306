"""What the user's own material names leads: stated numbers, a case that died alike, light steps before heavy ones."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, changes

BARE = "torch.OutOfMemoryError: CUDA out of memory. \n"
LOGITS = (
    "Traceback (most recent call last):\n"
    '  File "/x/slime/utils/ppo_utils.py", line 210, in compute_log_probs\n'
    "    return vocab_parallel_softmax(logits)\n"
    '  File "/x/slime/utils/ppo_utils.py", line 150, in vocab_parallel_softmax\n'
    "    return logits.float().softmax(-1)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.84 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 3.79 GiB is free.\n"
)
SLIME = "python3 train.py --hf-checkpoint /m/Qwen3-4B --colocate --actor-num-gpus-per-node 8 "
GRPO = (
    "accelerate launch --config_file configs/zero3.yaml src/open_r1/grpo.py --model_name_or_path Qwen/Qwen2.5-7B "
    "--max_prompt_length {prompt} --num_generations 8 --per_device_train_batch_size 1 --gradient_checkpointing true "
    "--bf16 true\n"
)


def names(steps: dict[str, dict[str, object]]) -> list[str]:
    return [name for name in steps if not name.startswith("not:")]


def test_a_long_prompt_that_the_launch_states_is_shortened_among_the_first_four(planned: Planned) -> None:
    steps = planned(GRPO.format(prompt=4096), BARE)
    assert changes(steps["shorten-prompts"]) == {"max_prompt_length": ("4096", "2048")}
    assert "shorten-prompts" in names(steps)[:4]
    assert steps[names(steps)[0]]["results"] == "unchanged"  # results are not given up first


def test_full_offload_stands_behind_what_costs_less_and_may_do_as_much(planned: Planned) -> None:
    launch = "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.gpu_memory_utilization=0.8 {}\n"
    found = names(
        planned(launch.format("actor_rollout_ref.actor.strategy=fsdp2"), BARE, "--answer", "phase=actor_update")
    )
    assert found.index("full-cpu-offload") >= 3
    by_default = names(planned(launch.format(""), BARE, "--answer", "phase=actor_update"))
    assert "full-cpu-offload" not in by_default  # FSDP1 never reads its key


@pytest.mark.parametrize(("phase", "last"), [("actor_update", True), ("weight_sync", False)])
def test_the_share_of_an_engine_that_sleeps_helps_no_update(planned: Planned, phase: str, last: bool) -> None:
    launch = "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.gpu_memory_utilization=0.8\n"
    found = names(planned(launch, BARE, "--answer", f"phase={phase}"))
    assert ("lower-rollout-share" not in found[:4]) == last


def test_what_a_case_that_died_alike_names_is_among_the_first_three_and_says_which(planned: Planned) -> None:
    steps = planned("# lost\n", BARE, "--answer", "framework=verl", "--answer", "phase=actor_update")
    assert "fused-loss" in names(steps)[:3]
    assert "verl-2186" in str(steps["fused-loss"]["documented"])


def test_recomputing_layers_is_not_switched_on_against_logits(planned: Planned) -> None:
    steps = planned(f"{SLIME} --tensor-model-parallel-size 8\n", LOGITS, "--model", "14B")
    assert not any(steps[name]["selected"] for name in names(steps) if name == "full-recompute")


@pytest.mark.parametrize(("backend", "has"), [("fsdp", False), ("megatron", True)])
def test_keys_of_megatron_are_offered_to_megatron_alone(planned: Planned, backend: str, has: bool) -> None:
    steps = planned(f"{SLIME} --train-backend {backend} --max-tokens-per-gpu 9216\n", BARE, "--lib", "slime=0.2.1")
    keys = {key.lstrip("-") for name in names(steps) for key in changes(steps[name])}
    assert ({"tensor-model-parallel-size", "optimizer-cpu-offload"} <= keys) == has
    if not has:
        assert not keys & {"tensor-model-parallel-size", "optimizer-cpu-offload", "recompute-granularity"}
