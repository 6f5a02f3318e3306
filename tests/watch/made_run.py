"""Starts a made-up trainer in verl's form under `watch --retry`: no GPU, no package of a trainer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.watch.terminals import WATCH

SCRIPT = """set -e
{python} -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=64 \\
    data.max_prompt_length=400 \\
    data.max_response_length=2048 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-1.5B-Instruct \\
    actor_rollout_ref.model.use_remove_padding=True \\
    actor_rollout_ref.model.enable_gradient_checkpointing=True \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64 \\
    actor_rollout_ref.actor.fsdp_config.param_offload=False \\
    actor_rollout_ref.actor.fsdp_config.optimizer_offload=False \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=16 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 \\
    actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.4 \\
    actor_rollout_ref.rollout.n=8 \\
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=16 \\
    actor_rollout_ref.ref.fsdp_config.param_offload=False \\
    trainer.n_gpus_per_node=4 \\
    trainer.nnodes=1 \\
    trainer.default_local_dir=ckpt \\
    trainer.save_freq={save_freq} \\
    trainer.total_training_steps={steps} $@
"""
ROOT = Path(__file__).parents[2]


def write_script(folder: Path, save_freq: int = 2, steps: int = 6) -> Path:
    """The launch script in that folder."""
    script = folder / "run.sh"
    script.write_text(SCRIPT.format(python=sys.executable, save_freq=save_freq, steps=steps))
    return script


def search_path() -> list[str]:
    """Where Python finds the program and the made-up trainer."""
    return [str(ROOT), str(Path(__file__).parent / "made_verl")]


def start(
    folder: Path, *options: str, dies_at: int = 5, retry: bool = True, **environment: str
) -> subprocess.Popen[str]:
    """`watch --retry` over the script of that folder."""
    made = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(search_path()),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "MADE_DIES_AT": str(dies_at),
        "MADE_STEPS": str(folder / "steps.txt"),
        **environment,
    }
    argv = [*WATCH, *["--retry"] * retry, *options, "-o", str(folder / "record"), "--", "bash", "run.sh"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(argv, env=made, cwd=folder, text=True, **streams)  # type: ignore[call-overload, no-any-return]


def finish(folder: Path, *options: str, dies_at: int = 5, **environment: str) -> tuple[int, str]:
    """Its exit code, and what it said on standard error."""
    process = start(folder, *options, dies_at=dies_at, **environment)
    _, said = process.communicate(timeout=120)
    return process.returncode, said


def steps_in(folder: Path) -> list[int]:
    """The steps that were begun, by all attempts."""
    return [int(line) for line in (folder / "steps.txt").read_text().split()]
