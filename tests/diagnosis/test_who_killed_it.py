"""A kill that the log shows is not asked for; who killed is, and before the answer host RAM is a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

KILLED = "['python', '-u', 'main.py', '--local_rank=0'] exits with return code = -9\n"


def opened(folder: Path, **answers: str) -> State:
    file = folder / "train.log"
    file.write_text(KILLED)
    return open_session(SessionRequest(logs=(file,), gpus="8xH100-80GB", answers=answers))


def test_the_log_answers_what_was_seen_and_leaves_open_who_killed(tmp_path: Path) -> None:
    state = opened(tmp_path)
    assert {step.question: step.source for step in state.diagnosis.path}["seen"] == "log"
    asked = state.deciding()
    assert asked is not None
    assert asked.step.question == "killer"
    assert {outcome.cause.memory for outcome in asked.outcomes} == {"host", "none"}
    assert (state.crash.verdict, state.crash.memory) == ("unclear", "unknown")
    assert (state.diagnosis.memory, state.plan.steps[0].id) == ("host", "ask-who-killed")
    assert not state.plan.selected()
    text = short_report(state)
    assert "That host RAM was short is likely; nothing here proves it." in " ".join(text.split())
    assert "dmesg" in text


@pytest.mark.parametrize(("killer", "memory"), [("kernel", "host"), ("other", "none")])
def test_the_answer_tells_host_ram_from_no_shortage(tmp_path: Path, killer: str, memory: str) -> None:
    assert opened(tmp_path, killer=killer).diagnosis.memory == memory


READING = (
    "[INFO] [utils.py:781:see_memory_usage] Before initializing optimizer states\n"
    "[INFO] [utils.py:789:see_memory_usage] CPU Virtual Memory:  used = 171.33 GB, percent = 68.1%\n"
)
SHARDS = "Loading checkpoint shards:  50%|#####     | 2/4 [01:12<01:12, 36.1s/it]\n"
LAUNCH = (
    "deepspeed --num_gpus 8 -m openrlhf.cli.train_sft --pretrain Qwen/Qwen2.5-7B --zero_stage 3 --adam_offload --bf16\n"
)


@pytest.mark.parametrize(("before", "cause"), [(SHARDS, "loading-per-rank"), (READING, "offload-fills-host")])
def test_once_deepspeed_measures_the_weights_are_there_and_no_copy_of_loading_is_blamed(
    tmp_path: Path, before: str, cause: str
) -> None:
    log, script = tmp_path / "train.log", tmp_path / "run.sh"
    log.write_text(before + KILLED)
    script.write_text(LAUNCH)
    asked = SessionRequest(script=script, logs=(log,), gpus="8xH100-80GB", answers={"killer": "kernel"})
    assert open_session(asked).diagnosis.cause == cause


def test_a_bare_bus_error_leaves_open_whether_shared_memory_was_full(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(KILLED.replace("-9", "-7"))
    state = open_session(SessionRequest(logs=(log,)))
    asked = state.deciding()
    assert state.crash.verdict == "unclear"
    assert asked is not None
    assert asked.step.question == "shm_holder"
    assert "bus-error-with-room" in {outcome.cause.id for outcome in asked.outcomes}


def test_where_a_library_raised_its_own_error_no_kill_is_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n")
    seen = next(step for step in open_session(SessionRequest(logs=(log,))).diagnosis.path if step.question == "seen")
    assert {choice.id for choice in seen.choices} == {"raised", "other"}


@pytest.mark.parametrize(("percent", "said"), [(68.1, False), (90.5, True)])
def test_nearly_full_ram_before_a_kill_is_told_first_though_it_proves_nothing(
    tmp_path: Path, percent: float, said: bool
) -> None:
    log = tmp_path / "train.log"
    log.write_text(READING.replace("68.1", str(percent)) + KILLED)
    diagnosis = open_session(SessionRequest(logs=(log,))).diagnosis
    assert (f"{percent}% of the machine's RAM" in diagnosis.remarks[0]) is said
