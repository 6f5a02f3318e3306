"""What ended a run that had done steps: a long row only where rows differ, a save where one was due."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 0.32 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 0.20 GiB is free. Including non-PyTorch memory, this process has 78.94 GiB memory in use. Of the "
    "allocated memory 77.10 GiB is allocated by PyTorch, and 0.41 GiB is reserved by PyTorch but unallocated.\n"
)
STEPS = "".join(f"(TaskRunner pid=7) step:{n} - global_seqlen/mean:4096.0 - actor/pg_loss:0.1\n" for n in (199, 200))
SFT = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: full\ncutoff_len: 8192\nsave_steps: 100\n"
VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B data.max_response_length=8192 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 "
    "actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8 actor_rollout_ref.model.use_remove_padding="
)


@pytest.mark.parametrize(
    ("text", "log", "cause"),
    [
        (SFT, "", "long-sequence"),
        (SFT + "packing: true\n", "", "room-lost"),
        (VERL + "True\n", "", "long-sequence"),
        (VERL + "False\n", "", "room-lost"),
        (VERL + "True trainer.save_freq=100\n", STEPS, "save-left-buffers"),
        (VERL + "True trainer.save_freq=70\n", STEPS, "long-sequence"),
    ],
)
def test_what_ended_a_run_that_had_done_steps(tmp_path: Path, text: str, log: str, cause: str) -> None:
    script = tmp_path / ("run.sh" if text.startswith("python3") else "run.yaml")
    script.write_text(text)
    answers = {"memory": "gpu", "regression": "no", **({} if log else {"first_step": "no"})}
    (tmp_path / "train.log").write_text(log + OOM)
    asked = SessionRequest(script, logs=(tmp_path / "train.log",), gpus="8xH200-141GB", answers=answers)
    assert open_session(asked).diagnosis.cause == cause
