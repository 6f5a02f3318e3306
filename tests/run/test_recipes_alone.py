"""Config files given by themselves: the trainer is told by their words, its method by what only that method takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.run import Run
from advisor.session import SessionRequest, open_session

SHARED = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\ngradient_checkpointing: true\n"
MIXTURE = "dataset_mixture:\n  datasets:\n    - id: org/data\n"
LENGTHS = "max_length: 2048\nmax_prompt_length: 1024\n"


def run_of(tmp_path: Path, text: str) -> Run:
    config = tmp_path / "config.yaml"
    config.write_text(text)
    return open_session(SessionRequest(config, planned=False)).run


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("dataset_name: org/data\npacking: false\nmax_length: 32768\n", "sft"),
        (MIXTURE + "max_seq_length: 2048\n", "sft"),
        (MIXTURE + "loss_type: sigmoid\nbeta: 0.01\nmax_prompt_length: 512\n", "preference"),
        (LENGTHS + "choose_type: max_min\n", "preference"),
        ("dataset_name: org/data\nloss_type: dr_grpo\nmax_prompt_length: 512\nnum_generations: 8\n", "grpo"),
    ],
)
def test_a_recipe_of_trl_is_known_without_its_command(tmp_path: Path, text: str, method: str) -> None:
    run = run_of(tmp_path, SHARED + text)
    assert (run.framework, run.algorithm) == ("trl", method)


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        # allenai/open-instruct configs/train_configs/sft
        (
            "dataset_mixer:\n  org/data: 1.0\nuse_flash_attn: true\nwith_tracking: true\nmax_seq_length: 4096\n",
            "unknown",
        ),
        (LENGTHS + "stage: dpo\nfinetuning_type: full\ntemplate: qwen\ndataset: a\n", "llamafactory"),
    ],
)
def test_a_config_of_another_trainer_is_not_trls(tmp_path: Path, text: str, framework: str) -> None:
    assert run_of(tmp_path, SHARED + text).framework == framework


def test_llama_factory_on_megatron_is_no_neighbour_with_the_same_words(tmp_path: Path) -> None:
    megatron = "tensor_model_parallel_size: 4\npipeline_model_parallel_size: 2\nsequence_parallel: true\n"
    own = "stage: sft\nfinetuning_type: full\ntemplate: qwen\ndataset: a\ncutoff_len: 4096\n"
    run = run_of(tmp_path, SHARED + own + megatron + "use_distributed_optimizer: true\nbias_activation_fusion: true\n")
    assert (run.framework, run.mechanics.trainer) == ("llamafactory", "megatron")
    assert (run.knobs["actor.tensor_parallel"].value, run.knobs["actor.pipeline_parallel"].value) == (4, 2)


def test_a_configuration_alone_does_not_tell_what_its_launcher_shards(tmp_path: Path) -> None:
    """32B on 8 cards: whole on each it cannot fit, sharded by accelerate's file it may."""
    config = tmp_path / "config.yaml"
    config.write_text(
        "model_name_or_path: Qwen/Qwen2.5-Coder-32B-Instruct\ndataset_name: d\nmax_length: 2048\n"
        "per_device_train_batch_size: 1\ntorch_dtype: bfloat16\ngradient_checkpointing: true\npacking: true\n"
    )
    alone = open_session(SessionRequest(config, gpus="8xH100-80GB"))
    script = tmp_path / "run.sh"
    script.write_text("python -m trl.scripts.sft --config config.yaml\n")
    started = open_session(SessionRequest(script, gpus="8xH100-80GB"))
    assert started.ledger is not None
    ends = [found.ledger.phase("gpu", "actor_update") for found in (alone, started) if found.ledger is not None]
    widest, whole = ends
    assert widest.low < 80 * 2**30 < whole.low
    assert any("the command that starts it" in one for one in alone.ledger.assumed)


def test_nor_does_a_program_of_one_s_own(tmp_path: Path) -> None:
    program = tmp_path / "train_grpo.py"
    program.write_text(
        "from trl import GRPOConfig, GRPOTrainer\n"
        "args = GRPOConfig(output_dir='out', per_device_train_batch_size=8, num_generations=8, bf16=True)\n"
        "trainer = GRPOTrainer(model='Qwen/Qwen2.5-14B-Instruct', reward_funcs=f, args=args, train_dataset=d)\n"
        "trainer.train()\n"
    )
    command = tmp_path / "run.sh"
    command.write_text("accelerate launch --num_processes 8 train_grpo.py\n")
    alone, started = (open_session(SessionRequest(file, gpus="8xH100-80GB")).ledger for file in (program, command))
    assert alone is not None
    assert started is not None
    widest, whole = (found.phase("gpu", "optimizer_step") for found in (alone, started))
    assert widest.low < 80 * 2**30 < whole.low
