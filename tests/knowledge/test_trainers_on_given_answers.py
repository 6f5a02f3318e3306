"""LLaMA-Factory, axolotl and SkyRL: told by options, YAML files and logs, and no engine where none runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.run.dialect import era_of
from advisor.run.run import Run
from advisor.session import SessionRequest, open_session
from tests.loops import each

FACTORY = """model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: {stage}
do_train: true
finetuning_type: {tuning}
deepspeed: examples/deepspeed/ds_z3_offload_config.json
dataset: alpaca
template: qwen
cutoff_len: 4096
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
"""
AXOLOTL = """base_model: Qwen/Qwen2.5-7B-Instruct
adapter: qlora
load_in_4bit: true
lora_r: 32
lora_target_linear: true
sequence_len: 8192
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
gradient_checkpointing: true
bf16: auto
"""


def run_of(text: str, file: Path, gpus: str | None = None) -> Run:
    file.write_text(text)
    return open_session(SessionRequest(file, gpus=gpus, planned=False)).run


@pytest.mark.parametrize("stage", ["pt", "sft", "rm", "dpo", "kto"])
def test_the_stage_of_a_yaml_file_is_the_method_and_no_engine_is_said_to_run(stage: str, tmp_path: Path) -> None:
    run = run_of(FACTORY.format(stage=stage, tuning="full"), tmp_path / "x.yaml", gpus="8xA100-80GB")
    assert (run.framework, run.algorithm) == ("llamafactory", stage)
    assert not run.is_on("rollout.colocated")
    assert run.number("data.total_tokens") == 4096
    assert run.number("actor.micro_batch") == 2


def test_a_deepspeed_file_is_known_by_its_name_where_it_is_not_there(tmp_path: Path) -> None:
    run = run_of(FACTORY.format(stage="sft", tuning="full"), tmp_path / "x.yaml")
    assert (run.number("actor.zero_stage"), run.is_on("actor.optimizer_offload")) == (3, True)


@pytest.mark.parametrize("by", ["x.yaml", "run.sh"])
def test_a_deepspeed_file_that_a_yaml_file_names_is_followed(by: str, tmp_path: Path) -> None:
    (tmp_path / "examples" / "deepspeed").mkdir(parents=True)
    file = tmp_path / "examples" / "deepspeed" / "ds_z3_offload_config.json"
    file.write_text('{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}}')
    yaml = tmp_path / "x.yaml"
    yaml.write_text(FACTORY.format(stage="sft", tuning="full"))
    if by == "run.sh":
        (tmp_path / by).write_text("FORCE_TORCHRUN=1 llamafactory-cli train x.yaml\n")
    run = open_session(SessionRequest(tmp_path / by, planned=False)).run
    assert (run.number("actor.zero_stage"), run.is_on("actor.optimizer_offload")) == (2, False)


@pytest.mark.parametrize(
    ("command", "era"),
    [
        ("llamafactory-cli train --stage dpo --pref_loss sigmoid", "v0.9.3"),
        ("python src/train.py --stage dpo --image_resolution 512", "v0.9.1"),
        ("deepspeed --num_gpus 4 src/train_bash.py --stage dpo --dpo_beta 0.1", "v0.7"),
    ],
)
def test_commands_of_every_time_are_recognised(command: str, era: str, tmp_path: Path) -> None:
    text = f"{command} --model_name_or_path Qwen/Qwen2.5-7B --finetuning_type lora --cutoff_len 1024 --bf16\n"
    run = run_of(text, tmp_path / "run.sh", gpus="4xA100-80GB")
    assert (run.framework, run.algorithm, run.era) == ("llamafactory", "dpo", era)
    assert run.value("actor.full_finetuning") is False
    assert not run.is_on("reference.present")  # the base under the adapter is the reference


def test_full_preference_training_has_a_reference_and_orpo_none(tmp_path: Path) -> None:
    text = FACTORY.format(stage="dpo", tuning="full")
    assert run_of(text, tmp_path / "x.yaml").is_on("reference.present")
    assert not run_of(text + "pref_loss: orpo\n", tmp_path / "y.yaml").is_on("reference.present")


def test_the_fused_loss_serves_only_the_stages_that_can_use_it(tmp_path: Path) -> None:
    for stage, fused in (("sft", True), ("dpo", False)):
        run = run_of(FACTORY.format(stage=stage, tuning="lora") + "enable_liger_kernel: true\n", tmp_path / "x.yaml")
        assert run.is_on("actor.fused_loss") is fused
        assert run.is_on("actor.fused_layers")


def test_ppo_generates_with_its_own_model_and_a_value_head(tmp_path: Path) -> None:
    run = run_of(FACTORY.format(stage="ppo", tuning="lora"), tmp_path / "x.yaml", gpus="8xA100-80GB")
    assert (run.algorithm, run.value("rollout.engine")) == ("ppo", "hf")
    assert not run.is_on("critic.present")


@pytest.mark.parametrize(
    ("rl", "method"), [("", "sft"), ("rl: dpo\n", "dpo"), ("rl: simpo\n", "cpo"), ("rl: kto\n", "kto")]
)
def test_axolotls_rl_is_the_method(rl: str, method: str, tmp_path: Path) -> None:
    run = run_of(AXOLOTL + rl, tmp_path / "x.yml", gpus="2xA100-80GB")
    assert (run.framework, run.algorithm) == ("axolotl", method)
    assert (run.number("actor.quantized_bits"), run.number("actor.lora_rank")) == (4, 32)
    assert not run.is_on("rollout.colocated")


def test_older_axolotl_writes_dpo_as_true(tmp_path: Path) -> None:
    assert run_of(AXOLOTL + "rl: true\n", tmp_path / "x.yml").algorithm == "dpo"


def test_the_workflow_in_a_traceback_tells_the_method(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "Traceback (most recent call last):\n"
        '  File "/app/src/llmtuner/train/rm/workflow.py", line 38, in run_rm\n    trainer = PairwiseTrainer(\n'
        "torch.cuda.OutOfMemoryError: CUDA out of memory.\n"
    )
    assert open_session(SessionRequest(None, (log,))).run.algorithm == "rm"


@pytest.mark.parametrize(
    ("program", "share", "era"),
    [
        ("skyrl.train.entrypoints.main_base", "generator.inference_engine.gpu_memory_utilization", "v0.3"),
        ("skyrl_train.entrypoints.main_base", "generator.gpu_memory_utilization", "train-v0.4"),
    ],
)
def test_both_of_skyrls_option_trees_are_read(program: str, share: str, era: str, tmp_path: Path) -> None:
    text = (
        f"uv run --isolated --extra fsdp -m {program} trainer.policy.model.path=Qwen/Qwen2.5-7B {share}=0.55 "
        "trainer.placement.policy_num_gpus_per_node=4 trainer.micro_train_batch_size_per_gpu=4\n"
    )
    run = run_of(text, tmp_path / "run.sh", gpus="4xA100-80GB")
    assert (run.framework, run.era, run.algorithm) == ("skyrl", era, "grpo")
    assert (run.number("rollout.memory_share"), run.topology.actor_gpus) == (0.55, 4)


@each(
    ("version", "keys", "era"),
    [
        ("0.1.0", set(), "v0.1"),
        ("0.2.0", {"generator.inference_engine.num_engines"}, "v0.1"),
        ("0.3.0", {"generator.inference_engine.num_engines"}, "v0.3"),
        (None, {"generator.inference_engine.num_engines", "trainer.use_sample_packing"}, "v0.1"),
        (None, {"generator.inference_engine.num_engines", "trainer.remove_microbatch_padding"}, "v0.3"),
        (None, {"generator.num_inference_engines", "trainer.use_sample_packing"}, "train-v0.4"),
    ],
)
def test_the_releases_of_skyrl_are_told_by_their_own_numbers(version: str | None, keys: set[str], era: str) -> None:
    (skyrl,) = (one for one in load_knowledge().frameworks if one.framework == "skyrl")
    assert era_of(skyrl, version, keys) == era


def test_axolotls_packed_rows_are_as_long_as_their_cap(tmp_path: Path) -> None:
    (tmp_path / "x.yml").write_text(AXOLOTL)
    run = run_of("accelerate launch -m axolotl.cli.train x.yml\n", tmp_path / "run.sh", gpus="2xA100-80GB")
    assert (run.framework, run.number("data.pack_tokens"), run.value("actor.full_finetuning")) == (
        "axolotl",
        8192,
        False,
    )


@pytest.mark.parametrize(
    ("line", "framework"),
    [
        ('  File "/app/src/llamafactory/train/dpo/trainer.py", line 183, in concatenated_forward', "llamafactory"),
        ('  File "/app/src/llmtuner/train/sft/workflow.py", line 3, in run_sft', "llamafactory"),
        ('  File "/workspace/axolotl/src/axolotl/cli/train.py", line 59, in <module>', "axolotl"),
    ],
)
def test_a_traceback_alone_tells_the_framework(line: str, framework: str, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(f"Traceback (most recent call last):\n{line}\ntorch.OutOfMemoryError: CUDA out of memory.\n")
    assert open_session(SessionRequest(None, (log,))).run.framework == framework
