"""One process for several cards leaves the others without a part of the states: that is told first."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

OPTIONS = """train.py --model_name_or_path huggyllama/llama-7b --data_path d.json --bf16 True --output_dir out \\
  --num_train_epochs 3 --per_device_train_batch_size 1 --gradient_checkpointing True --model_max_length 2048
"""


@pytest.mark.parametrize(
    ("launcher", "gpus", "first"),
    [
        ("python", "4xA100-80GB", True),
        ("python", "1xA100-80GB", False),
        ("torchrun --nproc_per_node=4", "4xA100-80GB", False),
    ],
)
def test_a_process_per_card_comes_first_where_cards_are_idle(
    tmp_path: Path, launcher: str, gpus: str, first: bool
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{launcher} {OPTIONS}")
    asked = SessionRequest(script, gpus=gpus, answers={"memory": "gpu", "phase": "actor_update"})
    steps = [step.id for step in open_session(asked).plan.steps]
    assert ("process-per-card" in steps[:1]) is first
    assert ("process-per-card" in steps) is first
