"""A Python file's config object is given only arguments that it takes."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session
from tests.test_session_following import OOM

TRAIN = """from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", per_device_train_batch_size=8, num_generations=8, max_completion_length=4096)
trainer = GRPOTrainer(model="Qwen/Qwen2.5-7B-Instruct", args=args, reward_funcs=[len])
"""
OPTIONS = {"use_peft", "lora_r", "load_in_4bit", "torch_dtype", "dtype", "attn_implementation", "model_name_or_path"}


def test_an_option_of_the_command_is_not_written_into_a_config_object(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "train.log").write_text(OOM)
    state = open_session(
        SessionRequest(script=tmp_path / "train.py", logs=(tmp_path / "train.log",), gpus="8xH100", host_ram="900G")
    )
    assert state.run.framework == "trl"
    assert state.plan.steps
    assert not OPTIONS & {change.key.lstrip("-") for step in state.plan.steps for change in step.changes}
