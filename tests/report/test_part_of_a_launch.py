"""Of a launch that was given in part nothing is promised: no sums, no change of results, no default that nobody saw."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.told import tell

CUT = """base_model: Qwen/Qwen2.5-14B-Instruct
sequence_len: 8192
micro_batch_size: 4
datasets: [{path: x/y, type: completion}]
"""
WHOLE = CUT + "learning_rate: 0.0002\noutput_dir: out\n"
COMMENTED = """swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset x/y --train_type full \\
  --per_device_train_batch_size 4 \\
  # --target_modules all-linear \\
  --deepspeed zero3 \\
  --max_length 2048
"""


def told(folder: Path, name: str, text: str, capsys: pytest.CaptureFixture[str], *more: str) -> str:
    (folder / name).write_text(text)
    words = ["diagnose", str(folder / name), "--answer", "memory=gpu", *more]
    return " ".join(tell(words, capsys)[1].split())


CARD = ("--gpus", "1xA100-40GB", "--answer", "phase=actor_update")


def test_a_config_without_what_the_framework_demands_was_quoted_in_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part, whole = (told(tmp_path, "run.yaml", text, capsys, *CARD) for text in (CUT, WHOLE))
    assert "does not start without learning_rate" in told(tmp_path, "run.yaml", CUT, capsys, *CARD, "--all")
    assert "GiB, one card" in whole
    assert "GiB, one card" not in part
    assert "With these the cards may suffice" in whole
    assert "With these the cards may suffice" not in part


def test_the_comment_that_ends_a_command_goes_before_anything_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(tmp_path, "run.sh", COMMENTED, capsys, "--gpus", "2xA100-40GB")
    assert "1. Take the comment out of the command first" in text
    assert "Nothing is switched on before the command is whole" in text
    mended = told(tmp_path, "run.sh", COMMENTED.replace("  # --target_modules all-linear \\\n", ""), capsys)
    assert "Take the comment out" not in mended


def test_the_size_of_host_ram_is_not_asked_for_where_nothing_moves_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset x/y --train_type lora --max_length 16384\n"
    text = told(tmp_path, "run.sh", launch, capsys, "--gpus", "1xA100-40GB", "--answer", "phase=actor_update")
    assert "--host-ram" not in text.partition("Change")[2].partition("It rests on")[0]


def test_sharded_states_are_not_counted_for_one_card_where_nobody_knows_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quoted = "stage: rm\nfinetuning_type: full\ndeepspeed: ds_z3.json\nmodel_name_or_path: Qwen2-7B\n"
    text = told(tmp_path, "run.sh", quoted, capsys)
    assert "only on cards with at least" not in text
    assert "the number of GPUs (--gpus" in text


def test_a_sum_at_defaults_that_nobody_could_have_started_is_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quoted = "actor_rollout_ref.model.path=Qwen/Qwen3-235B-A22B\nactor_rollout_ref.actor.strategy=megatron\n"
    text = told(
        tmp_path, "run.sh", quoted, capsys, "--gpus", "8xH100-80GB", "--nodes", "4", "--answer", "framework=verl"
    )
    changes = text.partition("Change")[2].partition("It rests on")[0]
    assert "GiB gpu" not in changes
    assert "the count of" not in text


def test_a_sum_that_no_card_could_hold_is_told_as_one_of_defaults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text(
        "Unsloth - 2x faster free finetuning | Num GPUs = 1\n"
        "Batch size per device = 2 | Gradient Accumulation steps = 4\nNumber of trainable parameters = 41,943,040\n"
        '  File "/x/accelerate/utils/operations.py", line 781, in _convert_to_fp32\n'
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 9.47 GiB. GPU 0 has a total capacity of 14.75 GiB of "
        "which 3.78 GiB is free. Process 2116 has 10.95 GiB memory in use.\n"
    )
    words = ("--log", str(tmp_path / "a.log"), "--gpus", "T4", "--model", "unsloth/llama-3-8b-bnb-4bit")
    text = " ".join(tell(["diagnose", *words, "--answer", "framework=unsloth"], capsys)[1].split())
    assert "these are not the run's" in text
    assert "19,806 tokens in 4 bytes (2 rows of 9,903)" in text
    assert "too much on each card" not in text
