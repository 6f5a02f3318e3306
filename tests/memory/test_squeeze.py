"""A run that neither side holds, with offload or without, is told as such, with what would fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.told import tell

LAUNCH = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 "
    "data.max_prompt_length=1024 data.max_response_length=2048 "
    "actor_rollout_ref.model.path=Qwen/Qwen2.5-32B-Instruct actor_rollout_ref.actor.ppo_mini_batch_size=64 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.rollout.name=vllm "
    "actor_rollout_ref.actor.strategy=fsdp2 "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=8 actor_rollout_ref.rollout.gpu_memory_utilization=0.5 "
    "actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
)
NEITHER = "It fits neither way"


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """words → the text report of the launch."""
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text(LAUNCH)

    def run(*words: str) -> str:
        _, out, _ = tell(["diagnose", "run.sh", *words, "--answer", "memory=gpu"], capsys)
        return " ".join(out.split())

    return run


def test_a_squeeze_from_both_sides_names_what_each_side_lacks_and_what_would_fit(plan) -> None:  # type: ignore[no-untyped-def]
    out = plan("--gpus", "8xA100-40GB", "--host-ram", "256GB")
    assert NEITHER in out
    assert "of RAM on each node (actor_rollout_ref.actor.fsdp_config.offload_policy on), 4 such nodes" in out
    assert "LoRA on a base that is loaded in bf16" in out  # in fp32 it is too much


@pytest.mark.parametrize(("gpus", "ram"), [("8xA100-40GB", "2000GB"), ("8xH200", "256GB")])
def test_where_one_side_is_large_enough_there_is_no_squeeze(plan, gpus: str, ram: str) -> None:  # type: ignore[no-untyped-def]
    assert NEITHER not in plan("--gpus", gpus, "--host-ram", ram)
