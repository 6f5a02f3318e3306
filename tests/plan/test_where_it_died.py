"""A plan changes the settings that the failing pass reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from advisor.cli import main

Capture = pytest.CaptureFixture[str]
VERL = {
    "algorithm.adv_estimator": "gae",
    "data.train_batch_size": "4096",
    "data.max_prompt_length": "4096",
    "data.max_response_length": "4096",
    "actor_rollout_ref.model.path": "Qwen/Qwen2-7B-Instruct",
    "actor_rollout_ref.model.use_remove_padding": "True",
    "actor_rollout_ref.actor.ppo_mini_batch_size": "512",
    "actor_rollout_ref.actor.use_dynamic_bsz": "True",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": "24000",
    "critic.model.path": "Qwen/Qwen2-7B-Instruct",
    "critic.model.use_remove_padding": "True",
    "critic.ppo_max_token_len_per_gpu": "98304",
    "trainer.n_gpus_per_node": "8",
    "trainer.nnodes": "1",
}
LOG = """(TaskRunner pid=91) Training Progress:   0%|          | 0/105 [00:00<?, ?it/s]
Traceback (most recent call last):
ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.{task}() (pid=934, ip=10.4.0.11)
  File "/root/verl/verl/workers/{file}.py", line 230, in {function}
    {source}
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.15 GiB \
of which 0.40 GiB is free. Process 77 has 78.60 GiB memory in use. Of the allocated memory 76.00 GiB is allocated \
by PyTorch, and 800.00 MiB is reserved by PyTorch but unallocated.
"""
CRITIC = {
    "task": "critic_update_critic",
    "file": "critic/dp_critic",
    "function": "update_critic",
    "source": "loss.backward()",
}
SCORING = {
    "task": "actor_rollout_compute_log_prob",
    "file": "actor/dp_actor",
    "function": "compute_log_prob",
    "source": "self._forward_micro_batch(micro_batch)",
}
LOGIC_RL = {
    "algorithm.adv_estimator": "grpo",
    "data.train_files": "data/kk/instruct/3ppl/train.parquet",
    "data.max_prompt_length": "512",
    "data.max_response_length": "2048",
    "actor_rollout_ref.model.path": "Qwen/Qwen2.5-7B-Instruct-1M",
    "actor_rollout_ref.model.use_remove_padding": "True",
    "actor_rollout_ref.model.enable_gradient_checkpointing": "True",
    "actor_rollout_ref.actor.ppo_mini_batch_size": "256",
    "trainer.n_gpus_per_node": "4",
    "trainer.project_name": "GRPO_logic_KK",
}
UPDATE = {
    "task": "actor_rollout_update_actor",
    "file": "actor/dp_actor",
    "function": "update_policy",
    "source": "loss.backward()",
}


def write(folder: Path, settings: dict[str, str], where: dict[str, str]) -> None:
    lines = [f"    {key}={value}" for key, value in settings.items() if value]
    (folder / "run.sh").write_text(" \\\n".join(["python3 -m verl.trainer.main_ppo", *lines]) + "\n")
    (folder / "run.log").write_text(LOG.format(**where))


def told(folder: Path, capsys: Capture, *machine: str) -> dict[str, Any]:
    main(["diagnose", str(folder / "run.sh"), "--log", str(folder / "run.log"), *machine, "--format", "json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def plan(folder: Path, capsys: Capture, where: dict[str, str], changed: dict[str, str]) -> list[dict[str, Any]]:
    write(folder, {**VERL, **changed}, where)
    steps: list[dict[str, Any]] = told(folder, capsys, "--gpus", "8xA100-80GB", "--lib", "verl=0.4.0")["plan"]
    return steps


def keys(step: dict[str, Any]) -> dict[str, tuple[str | None, str | None]]:
    return {change["key"]: (change["old"], change["new"]) for change in step["changes"]}


def test_a_critic_that_ran_out_is_relieved_by_the_critics_own_budget(tmp_path: Path, capsys: Capture) -> None:
    steps = plan(tmp_path, capsys, CRITIC, {})
    first = steps[0]
    assert first["selected"]
    old, new = keys(first)["critic.ppo_max_token_len_per_gpu"]
    assert old == "98304"
    assert new is not None
    assert 8192 <= int(new) < 98304
    assert not [s for s in steps if s["selected"] and "actor_rollout_ref.actor.ppo_max_token_len_per_gpu" in keys(s)]


def test_a_critic_that_keeps_its_activations_is_told_to_recompute_its_own(tmp_path: Path, capsys: Capture) -> None:
    off = {"critic.model.enable_gradient_checkpointing": "False", "critic.ppo_max_token_len_per_gpu": "16384"}
    steps = plan(tmp_path, capsys, CRITIC, off)
    step = next(s for s in steps if s["id"] == "critic-gradient-checkpointing")
    assert step["saves_bytes"]["critic_update"] > 0
    assert "critic.model.enable_gradient_checkpointing" in keys(step)


def test_both_scoring_passes_are_narrowed_together_and_before_results_change(tmp_path: Path, capsys: Capture) -> None:
    wide = {
        "algorithm.adv_estimator": "grpo",
        "actor_rollout_ref.actor.use_dynamic_bsz": "False",
        "actor_rollout_ref.actor.use_kl_loss": "True",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": "4",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": "64",
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": "64",
        "critic.ppo_max_token_len_per_gpu": "",
    }
    steps = plan(tmp_path, capsys, SCORING, wide)
    place, step = next((i, s) for i, s in enumerate(steps) if s["id"] == "lower-logprob-micro-batch")
    assert step["saves_bytes"]["log_prob"] > 0
    values = keys(step)
    narrowed = values["actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu"]
    assert values["actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu"] == narrowed
    assert all(s["results"] == "unchanged" for s in steps[:place])


def test_the_floor_of_a_token_budget_is_a_sequences_part_on_one_gpu(tmp_path: Path, capsys: Capture) -> None:
    """verl multiplies the budget by the sequence-parallel size before it forms batches."""
    split = {
        "algorithm.adv_estimator": "grpo",
        "actor_rollout_ref.actor.ulysses_sequence_parallel_size": "4",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": "7000",
    }
    steps = plan(tmp_path, capsys, SCORING, split)
    step = next(s for s in steps if s["id"] == "token-budget")
    _, new = keys(step)["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"]
    assert new is not None
    assert 2048 <= int(new) < 7000


@pytest.mark.parametrize(("prompts", "samples", "old", "offered"), [(8, 32, 64, "4"), (4, 64, 16, None)])
def test_a_micro_batch_is_offered_where_a_lower_one_binds_and_refused_where_none_does(
    prompts: int, samples: int, old: int, offered: str | None, tmp_path: Path, capsys: Capture
) -> None:
    """Logic-RL turns it into (value // 4 GPUs) * samples; at 4 that is 32 of 64 sequences, or all 64."""
    key = "actor_rollout_ref.actor.ppo_micro_batch_size"
    batch = {"data.train_batch_size": str(prompts), "actor_rollout_ref.rollout.n": str(samples), key: str(old)}
    write(tmp_path, {**LOGIC_RL, **batch}, UPDATE)
    answer = told(tmp_path, capsys, "--gpus", "4xH100-80GB")  # on A100 a documented case tried it in vain
    steps = [step for step in answer["plan"] if step["id"] == "lower-actor-micro-batch"]
    refused = {one["id"]: one["because"] for one in answer["not_proposed"]}
    assert [keys(step)[key] for step in steps] == ([(str(old), offered)] if offered else [])
    assert ("not what binds" in refused.get("lower-actor-micro-batch", "")) is (offered is None)
