"""What a ledger of the card alone gets wrong: a full share, a first step; settings in several files; a log alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plan.planned import Planned, changes, selected
from tests.stories.told import RUNS, tell

VERL = """\
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=1024 data.max_prompt_length=512 data.max_response_length=1024 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
    actor_rollout_ref.model.use_remove_padding=True \\
    actor_rollout_ref.model.enable_gradient_checkpointing=True \\
    actor_rollout_ref.actor.ppo_mini_batch_size=256 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=%(micro)s \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=5 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=%(share)s \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \\
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=8 \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1
"""
NO_BLOCKS = """\
(WorkerDict pid=93441) INFO 06-11 10:00:00 [gpu_worker.py:100] Available KV cache memory: -3.21 GiB
Error executing job with overrides: []
ray.exceptions.RayTaskError(ValueError): ray::WorkerDict.actor_rollout_init_model() (pid=93441, ip=10.4.0.11)
  File "/root/verl/verl/workers/fsdp_workers.py", line 533, in init_model
    self.rollout, self.rollout_sharding_manager = self._build_rollout(
  File "/opt/lib/site-packages/vllm/v1/core/kv_cache_utils.py", line 546, in check_enough_kv_cache_memory
    raise ValueError("No available memory for the cache blocks. "
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.
"""
UPDATE = """\
(TaskRunner pid=91021) Training Progress:   0%%|          | %(done)s/105 [00:00<?, ?it/s]
Error executing job with overrides: []
ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_update_actor() (pid=93441, ip=10.4.0.11)
  File "/root/verl/verl/workers/fsdp_workers.py", line 633, in update_actor
    metrics = self.actor.update_policy(data=data)
  File "/root/verl/verl/workers/actor/dp_actor.py", line 410, in update_policy
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 17.40 GiB. GPU 0 has a total capacity of 79.15 GiB of \
which 9.61 GiB is free. Process 1190342 has 69.53 GiB memory in use. Of the allocated memory 66.04 GiB is allocated \
by PyTorch, and 800.00 MiB is reserved by PyTorch but unallocated.
"""


def test_an_engine_without_cache_blocks_gets_a_larger_share(planned: Planned) -> None:
    steps = planned(VERL % {"micro": 2, "share": 0.15}, NO_BLOCKS)
    assert next(iter(steps)) == "raise-rollout-share"
    assert selected(steps)[0] == "raise-rollout-share"
    ((old, new),) = changes(steps["raise-rollout-share"]).values()
    assert old == "0.15"
    assert new is not None
    assert float(new) > 0.15


def test_a_share_rises_until_the_engines_weights_leave_room_in_it(planned: Planned) -> None:
    script = (VERL % {"micro": 2, "share": 0.15}).replace("Qwen2.5-7B", "Qwen2.5-32B")  # 30.5 GiB on each of two cards
    ((_, new),) = changes(planned(script, NO_BLOCKS)["raise-rollout-share"]).values()
    assert float(new or 0) >= 0.45


def test_a_token_budget_comes_with_rows_that_are_not_padded(planned: Planned) -> None:
    budget = "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=%s \\\n"
    script = VERL.replace("padding=True", "padding=False").replace(
        "    trainer.n_gpus", f"    {budget}    trainer.n_gpus"
    )
    steps = planned(script.replace("%s ", "98304 ") % {"micro": 2, "share": 0.4}, UPDATE % {"done": 0})
    moved = changes(steps["token-budget"])
    assert moved["actor_rollout_ref.model.use_remove_padding"] == ("False", "True")
    assert int(moved["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"][1] or 0) < 98304
    assert "remove-padding" not in selected(steps)


@pytest.mark.parametrize(("done", "lowered"), [(0, True), (40, False)])
def test_phases_of_a_first_step_were_not_passed_with_the_optimizer(planned: Planned, done: int, lowered: bool) -> None:
    script = VERL % {"micro": 160, "share": 0.88}
    steps = planned(script, UPDATE % {"done": done}, "--lib", "verl=0.7.0", "--lib", "vllm=0.11.0")
    assert ("lower-rollout-share" in selected(steps)) is lowered


def test_a_log_alone_says_that_the_log_told_the_framework(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tell(["diagnose", "--log", str(RUNS / "easyr1" / "train.log"), "--format", "json"], capsys)
    assert code == 0, err
    answer = json.loads(out)
    assert answer["run"]["framework"] == "easyr1"
    assert answer["run"]["algorithm"] == "rl"  # which method, only a launch tells
    framework = next(step for step in answer["diagnosis"]["path"] if step["question"].startswith("framework"))
    assert framework["source"] == "log"


def test_what_another_file_decides_is_written_beside_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both files are written as copies, and the new script names the new config."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zero2.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
        "deepspeed_config:\n  zero_stage: 2\n  zero3_init_flag: false\nnum_processes: 8\n"
    )
    (tmp_path / "run.sh").write_text(
        "accelerate launch --config_file zero2.yaml -m trl.scripts.grpo --model_name_or_path Qwen/Qwen2.5-7B-Instruct "
        "--per_device_train_batch_size 16 --num_generations 16 --gradient_accumulation_steps 4 "
        "--max_completion_length 1024 --bf16 true\n"
    )
    log = (
        '[rank0]:   File "/x/trl/trainer/grpo_trainer.py", line 489, in compute_loss\n'
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 2.31 GiB is free.\n"
    )
    (tmp_path / "train.log").write_text(log)
    both = "higher-zero-stage,lower-actor-micro-batch"
    words = ["fix", "run.sh", "--log", "train.log", "--gpus", "8xA100-80GB", "--accept", both]
    before = (tmp_path / "zero2.yaml").read_text()
    code, _, err = tell(words, capsys)
    assert code == 0, err
    assert "zero_stage: 3" in (tmp_path / "zero2.fits.yaml").read_text()
    assert "--config_file zero2.fits.yaml" in (tmp_path / "run.fits.sh").read_text()
    assert (tmp_path / "zero2.yaml").read_text() == before


@pytest.mark.parametrize("strategy", ["fsdp", "megatron"])
def test_a_cause_that_an_estimated_ledger_told_is_estimated(
    strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Megatron's sharding is not modelled, and how long the rows of an update are nobody knows: what such a ledger says
    of the cause is no computation."""
    monkeypatch.chdir(tmp_path)
    launch = (VERL % {"micro": 160, "share": 0.5}).rstrip() + f" actor_rollout_ref.actor.strategy={strategy}\n"
    (tmp_path / "run.sh").write_text(launch)
    (tmp_path / "train.log").write_text(UPDATE % {"done": 3})
    words = ["diagnose", "run.sh", "--log", "train.log", "--gpus", "8xA100-80GB", "--format", "json"]
    code, out, err = tell(words, capsys)
    assert code == 0, err
    assert json.loads(out)["diagnosis"]["basis"] == "estimated"
