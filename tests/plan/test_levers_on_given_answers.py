"""SFT, DPO, KTO and reward models: every lever that their trainers have is a step, under its own key."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, Step
from tests.stories.told import tell

UPDATE = (
    "Traceback (most recent call last):\n"
    '  File "/x/transformers/trainer.py", line 3485, in training_step\n'
    "    self.accelerator.backward(loss)\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.27 GiB. GPU 0 has a total capacity of 79.11 GiB "
    "of which 1.00 GiB is free. Process 1 has 78.00 GiB memory in use. Of the allocated memory 75.00 GiB is allocated "
    "by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
)
PREPARING = (
    "Running tokenizer on dataset (num_proc=64):  12%|█▏        | 24000/200000 [02:11<12:01, 243.71 examples/s]\n"
)
FACTORY = (
    "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: dpo\nfinetuning_type: full\ncutoff_len: 8192\n"
    "deepspeed: examples/deepspeed/ds_z2_config.json\npreprocessing_num_workers: 16\n"
    "per_device_train_batch_size: 2\ngradient_accumulation_steps: 8\nbf16: true\n"
)
AXOLOTL = (
    "base_model: meta-llama/Llama-3.1-8B\ndatasets: [{path: x, type: alpaca}]\nsequence_len: 8192\n"
    "micro_batch_size: 4\ngradient_accumulation_steps: 2\noptimizer: adamw_torch_fused\nbf16: auto\n"
)
TRL = (
    "from transformers import AutoModelForCausalLM\nfrom trl import DPOConfig, DPOTrainer\n"
    'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct")\n'
    "args = DPOConfig(per_device_train_batch_size=4, max_length=2048, max_prompt_length=1024)\n"
    "DPOTrainer(model=model, args=args, train_dataset=data).train()\n"
)
SWIFT = (
    "NPROC_PER_NODE=4 swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-VL-7B-Instruct --train_type full --dataset x "
    "--per_device_train_batch_size 2 --max_length 8192 --deepspeed zero2\n"
)
OPENRLHF = (
    "deepspeed --module openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B-Instruct --micro_train_batch_size 4 "
    "--max_len 8192 --zero_stage 2 --gradient_checkpointing\n"
)


def keys(steps: dict[str, Step]) -> dict[str, str]:
    """Key → new value, of everything that is proposed."""
    return {change["key"].lstrip("-"): change["new"] for step in steps.values() for change in step.get("changes") or ()}


@pytest.mark.parametrize(
    ("script", "name", "wanted"),
    [
        (FACTORY, "x.yaml", {"cutoff_len": "4096", "per_device_train_batch_size": "1", "finetuning_type": "lora"}),
        (
            AXOLOTL,
            "x.yaml",
            {"sequence_len": "4096", "micro_batch_size": "1", "optimizer": "adamw_8bit", "adapter": "lora"},
        ),
        (TRL, "x.py", {"precompute_ref_log_probs": "True", "from_pretrained.torch_dtype": "bfloat16"}),
        (SWIFT, "run.sh", {"train_type": "lora", "per_device_train_batch_size": "1", "deepspeed": "zero3"}),
        (OPENRLHF, "run.sh", {"max_len": "4096", "micro_train_batch_size": "2", "lora_rank": "32", "zero_stage": "3"}),
    ],
)
def test_what_an_expert_would_change_is_among_the_steps(
    script: str, name: str, wanted: dict[str, str], planned: Planned
) -> None:
    proposed = keys(planned(script, UPDATE, "--model", "Qwen2.5-7B-Instruct", name=name))
    assert {key: proposed.get(key) for key in wanted} == wanted


def test_a_method_without_a_policy_is_not_said_to_have_one(
    planned: Planned, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = planned(OPENRLHF, UPDATE, name="run.sh")
    assert steps["lower-actor-micro-batch"]["title"] == "Fewer samples in one pass"
    assert "engine" not in steps["longest-first"]["why"]
    assert "prompts" not in steps["length-filter"]["title"]
    _, out, _ = tell(["diagnose", "run.sh", "--log", "train.log", "--gpus", "8xA100-80GB"], capsys)
    assert "during the training step" in out
    assert "actor" not in out.replace("lower-actor-micro-batch", "")


def test_levers_of_a_method_that_does_not_run_are_not_proposed(planned: Planned) -> None:
    proposed = keys(planned(AXOLOTL, UPDATE, name="x.yaml"))
    assert not {"dpo_padding_free", "precompute_ref_log_probs", "fsdp_config.offload_params", "dp_shard_size"} & {
        *proposed
    }


def test_data_that_is_too_large_to_prepare_wants_fewer_processes(planned: Planned) -> None:
    steps = planned(FACTORY, PREPARING + "Killed\n", name="x.yaml")
    assert keys({"it": steps["fewer-prepare-workers"]}) == {"preprocessing_num_workers": "8"}
    assert not [step for step in steps.values() if step.get("selected")]


@pytest.mark.parametrize(
    ("version", "written"),
    [("0.9.5", "llamafactory-cli train x.yaml cutoff_len=4096\n"), ("0.9.1", "cutoff_len: 4096")],
)
def test_beside_a_file_a_command_gets_what_its_version_reads_there(
    version: str, written: str, planned: Planned, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    planned(FACTORY, UPDATE, name="x.yaml")
    planned("llamafactory-cli train x.yaml\n", UPDATE)
    words = ["fix", "run.sh", "--log", "train.log", "--gpus", "8xA100-80GB", "--lib", f"llamafactory={version}"]
    _, out, _ = tell([*words, "--accept", "shorten-sequences", "-o", "-"], capsys)
    assert written in out
    assert "--cutoff_len" not in out
