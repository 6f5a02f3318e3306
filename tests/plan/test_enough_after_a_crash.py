"""After a crash that printed no size, a change counts as enough only where it takes more than the formulas' error."""

from __future__ import annotations

from pathlib import Path

from advisor.memory.predict import UNSIZED_MARGIN
from advisor.session import SessionRequest, State, open_session

SCRIPT = (
    "accelerate launch --num_processes 4 train_grpo.py --deepspeed zero3.json --model_name_or_path Qwen/Qwen2.5-7B "
    "--per_device_train_batch_size 1 --num_generations 4 --max_prompt_length 512 --max_completion_length {length} "
    "--gradient_checkpointing false --bf16 true --torch_dtype bfloat16\n"
)
ZERO3 = '{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}\n'
SIZED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.50 GiB is free. Process 7 has 77.65 GiB memory in use. Of the allocated memory 76.20 GiB is allocated "
    "by PyTorch, and 0.30 GiB is reserved by PyTorch but unallocated.\n"
)


def opened(folder: Path, log: str = "", length: int = 2048) -> State:
    (folder / "run.sh").write_text(SCRIPT.format(length=length))
    (folder / "zero3.json").write_text(ZERO3)
    (folder / "train.log").write_text(log)
    asked = SessionRequest(
        script=folder / "run.sh",
        logs=(folder / "train.log",) if log else (),
        gpus="4xA100-80GB",
        host_ram="1000GB",
        answers={"memory": "gpu", "framework": "trl", "phase": "actor_update"},
    )
    return open_session(asked)


def test_where_only_the_user_says_that_it_died_the_change_leaves_the_error_of_the_formulas(tmp_path: Path) -> None:
    plan = opened(tmp_path).plan
    assert plan.selected()
    assert plan.margin == UNSIZED_MARGIN
    assert plan.after is not None
    peak, room = plan.after.peak("gpu"), plan.after.gpu_capacity
    assert peak is not None
    assert room is not None
    assert peak.expected <= room * (1 - UNSIZED_MARGIN)


def test_where_the_message_says_how_much_was_missing_the_usual_margin_holds(tmp_path: Path) -> None:
    assert opened(tmp_path, SIZED).plan.margin < UNSIZED_MARGIN
