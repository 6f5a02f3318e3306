"""A model that nobody knows: its shape is guessed from the size in its name, and no run is turned away for a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.cli import main

LAUNCH = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path={model} trainer.nnodes=1 trainer.n_gpus_per_node=8 "
    "data.train_batch_size=64 data.max_prompt_length=1024 data.max_response_length=4096 "
    "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.gpu_memory_utilization=0.5 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 algorithm.adv_estimator=grpo"
)


def estimate(folder: Path, model: str) -> int:
    (folder / "run.sh").write_text(LAUNCH.format(model=model) + "\n")
    return main(["estimate", str(folder / "run.sh"), "--gpus", "8xA100-80GB", "--host-ram", "2000GB"])


def test_a_guess_is_told_with_what_settles_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert estimate(tmp_path, "acme/foo-120b") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the model's shape is guessed from its name: its config.json (--model FILE) settles it" in said


def test_a_known_shape_that_is_too_large_is_turned_away(tmp_path: Path) -> None:
    assert estimate(tmp_path, "Qwen/Qwen2.5-72B-Instruct") == 3
