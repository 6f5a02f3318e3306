"""torchtune's recipes: told by `tune run`, their YAML and what stands behind it on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.run import Run
from advisor.session import SessionRequest, open_session, patch

CONFIG = """output_dir: /tmp/out
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  max_seq_len: 4096
model:
  _component_: torchtune.models.llama3_1.{builder}llama3_1_8b
  lora_rank: 16
  apply_lora_to_mlp: True
dataset:
  packed: True
optimizer:
  _component_: torch.optim.AdamW
batch_size: 4
gradient_accumulation_steps: 2
enable_activation_checkpointing: True
dtype: bf16
"""


def run_of(folder: Path, command: str, builder: str = "") -> Run:
    (folder / "my.yaml").write_text(CONFIG.format(builder=builder))
    (folder / "run.sh").write_text(command + "\n")
    return open_session(SessionRequest(folder / "run.sh")).run


@pytest.mark.parametrize(
    ("recipe", "method"),
    [
        ("full_finetune_distributed", "sft"),
        ("full_dpo_distributed", "dpo"),
        ("lora_dpo_single_device", "dpo"),
        ("ppo_full_finetune_single_device", "ppo"),
        ("dev/grpo_full_finetune_distributed", "grpo"),
        ("knowledge_distillation_distributed", "distillation"),
    ],
)
def test_the_recipes_name_is_the_method(tmp_path: Path, recipe: str, method: str) -> None:
    run = run_of(tmp_path, f"tune run --nproc_per_node 4 {recipe} --config my.yaml")
    assert (run.framework, run.algorithm) == ("torchtune", method)


def test_what_stands_behind_the_config_wins_over_it(tmp_path: Path) -> None:
    run = run_of(tmp_path, "tune run --nproc_per_node 4 full_finetune_distributed --config my.yaml batch_size=1")
    knobs = {name: knob.value for name, knob in run.knobs.items()}
    assert knobs["actor.micro_batch"] == 1
    assert (knobs["data.total_tokens"], knobs["data.pack_tokens"]) == (4096, 4096)
    assert knobs["actor.full_finetuning"] is True
    assert knobs["actor.zero_stage"] == 3
    assert run.topology.actor_gpus == 4
    assert run.model is not None
    assert round(run.model.parameters / 1e9) == 8


def test_the_builder_says_whether_an_adapter_is_trained_on_a_quantized_base(tmp_path: Path) -> None:
    run = run_of(tmp_path, "tune run lora_finetune_single_device --config my.yaml", "qlora_")
    knobs = {name: knob.value for name, knob in run.knobs.items()}
    assert (knobs["actor.full_finetuning"], knobs["actor.quantized_bits"]) == (False, 4)
    assert (knobs["actor.lora_rank"], knobs["actor.zero_stage"]) == (16, 0)
    assert run.topology.actor_gpus == 1


def test_a_grpo_pass_holds_all_answers_of_its_prompts(tmp_path: Path) -> None:
    command = "tune run --nproc_per_node 8 dev/grpo_full_finetune_distributed --config my.yaml"
    run = run_of(tmp_path, f"{command} batch_size=2 grpo_samples=8 forward_batch_size=1")
    knobs = {name: knob.value for name, knob in run.knobs.items()}
    assert knobs["rollout.samples_per_prompt"] == 8
    assert (knobs["actor.micro_batch"], knobs["logprob.micro_batch"]) == (16, 8)


def test_what_is_added_is_written_as_key_and_value_behind_the_config(tmp_path: Path) -> None:
    run_of(tmp_path, "tune run --nproc_per_node 2 full_finetune_distributed --config my.yaml")
    log = tmp_path / "train.log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "/x/recipes/full_finetune_distributed.py", line 900, in train\n    current_loss.backward()\n'
        '  File "/x/torch/_tensor.py", line 581, in backward\n    torch.autograd.backward(\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.83 GiB. GPU 0 has a total capacity of 39.39 "
        "GiB of which 1.10 GiB is free. Of the allocated memory 36.01 GiB is allocated by PyTorch\n"
    )
    state = open_session(SessionRequest(tmp_path / "run.sh", logs=(log,), gpus="2xA100-40GB", host_ram="1000GB"))
    (rewrite,) = patch(state).rewrites
    assert b"--config my.yaml fsdp_cpu_offload=True" in rewrite.new
    assert b"--fsdp_cpu_offload" not in rewrite.new
