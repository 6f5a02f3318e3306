"""Where no setting limits the rows, no sum is told as one at the cap, and the limit is the first step."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

SWIFT = """\
NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type lora --dataset my.jsonl --output_dir out \\
  --per_device_train_batch_size 2 --gradient_checkpointing true --torch_dtype bfloat16 {length}
"""


def opened(folder: Path, length: str) -> State:
    script = folder / "run.sh"
    script.write_text(SWIFT.format(length=length))
    answers = {"memory": "gpu", "first_step": "no"}
    return open_session(SessionRequest(script, gpus="4xA100-40GB", answers=answers))


@pytest.mark.parametrize("length", ["", "--max_length -1", "--max_length 0"])
def test_nothing_and_minus_one_are_no_limit(tmp_path: Path, length: str) -> None:
    state = opened(tmp_path, length)
    first = state.plan.steps[0]
    assert state.run.unlimited_rows
    assert (first.id, first.changes[0].key, first.changes[0].new) == ("shorten-sequences", "--max_length", "2048")
    (way,) = [one for one in state.diagnosis.remarks if "which no setting limits" in one]
    tokens = int(way.partition("rows of ")[2].partition(" ")[0].replace(",", ""))
    assert 2048 < tokens < 32768


def test_a_stated_length_is_one(tmp_path: Path) -> None:
    state = opened(tmp_path, "--max_length 4096")
    assert not state.run.unlimited_rows
    assert not any("which no setting limits" in one for one in state.diagnosis.remarks)
