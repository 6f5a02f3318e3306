"""Errno 28 without a path: /dev/shm or a disk, which one look tells; nothing else is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.phrases import verdict
from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

FULL = "OSError: [Errno 28] No space left on device\n"


def opened(folder: Path, **answers: str) -> State:
    file = folder / "train.log"
    file.write_text(FULL)
    return open_session(SessionRequest(logs=(file,), gpus="8xH100-80GB", answers=answers))


def test_the_place_is_asked_for_and_a_step_is_told_for_shared_memory(tmp_path: Path) -> None:
    state = opened(tmp_path)
    asked = state.deciding()
    assert asked is not None
    assert asked.step.question == "full_place"
    assert {outcome.cause.memory for outcome in asked.outcomes} == {"shm", "none"}
    assert [step.id for step in state.plan.steps if step.only_if][:1] == ["raise-shm"]
    assert "disk → A disk is full; look at: The frame that wrote" in " ".join(short_report(state).split())


@pytest.mark.parametrize(("place", "memory", "first"), [("disk", "none", "free-disk"), ("shm", "shm", "raise-shm")])
def test_the_answer_gives_the_steps_of_that_place(tmp_path: Path, place: str, memory: str, first: str) -> None:
    state = opened(tmp_path, full_place=place)
    assert state.diagnosis.memory == memory
    assert state.plan.steps[0].id == first


@pytest.mark.parametrize(
    ("frame", "first"),
    [
        ("/env/datasets/arrow_dataset.py|_map_single|writer.write(example)", "move-caches"),
        ("/env/huggingface_hub/file_download.py|http_get|temp_file.write(chunk)", "move-caches"),
        ("/env/safetensors/torch.py|save_file|serialize_file(_flatten(tensors), filename)", "fewer-checkpoints"),
        ("/env/torch/serialization.py|_save|zip_file.write_record(name, storage)", "fewer-checkpoints"),
        ("/env/ray/_private/external_storage.py|spill_objects|f.write(payload)", "move-ray-folder"),
    ],
)
def test_frames_that_write_files_name_the_disk_and_what_it_was_written_with(
    tmp_path: Path, frame: str, first: str
) -> None:
    file, function, text = frame.split("|")
    above = f'Traceback (most recent call last):\n  File "{file}", line 88, in {function}\n    {text}\n'
    (tmp_path / "train.log").write_text(above + FULL)
    state = open_session(SessionRequest(logs=(tmp_path / "train.log",)))
    assert (state.crash.verdict, state.diagnosis.cause, first in {s.id for s in state.plan.steps[:2]}) == (
        "not_oom",
        "disk-full",
        True,
    )


def test_a_data_loader_in_a_trainer_s_frames_still_asks_for_the_place(tmp_path: Path) -> None:
    above = (
        'Traceback (most recent call last):\n  File "/env/transformers/trainer.py", line 88, in train\n    x()\n'
        '  File "/env/torch/multiprocessing/reductions.py", line 3, in reduce_storage\n    fd, size = y()\n'
    )
    (tmp_path / "train.log").write_text(above + FULL)
    state = open_session(SessionRequest(logs=(tmp_path / "train.log",)))
    assert state.crash.verdict == "unclear"


RAY = (
    "(raylet) [2025-05-02 E 12 29] file_system_monitor.cc:116: /scratch/ray/session_2025-05-01_09 is over 95% full, "
    "available space: 88.1 GB; capacity: 3.5 TB. Object creat\n"
)


@pytest.mark.parametrize(
    "answers", [{"full_place": "disk"}, {"memory": "none"}, {"memory": "none", "full_place": "disk"}]
)
def test_ray_s_line_of_a_nearly_full_disk_has_ray_s_steps(tmp_path: Path, answers: dict[str, str]) -> None:
    (tmp_path / "train.log").write_text(RAY)
    state = open_session(SessionRequest(logs=(tmp_path / "train.log",), answers={"memory": "none", **answers}))
    assert state.diagnosis.cause == "disk-full"
    assert state.plan.steps[0].id == "move-ray-folder"
    assert verdict(state).startswith("No memory was short.")


@pytest.mark.parametrize("framework", ["trl", "verl", "openrlhf", "easyr1", "llamafactory"])
def test_fewer_checkpoints_name_the_framework_s_key(tmp_path: Path, framework: str) -> None:
    keys = {
        "trl": "save_total_limit",
        "verl": "trainer.max_actor_ckpt_to_keep",
        "openrlhf": "max_ckpt_num",
        "easyr1": "trainer.save_limit",
        "llamafactory": "save_total_limit",
    }
    (tmp_path / "train.log").write_text("OSError: [Errno 28] No space left on device: '/d/ckpt/global_step_9/m.pt'\n")
    state = open_session(SessionRequest(logs=(tmp_path / "train.log",), answers={"framework": framework}))
    assert f"({keys[framework]})" in state.plan.steps[1].title
