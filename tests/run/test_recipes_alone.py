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
