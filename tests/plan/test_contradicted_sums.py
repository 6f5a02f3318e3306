"""Sums that steps of the log refute promise nothing, and what would settle them is asked first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plan.test_failing_line import LOSS, Frame, crashed
from tests.stories.told import tell_both

TRAINER = """from trl import SFTConfig, SFTTrainer
args = SFTConfig(output_dir="out", per_device_train_batch_size=8, max_length=4096, bf16=True)
trainer = SFTTrainer(model="Qwen/Qwen3-8B", args=args, train_dataset=ds)
trainer.train()
"""
UPCAST: Frame = ("transformers/loss/loss_utils.py", "ForCausalLMLoss", "logits = logits.float()")
LOOP: Frame = ("transformers/trainer.py", "_inner_training_loop", "tr_loss_step = self.training_step(model, inputs)")


def answered(
    folder: Path, capsys: pytest.CaptureFixture[str], steps: int, *more: str, launch: str = "accelerate launch"
) -> tuple[dict[str, Any], str]:
    (folder / "run.py").write_text(TRAINER)
    (folder / "run.sh").write_text(f"{launch} --num_processes 2 run.py\n")
    bar = f"  2%|▏         | {steps}/600 [00:44<35:01,  3.57s/it]"  # ends without a line break, as tqdm's bars do
    (folder / "train.log").write_text(crashed([LOOP, LOSS, UPCAST], 18.55, bar))
    words = ["diagnose", str(folder / "run.sh"), "--log", str(folder / "train.log"), "--gpus", "2xA100-80GB", *more]
    told, text, _ = tell_both(words, capsys)
    return told, " ".join(text.split())


def test_steps_that_could_not_have_been_leave_the_fit_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, text = answered(tmp_path, capsys, 12)
    assert answer["outcome"]["fit"]["verdict"] == "cannot_be_said"
    assert answer["outcome"]["fit"]["reason"] == "contradicted"
    chosen = [step for step in answer["plan"] if step["selected"]]
    assert [step["id"] for step in chosen] == ["lower-actor-micro-batch"]  # it helps whatever the sums
    assert not chosen[0]["saves_bytes"]
    assert "First: How does ~/.cache/huggingface/accelerate/default_config.yaml shard the training states?" in text


def test_the_first_step_contradicts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, text = answered(tmp_path, capsys, 0)
    assert answer["outcome"]["fit"]["reason"] != "contradicted"
    assert "First: How does" not in text


def test_the_answer_settles_the_sums(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, text = answered(tmp_path, capsys, 12, "--answer", "sharding=zero3_offload")
    assert answer["outcome"]["fit"]["reason"] != "contradicted"
    assert "First: How does" not in text


def test_a_launch_that_says_how_it_shards_is_not_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = answered(tmp_path, capsys, 12, launch="accelerate launch --multi_gpu")
    assert "First: How does" not in text


def test_the_number_goes_down_until_even_the_sums_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer, text = answered(tmp_path, capsys, 12)
    step = next(step for step in answer["plan"] if step["selected"])
    assert step["changes"][0]["new"] == "1"  # no value is enough: the furthest
    assert step["basis"] == "estimated"
    assert "would take" in text
