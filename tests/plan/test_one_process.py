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


@pytest.mark.parametrize(
    ("launcher", "gpus", "told"),
    [
        ("torchrun", "4xA100-80GB", True),
        ("torchrun --master_port 29501", "4xA100-80GB", True),
        ("python -m torch.distributed.launch", "4xA100-80GB", True),
        ("torchrun", "1xA100-80GB", False),
        ("torchrun --nproc-per-node gpu", "4xA100-80GB", False),
        ("torchrun $DIST", "4xA100-80GB", False),
        ("PET_NPROC_PER_NODE=4 torchrun", "4xA100-80GB", False),
        ("srun torchrun", "4xA100-80GB", False),
        ("accelerate launch", "4xA100-80GB", False),
    ],
)
@pytest.mark.parametrize("program", ["", "-m verl.trainer.fsdp_sft_trainer", "own/train_it.py"])
def test_torchrun_without_a_number_starts_one_process_and_that_is_told_first(
    tmp_path: Path, launcher: str, gpus: str, told: bool, program: str
) -> None:
    options = "model.partial_pretrain=Qwen/Qwen2.5-14B-Instruct data.max_length=1024" if "verl" in program else "--lr 1"
    script = tmp_path / "run.sh"
    script.write_text(f"{launcher} {program} {options}\n" if program else f"{launcher} {OPTIONS}")
    asked = SessionRequest(script, gpus=gpus, answers={"memory": "gpu", "phase": "actor_update"})
    state = open_session(asked)
    said = [note for note in state.run.told_first if "starts one process" in note]
    assert bool(said) is told
    if told:
        assert "3 of the 4 cards stay idle" in said[0]
        assert state.run.topology.actor_gpus == 1
        assert "process-per-card" in [step.id for step in state.plan.steps[:2]]


def test_a_log_that_counts_one_process_leaves_the_other_cards_idle(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "All distributed processes registered. Starting with 1 processes\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.60 GiB.\n"
    )
    boxes = ("8xA100-80GB", "A100-80GB")
    several, one = (open_session(SessionRequest(None, (log,), gpus=gpus, model="Llama-2-70b")) for gpus in boxes)
    assert several.plan.steps[0].id == "process-per-card"
    assert any("each card needs one of its own" in remark for remark in several.diagnosis.remarks)
    assert "process-per-card" not in [step.id for step in one.plan.steps]


def test_what_shards_over_one_process_shares_with_nobody_and_adam_in_8_bits_is_left(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f'torchrun --nproc_per_node=1 {OPTIONS.rstrip()} --fsdp "full_shard auto_wrap"\n')
    state = open_session(SessionRequest(script, gpus="1xA100-80GB", answers={"memory": "gpu"}))
    assert any("fsdp has nobody to share" in remark for remark in state.diagnosis.remarks)
    assert "optimizer-8bit" in [step.id for step in state.plan.steps]


def test_a_log_of_more_ranks_than_the_launch_starts_is_believed(tmp_path: Path) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text(f"torchrun {OPTIONS}")
    log.write_text("Num processes: 4\ntorch.OutOfMemoryError: CUDA out of memory.\n")
    state = open_session(SessionRequest(script, (log,), gpus="4xA100-80GB", answers={"phase": "actor_update"}))
    assert not any("starts one process" in note for note in state.run.told_first)
