"""TRL without a length has the default of its version, and transformers' own arguments have transformers' defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

SFT = """
from trl import SFTTrainer, SFTConfig
from transformers import TrainingArguments
args = {config}(per_device_train_batch_size=2, output_dir="out")
SFTTrainer(model="Qwen/Qwen2.5-7B", args=args{more})
"""


@pytest.mark.parametrize(
    ("method", "version", "cap"),
    [
        ("sft", "0.24.0", 1024),
        ("sft", "0.14.0", 1024),
        ("dpo", "0.24.0", 1024),
        ("dpo", "0.9.6", 512),
        ("reward", "1.0.0", 1024),
    ],
)
def test_the_cap_is_the_default_of_method_and_version(tmp_path: Path, method: str, version: str, cap: int) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"trl {method} --model_name_or_path Qwen/Qwen2.5-7B\n")
    state = open_session(SessionRequest(script=script, gpus="8xA100-80GB", libraries=(f"trl={version}",)))
    assert state.run.number("data.total_tokens") == cap
    assert state.run.number("actor.micro_batch") == 8  # 1 is the default of TRL 0.14's GRPO alone


@pytest.mark.parametrize(("config", "on"), [("SFTConfig", True), ("TrainingArguments", False)])
def test_the_class_of_the_arguments_decides_their_defaults(tmp_path: Path, config: str, on: bool) -> None:
    script = tmp_path / "train.py"
    script.write_text(SFT.format(config=config, more=""))
    state = open_session(SessionRequest(script=script, gpus="8xA100-80GB", libraries=("trl=0.24.0",)))
    assert state.run.is_on("actor.gradient_checkpointing") is on


def test_an_argument_that_the_trainer_had_dates_the_script(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(SFT.format(config="TrainingArguments", more=", max_seq_length=2048, packing=True"))
    state = open_session(SessionRequest(script=script, gpus="8xA100-80GB"))
    assert state.run.era in ("v0.11", "v0.14")
    assert state.run.number("data.total_tokens") == 2048


def test_a_key_that_the_usual_version_has_too_tells_no_older_one(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("trl grpo --model_name_or_path Qwen/Qwen3-1.7B --use_vllm True --vllm_mode colocate\n")
    state = open_session(SessionRequest(script=script, gpus="1xH100-80GB"))
    assert state.run.is_on("actor.gradient_checkpointing")
    assert not state.run.has_reference
