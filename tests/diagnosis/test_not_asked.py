# ruff: noqa: E501  (log lines as they are printed)
"""What log, launch or an answer settles is not asked, and branches that cannot be are not offered."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.phrases import verdict
from advisor.session import SessionRequest, State, open_session

FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 79.15 GiB of which 0.10 GiB is free. {others}"
    "Including non-PyTorch memory, this process has {mine} GiB memory in use. Of the allocated memory {mine} GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.\n"
)
FORWARD = (
    'Traceback (most recent call last):\n  File "/w/policy.py", line 80, in compute\n    out = self.net(x)\n'
    '  File "/opt/torch/nn/modules/linear.py", line 125, in forward\n    return F.linear(input, self.weight, self.bias)\n'
)
KILLED = "[launch.py:325:sigkill_handler] exits with return code = -9\n"


def opened(folder: Path, log: str = "", launch: str = "", gpus: str = "8xA100-80GB", **answers: str) -> State:
    (folder / "train.log").write_text(log)
    (folder / "run.sh").write_text(launch)
    script, logs = (folder / "run.sh" if launch else None), ((folder / "train.log",) if log else ())
    return open_session(SessionRequest(script=script, logs=logs, gpus=gpus, answers=answers))


def offered(state: State, question: str) -> set[str]:
    return {choice.id for step in state.diagnosis.path if step.question == question for choice in step.choices}


TRL = "accelerate launch --num_processes 4 grpo.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct --num_generations 8 --per_device_train_batch_size 4 --bf16 {}\n"


@pytest.mark.parametrize(("more", "engine"), [("--beta 0.1", False), ("--use_vllm --vllm_mode colocate", True)])
def test_a_launch_without_an_engine_is_asked_about_none(tmp_path: Path, more: str, engine: bool) -> None:
    state = opened(tmp_path, launch=TRL.format(more), memory="gpu", framework="trl")
    assert ("rollout_init" in offered(state, "phase"), "weight_sync" in offered(state, "phase")) == (engine, engine)


def test_a_framework_that_has_no_engine_is_asked_about_none(tmp_path: Path) -> None:
    state = opened(tmp_path, FULL.format(tried="16.00 MiB", others="", mine=78.5), framework="deepspeed-chat")
    assert offered(state, "phase") & {"rollout_init", "weight_sync"} == set()


def test_frames_of_a_pass_are_neither_loading_nor_the_engine_s_start_nor_a_save(tmp_path: Path) -> None:
    state = opened(tmp_path, FORWARD + FULL.format(tried="538.00 MiB", others="", mine=78.5))
    phases = offered(state, "phase")
    assert phases
    assert not phases & {"model_load", "rollout_init", "weight_sync", "optimizer_step", "checkpoint"}


def test_small_processes_beside_this_one_are_no_ranks_that_loaded(tmp_path: Path) -> None:
    others = "".join(f"Process {n} has 398.00 MiB memory in use. " for n in (11, 12, 13))
    state = opened(tmp_path, FULL.format(tried="136.00 MiB", others=others, mine=77.0), phase="model_load")
    (step,) = [one for one in state.diagnosis.path if one.question == "ranks"]
    assert (step.answer, step.source) == ("no", "log")


READING = "[utils.py:840:see_memory_usage] CPU Virtual Memory:  used = {used} GB, percent = {percent}%\n"


@pytest.mark.parametrize(("used", "percent", "asked"), [(59.9, 96.1, False), (59.9, 71.2, True), (14.1, 22.6, True)])
def test_ram_that_was_full_needs_no_question_for_a_limit(
    tmp_path: Path, used: float, percent: float, asked: bool
) -> None:
    log = READING.format(used=used, percent=percent) + KILLED
    state = opened(tmp_path, log, memory="host", framework_host="transformers")
    assert ("host_limit" in state.diagnosis.open_questions) is asked


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("step 7 | RAM: 61.0 GB / 62.8 GB (97.1%)", False),
        ("[monitor] CPU memory usage: 96.4%", False),
        ("host_memory_usage=91.2 %", False),
        ("System RAM used: 30.2GB of 62.8GB", True),
        ("GPU memory usage: 97.0%", True),
    ],
)
def test_a_reading_of_any_program_tells_how_full_the_machine_was(tmp_path: Path, line: str, asked: bool) -> None:
    state = opened(tmp_path, line + "\n" + KILLED, memory="host", framework_host="transformers")
    assert ("host_limit" in state.diagnosis.open_questions) is asked


@pytest.mark.parametrize("answer", [{"host_growth": "yes"}, {"host_holder": "preparation"}])
def test_what_grows_or_holds_the_ram_needs_none_either(tmp_path: Path, answer: dict[str, str]) -> None:
    state = opened(tmp_path, KILLED, memory="host", framework_host="transformers", **answer)
    assert "host_limit" not in state.diagnosis.open_questions


@pytest.mark.parametrize(
    ("holder", "cause"),
    [("checkpoint", "save-grows"), ("driver", "object-store"), ("workers", "host-growth")],
)
def test_what_holds_the_ram_is_what_grows_where_it_grows(tmp_path: Path, holder: str, cause: str) -> None:
    state = opened(tmp_path, KILLED, memory="host", framework_host="verl", host_growth="yes", host_holder=holder)
    assert state.diagnosis.cause == cause


def test_an_answered_holder_wins_over_what_the_pool_held(tmp_path: Path) -> None:
    message = FULL.format(tried="4.60 GiB", others="", mine=70.0).replace(
        "120.00 MiB is reserved", "8.40 GiB is reserved"
    )
    assert opened(tmp_path, message).diagnosis.cause == "fragmentation"
    assert opened(tmp_path, message, holder="logits").diagnosis.cause == "logits-too-big"


def test_who_killed_it_is_not_doubted_once_it_is_answered(tmp_path: Path) -> None:
    state = opened(tmp_path, KILLED, seen="logged", killer="kernel")
    assert state.crash.settle_by == ()
    assert "time limits" not in state.crash.unclear_because


@pytest.mark.parametrize(
    ("answers", "starts"),
    [
        ({"ended": "killed"}, "The process was killed"),
        ({"memory": "host", "ended": "killed"}, "Host RAM ran out"),
        ({"seen": "logged", "killer": "kernel"}, "Host RAM ran out"),
    ],
)
def test_a_kill_alone_is_told_as_one(tmp_path: Path, answers: dict[str, str], starts: str) -> None:
    assert verdict(opened(tmp_path, KILLED, **answers)).startswith(starts)


RAY = (
    "(raylet) node_manager.cc:3478: 3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 46d7, IP: 10.7.0.9) "
    "over the last time period. To see more information about the Workers killed on this node, use `ray logs raylet.out -ip 10.7.0.9`\n"
)


def test_ray_s_own_command_is_how_to_find_out_who_held_it(tmp_path: Path) -> None:
    asked = opened(tmp_path, RAY).deciding()
    assert asked is not None
    assert "`ray logs raylet.out -ip 10.7.0.9`" in asked.step.if_unknown


TABLE = "Memory on the node (IP: 10.7.0.9, ID: 46d7) was {used:.2f}GB / 503.54GB (0.95), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: 1).\n"
HEAD = "Top 10 memory users:\nPID\tMEM(GB)\tCOMMAND\n"


def rows(count: int, size: float) -> str:
    return "".join(f"{100 + n}\t{size:.2f}\tray::LLMRayActor\n" for n in range(count))


@pytest.mark.parametrize(
    ("table", "proves"),
    [
        (HEAD + rows(10, 30.0), True),
        (HEAD + rows(4, 90.0), True),
        (HEAD + rows(4, 30.0), False),
        (rows(6, 14.0), False),
        (HEAD + rows(10, 2.0), False),
    ],
    ids=["whole", "cut, most of it", "cut", "tail without its head", "no fair part"],
)
def test_a_tail_of_the_table_proves_no_holder(tmp_path: Path, table: str, proves: bool) -> None:
    state = opened(tmp_path, TABLE.format(used=478.0) + table)
    assert ("host.held_by" in state.situation.facts) is proves
    assert (state.diagnosis.cause == "engine-copies") is proves


def test_that_it_was_the_first_step_is_believed_beside_a_single_mark(tmp_path: Path) -> None:
    log = "step:1 - loss:2.1\n" + FULL.format(tried="2.00 GiB", others="", mine="78.90")
    told = opened(tmp_path, log, memory="gpu", framework="trl", phase="actor_update", first_step="yes")
    assert told.situation.facts["first_step"].value is True
    assert told.diagnosis.cause != "long-sequence"
    many = opened(tmp_path, log.replace("step:1", "step:9"), memory="gpu", framework="trl", first_step="yes")
    assert many.situation.facts["first_step"].value is False
