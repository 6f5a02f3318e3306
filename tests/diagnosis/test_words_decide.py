"""What a report says in words decides cause and order: versions, kills, limits, a silent end, who ended it."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.00 GiB is free.\n"
)


def opened(folder: Path, text: str, **given: object) -> State:
    (folder / "train.log").write_text(text)
    return open_session(SessionRequest(logs=(folder / "train.log",), **given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "cause", "first"),
    [
        ("Since upgrading trl from 0.14.0 to 0.15.2 my run OOMs.\n" + OOM, "version-changed", "back-to-trl-0.14.0"),
        ("GPU memory goes from 30GB to 79GB over 900 steps.\n" + OOM, "gpu-growth", "let-go-of-tensors"),
        ("CPU memory keeps growing with each step until the job gets killed\n", "host-growth", "ask-who-killed"),
        ("The tokenization step gets killed.\nKilled\n", "data-preparation", "ask-who-killed"),
        (
            "The training process stops without any error while saving the model.\n",
            "checkpoint-in-ram",
            "ask-who-killed",
        ),
        ("DataLoader worker (pid 12) is killed by signal: Killed.\n", "loaders-fill-host", "ask-who-killed"),
        ("DataLoader worker (pid(s) 12) exited unexpectedly\n", "unclear", "ask-how-it-ended"),
        ("The dataloader workers get killed, CPU memory is full.\n", "loaders-fill-host", "less-ahead"),
        ("RAM is full: Ray's object store has spilled 900 GB to disk.\nKilled\n", "object-store", "limit-object-store"),
        ("GPU OOM when fine-tuning the second model in a loop.\n" + OOM, "earlier-model-stays", "process-per-model"),
        (
            "After 17 steps:\nLast error:\nFailed to CUDA calloc async 2432 bytes\n",
            "nccl-beside-pool",
            "leave-room-for-nccl",
        ),
        (
            "Process 1234 got signal: 15\nSignalException: Process 1234 got signal: 15\n",
            "not-memory",
            "who-asked-to-end",
        ),
        ("JobID State\n12.batch CANCELLED by 1001 0:15\n", "not-memory", "more-time"),
        ("CUDA out of memory. Tried to allocate more than 1EB memory.\n", "not-memory", "size-from-elsewhere"),
    ],
)
def test_words_give_the_cause_and_the_first_step(tmp_path: Path, text: str, cause: str, first: str) -> None:
    state = opened(tmp_path, text)
    assert (state.diagnosis.cause, state.plan.steps[0].id) == (cause, first)


def test_copies_that_no_node_has_are_met_while_loading(tmp_path: Path) -> None:
    killed = opened(tmp_path, "exits with return code = -9\n", gpus="8xA100-80GB", model="70B")
    assert killed.diagnosis.cause == "loading-per-rank"
    small = opened(tmp_path, "exits with return code = -9\n", gpus="8xA100-80GB", model="7B")
    assert small.diagnosis.cause == "host-too-small"


def test_a_prompts_length_at_a_step_counts_no_step(tmp_path: Path) -> None:
    assert opened(tmp_path, "Prompt length 2048 at step 3\n" + OOM).crash.steps_done is None
