"""A save that fills the card is met by what is saved and where, as far as this run has it."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

FSDP = """\
torchrun --nproc_per_node=4 train.py --model_name_or_path huggyllama/llama-7b --data_path d.json --bf16 True \\
  --output_dir out --num_train_epochs 3 --per_device_train_batch_size 1 --model_max_length 2048 \\
  --fsdp "full_shard auto_wrap" --gradient_checkpointing True
"""
QLORA = """\
python train.py --model_name_or_path huggyllama/llama-30b --lora_r 8 --q_lora True --bf16 True --output_dir out \\
  --num_train_epochs 3 --per_device_train_batch_size 1 --gradient_checkpointing True --model_max_length 2048
"""


def first_steps(folder: Path, launch: str, gpus: str) -> list[str]:
    script = folder / "run.sh"
    script.write_text(launch)
    asked = SessionRequest(script, gpus=gpus, answers={"memory": "gpu", "phase": "checkpoint"})
    return [step.id for step in open_session(asked).plan.steps]


def test_ranks_save_their_own_parts(tmp_path: Path) -> None:
    steps = first_steps(tmp_path, FSDP, "4xA100-40GB")
    assert "save-sharded" in steps[:3]
    assert "merge-apart" not in steps


def test_one_process_has_no_parts_but_adapters_to_save_alone(tmp_path: Path) -> None:
    steps = first_steps(tmp_path, QLORA, "1xA100-80GB")
    assert "merge-apart" in steps[:2]
    assert not {"save-sharded", "smaller-checkpoint", "more-host-ram"}.intersection(steps)
