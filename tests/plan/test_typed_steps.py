"""A step says what to type: in place where the launch has the setting, by an example elsewhere, or why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.cli import main
from advisor.plan.patch import unwritten
from advisor.session import SessionRequest, State, open_session

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.94 GiB memory in use. Of the "
    "allocated memory 75.10 GiB is allocated by PyTorch, and 1.41 GiB is reserved by PyTorch but unallocated.\n"
)
TRAINER = '  File "/x/transformers/trainer.py", line 3782, in training_step\n    self.accelerator.backward(loss)\n'
OWN = "accelerate launch sft.py --per_device_train_batch_size 8 --model Qwen/Qwen2.5-1.5B --max_len 2048\n"
WITH_FILE = (
    "deepspeed ft.py --deepspeed ds.json --model_name_or_path x/Mistral-7B-v0.1 --per_device_train_batch_size 4\n"
)


def opened(folder: Path, text: str, log: str, name: str = "run.sh", gpus: str = "4xA100-80GB") -> State:
    (folder / name).write_text(text)
    (folder / "log").write_text("Traceback (most recent call last):\n" + log + OOM)
    return open_session(SessionRequest(folder / name, logs=(folder / "log",), gpus=gpus))


def test_what_stands_in_the_launch_is_edited_whatever_the_program_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(tmp_path, OWN, TRAINER)
    fix = ["fix", str(tmp_path / "run.sh"), "--log", str(tmp_path / "log"), "--gpus", "4xA100-80GB", "--diff"]
    assert main([*fix, "--accept", "lower-actor-micro-batch,gradient-checkpointing"]) == 0
    told = capsys.readouterr()
    assert "--per_device_train_batch_size 4" in told.out
    assert "for example gradient_checkpointing=True" in told.err


def test_keys_of_a_file_that_the_launch_names_have_their_place_there(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    plan = opened(tmp_path, WITH_FILE, TRAINER).plan
    (step,) = [one for one in plan.steps if one.id == "higher-zero-stage"]
    (stage,) = step.changes
    assert (stage.key, stage.new, stage.left_to_user) == ("deepspeed:zero_optimization.stage", "3", False)
    (batch,) = [one for one in plan.steps if one.id == "lower-actor-micro-batch"]
    in_place, beside = batch.changes
    assert (in_place.left_to_user, beside.left_to_user) == (False, True), "accumulation is told, not written"
    assert "gradient_accumulation_steps" in unwritten(batch)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "torchrun pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 32 --micro-batch-size 4 --bf16\n",
            "--recompute",
        ),
        ("python loop.py --batch_size 8\n", "model.gradient_checkpointing_enable()"),
    ],
)
def test_where_no_key_is_known_the_step_is_typed_as_most_do(tmp_path: Path, text: str, wanted: str) -> None:
    frame = '  File "/w/Megatron-LM/megatron/core/transformer/transformer_layer.py", line 9, in forward\n'
    steps = opened(tmp_path, text, frame * ("gpt" in text)).plan.steps
    assert wanted in next(one.example for one in steps if one.id == "gradient-checkpointing")
    assert not {"remove-padding", "lower-train-batch"} & {one.id for one in steps}, "of runs that roll out"


def test_a_model_of_sound_has_no_texts_to_shorten(tmp_path: Path) -> None:
    text = (
        "model = WhisperForConditionalGeneration.from_pretrained('openai/whisper-large-v3')\n"
        "args = Seq2SeqTrainingArguments(output_dir='o', per_device_train_batch_size=16)\n"
        "Seq2SeqTrainer(args=args, model=model, train_dataset=rows).train()\n"
    )
    steps = {one.id for one in opened(tmp_path, text, TRAINER, "run.py").plan.steps}
    assert "lower-actor-micro-batch" in steps
    assert not {"shorten-sequences", "length-filter", "fused-loss"} & steps


def test_what_accelerate_is_told_by_options_is_in_force(tmp_path: Path) -> None:
    text = "accelerate launch --use_deepspeed --zero_stage 3 trl/scripts/sft.py --model_name_or_path Qwen/Qwen2.5-7B "
    state = opened(tmp_path, text + "--dataset_name x --output_dir o --per_device_train_batch_size 4\n", TRAINER)
    assert state.run.number("actor.zero_stage") == 3
    assert "higher-zero-stage" not in {one.id for one in state.plan.steps}
