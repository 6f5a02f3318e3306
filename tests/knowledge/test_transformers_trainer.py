"""Programs of one's own around transformers' Trainer are read by TrainingArguments' options."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.run import Run
from advisor.session import SessionRequest, open_session

ALPACA = """\
torchrun --nproc_per_node=4 train.py --model_name_or_path huggyllama/llama-7b --data_path ./data.json --bf16 True \\
  --output_dir out --num_train_epochs 3 --per_device_train_batch_size 4 --gradient_accumulation_steps 8 \\
  --save_strategy steps --learning_rate 2e-5 --warmup_ratio 0.03 --logging_steps 1 \\
  --fsdp "full_shard auto_wrap offload" --fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer --model_max_length 2048
"""
FASTCHAT = """\
deepspeed fastchat/train/train_lora.py --model_name_or_path lmsys/vicuna-7b-v1.5 --lora_r 8 --q_lora True --bf16 True \\
  --output_dir out --num_train_epochs 3 --per_device_train_batch_size 2 --gradient_checkpointing True \\
  --model_max_length 2048
"""
LLAVA = """\
deepspeed llava/train/train_mem.py --lora_enable True --lora_r 128 --bits 4 --model_name_or_path lmsys/vicuna-7b-v1.5 \\
  --bf16 True --output_dir out --num_train_epochs 1 --per_device_train_batch_size 16 --gradient_checkpointing True \\
  --model_max_length 2048
"""


def run_of(folder: Path, launch: str) -> Run:
    script = folder / "run.sh"
    script.write_text(launch)
    return open_session(SessionRequest(script, planned=False)).run


def test_offload_among_the_words_of_fsdp_keeps_the_states_in_host_ram(tmp_path: Path) -> None:
    run = run_of(tmp_path, ALPACA)
    knobs = {name: knob.value for name, knob in run.knobs.items()}
    assert (run.framework, run.topology.actor_gpus, knobs["data.total_tokens"]) == ("transformers", 4, 2048)
    assert (knobs["actor.zero_stage"], knobs["actor.full_cpu_offload"]) == (3, True)
    plain = run_of(tmp_path, ALPACA.replace(" offload", ""))
    assert plain.knobs["actor.full_cpu_offload"].value is False


@pytest.mark.parametrize(("launch", "rank"), [(FASTCHAT, 8), (LLAVA, 128)])
def test_adapters_and_four_bits_are_read_by_either_spelling(tmp_path: Path, launch: str, rank: int) -> None:
    run = run_of(tmp_path, launch)
    knobs = {name: knob.value for name, knob in run.knobs.items()}
    assert run.framework == "transformers"
    assert (knobs["actor.full_finetuning"], knobs["actor.lora_rank"], knobs["actor.quantized_bits"]) == (False, rank, 4)


def test_a_switched_off_adapter_trains_the_whole_model(tmp_path: Path) -> None:
    run = run_of(tmp_path, LLAVA.replace("--lora_enable True", "--lora_enable False").replace("--bits 4", "--bits 16"))
    assert run.knobs["actor.full_finetuning"].value is not False
    assert "actor.lora_rank" not in run.knobs or run.knobs["actor.lora_rank"].value is None


def test_the_batch_is_halved_where_it_stands_and_accumulation_follows(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(FASTCHAT)
    plan = open_session(SessionRequest(script)).plan
    (step,) = [one for one in plan.steps if one.group == "actor.micro_batch"]
    changes = {(change.key, change.new) for change in step.changes}
    assert changes == {("--per_device_train_batch_size", "1"), ("--gradient_accumulation_steps", "2")}
