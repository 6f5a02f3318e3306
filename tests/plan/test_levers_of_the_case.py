# ruff: noqa: E501  (launches as people write them)
"""The first steps are those that the case itself asks for, in values that the setting takes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from advisor.session import SessionRequest, State, open_session
from tests.loops import each

CARD = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 79.15 GiB of which 500.00 MiB is free.\n"
KILLED = "[ 9123.1] Out of memory: Killed process 4242 (python) total-vm:412345678kB, anon-rss:198765432kB, file-rss:1234kB, shmem-rss:5678kB, UID:0\n"
SWIFT = "NPROC_PER_NODE=8 swift sft --model {model} --train_type full --deepspeed {deepspeed} --per_device_train_batch_size 1 --max_length 4096 --torch_dtype bfloat16\n"
LONG = "deepspeed --num_gpus 8 src/train.py --stage sft --do_train --model_name_or_path Qwen/Qwen2.5-14B --finetuning_type full --deepspeed ds_z3_config.json --per_device_train_batch_size {batch} --cutoff_len {length} --gradient_checkpointing true --output_dir o\n"


def planned(script: str, log: str = CARD, name: str = "run.sh", gpus: str = "8xA100-80GB", **answers: str) -> State:
    with TemporaryDirectory() as folder:
        run, logs = Path(folder) / name, Path(folder) / "run.log"
        run.write_text(script)
        logs.write_text(log)
        asked = SessionRequest(run, logs=(logs,), gpus=gpus, host_ram="400GB", answers=answers)
        return open_session(asked)


def ids(state: State) -> list[str]:
    return [step.id for step in state.plan.steps]


@each(
    ("written", "new"),
    [
        ("--attn_implementation eager", "flash_attention_2"),
        ("--attn_implementation Eager", "flash_attention_2"),
        ("--use_flash_attention false", "true"),
        ("--use_flash_attention False", "True"),
    ],
)
def test_a_key_of_an_unknown_program_gets_a_value_of_its_own_kind(written: str, new: str) -> None:
    state = planned(f"python finetune.py --model google/gemma-2-2b {written} --batch_size 4 --seq_len 4096\n")
    step = next(step for step in state.plan.steps if step.id == "flash-attention")
    assert [change.new for change in step.changes] == [new]


def test_plain_attention_asks_for_recomputing_before_a_smaller_batch() -> None:
    steps = ids(planned("python finetune.py --attn_implementation eager --batch_size 4 --seq_len 4096\n"))
    assert steps.index("gradient-checkpointing") < steps.index("lower-actor-micro-batch")


@each(
    ("deepspeed", "step", "new"),
    [
        ("zero2_offload", "cpu-optimizer-off", "zero2"),
        ("zero2_offload", "shard-without-offload", "zero3"),
        ("zero3_offload", "param-offload-off", "zero3"),
    ],
)
def test_offload_that_fills_the_host_gives_way_to_the_cards(deepspeed: str, step: str, new: str) -> None:
    model = "Qwen/Qwen2.5-32B" if step == "shard-without-offload" else "Qwen/Qwen2.5-7B"
    state = planned(SWIFT.format(model=model, deepspeed=deepspeed), KILLED)
    changes = {one.id: [change.new for change in one.changes] for one in state.plan.steps}
    assert changes.get(step) == [new], changes


@each(("batch", "length", "leads"), [(1, 32768, True), (1, 2048, False), (4, 32768, False)])
def test_long_rows_alone_on_sharded_states_are_split(batch: int, length: int, leads: bool) -> None:
    steps = ids(planned(LONG.format(batch=batch, length=length)))
    assert ("split-sequences-elsewhere" in steps[:2]) is leads


METRICS = "from transformers import Trainer, TrainingArguments\nargs = TrainingArguments('o', per_device_eval_batch_size=8)\nTrainer(model=m, args=args, eval_dataset=e, compute_metrics={how}).train()\n"


@each(("how", "leads"), [("bleu", True), ("None", False), ("f, preprocess_logits_for_metrics=g", False)])
def test_metrics_of_an_evaluation_ask_to_keep_no_logits_first(how: str, leads: bool) -> None:
    state = planned(METRICS.format(how=how), name="train.py", phase="validation")
    assert (ids(state)[0] == "keep-no-logits") is leads
    assert not leads or "fused-loss" not in ids(state)


@each(("gpus", "lower"), [("4xRTX-3090-24GB", False), ("4xA100-80GB", True)])
def test_no_share_below_the_engines_own_weights(gpus: str, lower: bool) -> None:
    asked = SessionRequest(
        None, gpus=gpus, model="Qwen/Qwen2.5-7B", answers={"memory": "gpu", "framework": "trl", "phase": "weight_sync"}
    )
    assert ("lower-rollout-share" in ids(open_session(asked))) is lower


def test_events_that_the_launch_makes_due_are_suspects_where_steps_had_room() -> None:
    script = SWIFT.format(model="Qwen/Qwen2.5-7B", deepspeed="zero3").strip()
    script += " --packing true --attn_impl flash_attn --save_strategy epoch --eval_steps 100\n"
    state = planned(script, first_step="no")
    assert state.diagnosis.cause == "room-lost"
    assert "save_strategy epoch" in state.diagnosis.explains
    assert "eval_steps 100" in state.diagnosis.explains
    assert "packing-off" not in ids(state)


@each(
    ("strange", "written"),
    [("--base_model_name m --merged_sft_path q --batched_gen True --adapter_in p", False), ("", True)],
)
def test_options_of_a_framework_are_not_added_to_somebodys_own_program(strange: str, written: bool) -> None:
    script = f"accelerate launch my_rl.py --model_name_or_path Qwen/Qwen2.5-7B {strange} --per_device_train_batch_size 1 --output_dir o\n"
    state = planned(script, gpus="1xA100-80GB", framework="trl")
    lora = next(step for step in state.plan.steps if step.id == "lora")
    assert all(one.file for one in lora.changes) is written
