"""How many processes train where the launch counts none: never one where machine and launch say that there are many."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.run import Topology
from advisor.session import SessionRequest, open_session

TRL = "train_grpo.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --num_generations 8"
SWIFT = "swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B"
SFT = "openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --zero_stage 3"


def topology(folder: Path, text: str, gpus: str = "8xA100-80GB", name: str = "run.sh") -> Topology:
    (folder / name).write_text(text + "\n")
    return open_session(SessionRequest(script=folder / name, gpus=gpus, planned=False)).run.topology


@pytest.mark.parametrize(
    ("text", "processes", "said"),
    [
        (f"accelerate launch {TRL}", 8, "accelerate is told no number of processes"),
        (f"accelerate launch --config_file zero3.yaml {TRL}", 8, "accelerate is told no number of processes"),
        (f"accelerate launch --num_processes 4 {TRL}", 4, ""),
        (f"accelerate launch --gpu_ids 0,1 {TRL}", 2, ""),
        (f"deepspeed {TRL}", 8, "deepspeed is told no number of processes"),
        (f"deepspeed --num_gpus=4 {TRL}", 4, ""),
        (f"deepspeed --include localhost:0,1,2 {TRL}", 3, ""),
        (f"deepspeed --include=localhost:4,5 --module {SFT}", 2, ""),
        (f"deepspeed --hostfile hosts --module {SFT}", 8, "deepspeed is told no number of processes"),
        (f"python -m {SFT}", 8, "zero_stage shares the states among processes"),
        (f"srun --ntasks=8 python {TRL}", 8, "srun is told no number of processes"),
        (f"torchrun --nproc-per-node $N {TRL}", 8, "--nproc-per-node could not be resolved"),
        (f"{SWIFT} --deepspeed zero3", 8, "deepspeed shares the states among processes"),
        (f"NPROC_PER_NODE=4 {SWIFT} --deepspeed zero3", 4, ""),
        (f"CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 {SWIFT}", 2, ""),
        (SWIFT, 1, ""),
        (f"python {TRL}", 1, ""),
    ],
)
def test_processes_are_those_that_the_launch_starts(tmp_path: Path, text: str, processes: int, said: str) -> None:
    found = topology(tmp_path, text)
    assert found.actor_gpus == processes
    assert bool(found.assumed) is bool(said)
    assert said in found.assumed


def test_a_python_file_alone_shows_nothing_of_what_starts_it(tmp_path: Path) -> None:
    text = "from trl import GRPOConfig, GRPOTrainer\nGRPOTrainer('Qwen/Qwen2.5-7B', args=GRPOConfig(num_generations=8))"
    found = topology(tmp_path, text, name="train.py")
    assert found.actor_gpus == 8
    assert "all 8 of the machine are counted" in found.assumed


def test_an_engine_with_cards_of_its_own_leaves_the_others_to_the_training(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(f"accelerate launch {TRL} --use_vllm true\n")
    asked = SessionRequest(script=tmp_path / "run.sh", gpus="8xA100-80GB", libraries=("trl=0.15.2",), planned=False)
    found = open_session(asked).run.topology
    assert (found.actor_gpus, found.rollout_gpus, found.colocated) == (7, 1, False)
