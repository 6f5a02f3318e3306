"""Cards that only a log names: counted where it counts them, at least so many where it names one by its number."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.phrases import machine_line
from advisor.session import SessionRequest, open_session

OOM = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU {index}; 39.59 GiB total "
    "capacity; 35.54 GiB already allocated; 276.19 MiB free; 37.22 GiB reserved in total by PyTorch)\n"
)


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (OOM.format(index=0), "GPU in the log (39.59 GiB), number not known"),
        (OOM.format(index=1), "at least 2 × GPU in the log (39.59 GiB)"),
        ("[rank7]: Traceback\n" + OOM.format(index=3), "at least 8 × GPU in the log (39.59 GiB)"),
        ("[rank31]: Traceback\n" + OOM.format(index=3), "at least 4 × GPU in the log (39.59 GiB)"),
        ("Num processes: 4\n" + OOM.format(index=1), "4 × GPU in the log (39.59 GiB)"),
    ],
)
def test_a_log_names_as_many_cards_as_it_shows(tmp_path: Path, log: str, said: str) -> None:
    (tmp_path / "train.log").write_text(log)
    state = open_session(SessionRequest(logs=(tmp_path / "train.log",), planned=False))
    assert machine_line(state.machine, state.run.topology) == said


@pytest.mark.parametrize("framework", ["trl", "llamafactory", "transformers", "verl-sft", "ms-swift"])
def test_of_the_cards_that_are_named_those_train_that_the_log_counts(tmp_path: Path, framework: str) -> None:
    (tmp_path / "train.log").write_text("Num processes: 4\n" + OOM.format(index=1))
    logs, answers = (tmp_path / "train.log",), {"framework": framework}
    topology = open_session(SessionRequest(logs=logs, gpus="8xA100-40GB", answers=answers, planned=False)).run.topology
    assert topology.actor_gpus == 4


@pytest.mark.parametrize("index", [0, 1])
def test_a_log_alone_does_not_say_that_one_process_trains(tmp_path: Path, index: int) -> None:
    (tmp_path / "train.log").write_text(OOM.format(index=index))
    asked = SessionRequest(logs=(tmp_path / "train.log",), gpus="4xA100-40GB", answers={"framework": "trl"})
    state = open_session(asked)
    assert "process-per-card" not in [step.id for step in state.plan.steps]


def test_a_launch_says_how_many_cards_where_the_log_names_one_of_them(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(OOM.format(index=3))
    (tmp_path / "run.sh").write_text("torchrun --nproc_per_node 8 sft.py --output_dir out\n")
    state = open_session(SessionRequest(tmp_path / "run.sh", logs=(tmp_path / "train.log",), planned=False))
    said = "8 GPUs by the script, one of 39.59 GiB by the log"
    assert machine_line(state.machine, state.run.topology) == said
