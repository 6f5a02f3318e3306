"""What computes, and in how many processes: no word of CUDA on a Mac, nor of other ranks where there are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, open_session
from advisor.state import State

CUDA = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
ON_CPU = (
    "alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 322122547 bytes"
)
XLA = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 171798 bytes.\n"
MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 9.48 GiB, other allocations: 480.00 KiB, max allowed: "
    "9.47 GiB). Tried to allocate 256 bytes on shared pool.\n"
)
FORWARD = '  File "/lib/transformers/models/qwen2/modeling_qwen2.py", line 201, in forward\n    x = f(x)\n'


def state_of(folder: Path, log: str, **given: object) -> State:
    (folder / "train.log").write_text(log)
    return open_session(SessionRequest(logs=(folder / "train.log",), **given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("log", "platform", "cause"),
    [
        (MPS, "mps", "one-memory"),
        ("[METAL] Command buffer execution failed: Insufficient Memory (00000008)\n", "mps", "one-memory"),
        (XLA, "jax", "xla-program"),
        (
            f"Traceback (most recent call last):\n{FORWARD}RuntimeError: [enforce fail at {ON_CPU}\n",
            "cpu",
            "one-memory-host",
        ),
        (f"jaxlib.xla_extension loaded\n{CUDA}", "cuda", "batch-or-states"),
    ],
)
def test_what_computes_decides_what_is_told(tmp_path: Path, log: str, platform: str, cause: str) -> None:
    state = state_of(tmp_path, log)
    assert (state.crash.platform, state.diagnosis.cause) == (platform, cause)
    told = short_report(state)
    assert state.plan.steps
    if platform != "cuda":
        assert not [word for word in ("ZeRO", "torch.cuda", "nvidia-smi", "dmesg", "rollout", "CUDA") if word in told]


@pytest.mark.parametrize(
    ("log", "gpus", "processes"),
    [
        ("    simple_launcher(args)\n" + CUDA, None, "one"),
        ("WORLD INFO DICT: {'localhost': [0]}\n" + CUDA, None, "one"),
        ("Num processes: 4\n" + CUDA, None, "several"),
        (CUDA, "1xA100-80GB", "one"),
        (CUDA, "8xA100-80GB", "several"),
        (CUDA, None, "unknown"),
    ],
)
def test_sharding_is_for_several_processes(tmp_path: Path, log: str, gpus: str | None, processes: str) -> None:
    state = state_of(tmp_path, log, gpus=gpus) if gpus else state_of(tmp_path, log)
    assert state.situation is not None
    titles = {one.id: one.title for one in state.situation.remedies}
    assert state.situation.processes == processes
    assert ("higher-zero-stage" in titles) is (processes != "one")
    assert titles.get("higher-zero-stage", "").startswith("With more than one GPU") is (processes == "unknown")
    assert "rollout" not in short_report(state)  # nothing here speaks of one


KILLED = "run.sh: line 142: 33551 Killed: 9 python train.py\n"
HBM = "RuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 129.50M. That was not possible. There are 78.17M free."


@pytest.mark.parametrize(
    ("log", "gpus", "platform", "cause"),
    [
        (KILLED, "mac mini m4", "mps", "one-memory-host"),
        (KILLED, "", "mps", "one-memory-host"),
        (f"{HBM}; (0x0x0_HBM0)\n", "", "tpu", "tpu-program"),
        (XLA, "TPU v3-8", "tpu", "tpu-program"),
        (XLA, "v5litepod-8", "tpu", "tpu-program"),
        (CUDA, "2x Tesla M4", "cuda", "batch-or-states"),
    ],
)
def test_what_the_user_calls_the_machine_decides_too(
    tmp_path: Path, log: str, gpus: str, platform: str, cause: str
) -> None:
    state = state_of(tmp_path, log, gpus=gpus) if gpus else state_of(tmp_path, log)
    assert (state.crash.platform, state.diagnosis.cause) == (platform, cause)
    told = short_report(state)
    assert platform == "cuda" or not [
        word for word in ("dmesg", "cgroup", "DeepSpeed", "Liger", "CUDA") if word in told
    ]


@pytest.mark.parametrize(
    ("launch", "cause"),
    [
        ("bash examples/train/math_tir/train_grpo.sh", "tools-fill-host"),
        ("python -m verl_tool.trainer.main_ppo", "tools-fill-host"),
        ("python -m verl.trainer.main_ppo reward_model.sandbox_fusion.url=http://x", "host-too-small"),
        ("cd /data/sandbox/verl && python -m verl.trainer.main_ppo", "host-too-small"),
    ],
)
def test_what_rollouts_run_beside_the_training_may_hold_the_ram(tmp_path: Path, launch: str, cause: str) -> None:
    (tmp_path / "run.sh").write_text(launch + "\n")
    log = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
    state = state_of(
        tmp_path, log, script=tmp_path / "run.sh", answers={"memory": "host", "first_step": "no", "framework": "verl"}
    )
    assert state.diagnosis.cause == cause
    assert (state.plan.steps[0].id == "fewer-tools-at-once") is (cause == "tools-fill-host")
