"""A run that dies of memory comes back by itself, from its checkpoint, with a script that fits; and knows when not."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from advisor.commands.retry import lost_attempt
from advisor.watch.listing import list_records
from advisor.watch.recording import read_record
from advisor.watch.request import WatchRequest
from tests.watch.made_run import finish, start, steps_in, write_script
from tests.watch.made_verl.verl.trainer.main_ppo import OOM
from tests.watch.sent_events import sent_events

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes of Linux")


def test_it_comes_back_from_its_checkpoint_with_a_script_that_fits(tmp_path: Path) -> None:
    script, token = write_script(tmp_path), "hf_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
    script.write_text(f'export HF_TOKEN={token}\necho "$PWD $MARK" >> where.txt\n{script.read_text()}')
    original = script.read_bytes()
    code, said = finish(tmp_path, "--notify", f"tee -a {tmp_path}/events.txt", MARK="kept")
    assert code == 0, said
    assert "saves every 2 steps to" in said
    assert "resumes by itself" in said
    assert steps_in(tmp_path) == [1, 2, 3, 4, 5, 5, 6]
    assert (tmp_path / "where.txt").read_text() == f"{tmp_path} kept\n" * 2
    assert (tmp_path / "run.sh").read_bytes() == original
    assert (tmp_path / "run.fits-1.md").is_file()
    told = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".sh"]
    assert not [path for path in told if token.encode() in path.read_bytes()]
    assert token in (tmp_path / "run.fits-1.sh").read_text()
    assert token not in said
    attempt = json.loads((tmp_path / "record-2" / "attempt.json").read_text())
    assert attempt["from_step"] == 4
    assert attempt["before"] == str(tmp_path / "record")
    assert attempt["changes"]
    first, second = list_records(tmp_path)
    assert (first.verdict, first.phase, first.after) == ("oom", "actor_update", "")
    assert (second.ended, second.after, second.from_step) == ("ended well", "record", 4)
    events = sent_events(tmp_path / "events.txt")
    named = {event["event"] for event in events}
    assert named == {"start", "phase_peak", "death", "diagnosis", "resumed", "retry", "end"}
    assert {event["attempt"] for event in events if event["event"] != "resumed"} == {1, 2}
    peaks = next(event for event in events if event["event"] == "phase_peak")["peaks"]
    assert all(peak["bytes"] <= peak["capacity"] for peak in peaks)


def test_it_does_not_go_on_for_ever(tmp_path: Path) -> None:
    write_script(tmp_path)
    code, said = finish(tmp_path, MADE_DEATHS="always")
    assert code == 1
    assert "no retry: " in said
    assert len(steps_in(tmp_path)) <= 5 + 3


def test_what_nothing_would_resume_is_not_started_again_unless_it_may_start_from_scratch(tmp_path: Path) -> None:
    write_script(tmp_path, save_freq=-1)
    code, said = finish(tmp_path)
    assert code == 1
    assert "nothing would resume: add trainer.save_freq=20" in said
    assert steps_in(tmp_path) == [1, 2, 3, 4, 5]
    code, said = finish(tmp_path, "--from-scratch")
    assert code == 0, said
    assert steps_in(tmp_path)[5:] == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6]


def test_what_a_person_stopped_stays_stopped(tmp_path: Path) -> None:
    write_script(tmp_path)
    process = start(tmp_path, MADE_SECONDS="30")
    while not (tmp_path / "steps.txt").exists():
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert "no retry: a person stopped it" in said
    assert process.returncode == -signal.SIGTERM
    end = read_record(tmp_path / "record").end
    assert end is not None
    assert end["sent"] == signal.SIGTERM


def test_events_of_a_run_that_is_not_started_again_are_told_too(tmp_path: Path) -> None:
    write_script(tmp_path)
    process = start(tmp_path, "--notify", f"tee -a {tmp_path}/events.txt", retry=False)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert steps_in(tmp_path) == [1, 2, 3, 4, 5]
    events = {event["event"]: event for event in sent_events(tmp_path / "events.txt")}
    assert set(events) == {"start", "phase_peak", "death", "diagnosis", "end"}
    assert (events["diagnosis"]["verdict"], events["diagnosis"]["step"]) == ("oom", 4)
    assert events["death"]["end"] == {"code": 1}
    assert not any("attempt" in event for event in events.values())
    assert events["end"]["record"] == str(tmp_path / "record")


TRAIN = """from trl import SFTConfig, SFTTrainer

args = SFTConfig(
    output_dir="out",
    per_device_train_batch_size=64,
    max_length=4096,
    gradient_checkpointing=False,
)
SFTTrainer(model="Qwen/Qwen2.5-0.5B-Instruct", args=args, train_dataset=[]).train()
"""
MADE_TRL = """class SFTConfig:
    def __init__(self, **given):
        self.given = given

class SFTTrainer:
    def __init__(self, model, args, train_dataset):
        self.given = args.given

    def train(self):
        if self.given["per_device_train_batch_size"] > 32:
            raise OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 448.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which "
                "47.12 MiB is free. Including non-PyTorch memory, this process has 139.75 GiB memory in use. Of the "
                "allocated memory 138.44 GiB is allocated by PyTorch, and 647.53 MiB is reserved by PyTorch but "
                "unallocated.")

class OutOfMemoryError(RuntimeError):
    __module__ = "torch"
"""


def test_a_launch_script_that_starts_the_file_that_changes_starts_its_copy(tmp_path: Path) -> None:
    (tmp_path / "trl.py").write_text(MADE_TRL)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "run.sh").write_text(f"export CUDA_VISIBLE_DEVICES=0\n{sys.executable} train.py\n")
    code, said = finish(tmp_path, "--from-scratch")
    assert code == 0, said
    assert (tmp_path / "run.fits-1.sh").read_text().endswith(" train.fits-1.py\n")
    assert "per_device_train_batch_size=64" not in (tmp_path / "train.fits-1.py").read_text()
    assert (tmp_path / "train.py").read_text() == TRAIN


def test_a_run_whose_watcher_was_killed_with_it_is_taken_up_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the kernel kills a whole container, and a restart policy starts it again."""
    write_script(tmp_path)
    process = start(tmp_path, dies_at=9, MADE_SECONDS="0.3")
    while not (tmp_path / "steps.txt").exists() or len(steps_in(tmp_path)) < 5:
        time.sleep(0.05)
    process.kill()
    os.kill(int((tmp_path / "running.txt").read_text()), signal.SIGKILL)
    process.communicate(timeout=30)
    (tmp_path / "record" / "errors.log").write_text(OOM)
    os.utime(tmp_path / "record" / "ring.bin", (0, 0))  # else it is waited whether somebody writes it
    code, said = finish(tmp_path)
    assert "record: the watcher was killed with the run" in said
    assert code == 0, said
    first, second = list_records(tmp_path)
    assert (first.end, first.verdict, "ran out" in first.ended) == (None, "oom", True)
    assert (second.attempt, second.after) == (2, "record")
    assert steps_in(tmp_path) == [1, 2, 3, 4, 5, 5, 6]
    asked = WatchRequest(("bash", "run.sh"), tmp_path / "record")
    assert lost_attempt(asked) is None  # that one ended
    monkeypatch.chdir(tmp_path)
    samples = tmp_path / "record-2" / "samples.jsonl"
    samples.write_text("".join(line for line in samples.read_text().splitlines(True) if '"end"' not in line))
    os.utime(tmp_path / "record-2" / "ring.bin", (0, 0))
    lost = lost_attempt(asked)
    assert lost is not None
    assert (lost.number, lost.asked.argv[1], len(lost.deaths)) == (2, "run.fits-1.sh", 1)
    assert lost.changes
    assert lost_attempt(asked._replace(argv=("bash", "other.sh"))) is None
    os.utime(tmp_path / "run.fits-1.sh", (time.time() + 60,) * 2)
    assert lost_attempt(asked) is None  # somebody changed it since
