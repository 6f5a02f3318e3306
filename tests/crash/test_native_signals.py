"""Signals and fatal errors of native code are the failure, by whichever of their names, and are no shortage."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

from .known import judge

STACK = (
    "(RolloutWorker pid=71) Fatal Python error: {error}\n(RolloutWorker pid=71) \n"
    "(RolloutWorker pid=71) Thread 0x00007f1 (most recent call first):\n"
    '(RolloutWorker pid=71)   File "/usr/lib/python3.10/threading.py", line 320 in wait\n'
    "(RolloutWorker pid=71) \n(RolloutWorker pid=71) Current thread 0x00007f2 (most recent call first):\n"
    '(RolloutWorker pid=71)   File "/opt/env/{file}", line 77 in {function}\n'
    '(RolloutWorker pid=71)   File "/opt/env/torch/nn/modules/module.py", line 1739 in _wrapped_call_impl\n'
)


def opened(folder: Path, log: str) -> State:
    (folder / "train.log").write_text(log)
    return open_session(SessionRequest(logs=(folder / "train.log",)))


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        ("run.sh: line 12: 4711 Floating point exception (core dumped) python train.py", "native-crash"),
        ("[node1:279  :0:279] Caught signal 8 (Floating point exception: integer divide by zero)", "native-crash"),
        ("subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGFPE: 8>.", "native-crash"),
        ("  exitcode  : -8 (pid: 4711)", "native-crash"),
        ("Fatal Python error: Illegal instruction", "illegal-instruction"),
        (
            "[8.1] traps: python[27] trap invalid opcode ip:56 sp:7f error:0 in cpu_adam.so[56+1c]",
            "illegal-instruction",
        ),
        ("[node1:279  :0:279] Caught signal 4 (Illegal instruction: illegal operand)", "illegal-instruction"),
        ("Fatal Python error: none_dealloc: deallocating None", "python-fatal"),
        ("[node1:279  :0:279] Caught signal 11 (Segmentation fault: address not mapped)", "segfault"),
    ],
)
def test_a_signal_of_native_code_is_no_shortage_and_has_steps(tmp_path: Path, line: str, signature: str) -> None:
    state = opened(tmp_path, f"step 3 done\n{line}\n")
    assert (state.crash.verdict, state.crash.memory) == ("not_oom", "none")
    assert state.crash.signature.removesuffix("-said") == signature
    assert "name-native-frame" in [step.id for step in state.plan.steps]


@pytest.mark.parametrize(
    "line",
    [
        "Fatal Python error: Aborted",
        "/x/a.sh: line 2: 32117 Aborted                 python3 -c 'import os; os.abort()'",
        "/x/a.sh: line 2: 32117 Aborted                 (core dumped) python3 train.py",
    ],
)
def test_an_abort_alone_says_that_something_failed_and_not_what(line: str) -> None:
    crash = judge(f"{line}\n")
    assert (crash.verdict, crash.signature) == ("unclear", "native-abort-said")


@pytest.mark.parametrize(
    ("file", "function", "first"),
    [
        ("sglang/srt/layers/linear.py", "apply", "newer-cublas"),
        ("vllm/model_executor/layers/vocab_parallel_embedding.py", "apply", "newer-cublas"),
        ("mylib/tokenizer.py", "encode", "matching-builds"),
    ],
)
def test_the_thread_that_failed_tells_whether_a_matrix_product_did(
    tmp_path: Path, file: str, function: str, first: str
) -> None:
    state = opened(tmp_path, STACK.format(error="Floating point exception", file=file, function=function))
    assert [frame.function for frame in state.crash.frames] == ["_wrapped_call_impl", function]
    assert state.plan.steps[0].id == first


@pytest.mark.parametrize(
    "line",
    [
        "WARNING:torch.distributed.elastic.agent.server.api:Received 1 death signal, shutting down workers\n",
        "W0616 00:37:22.830000 40 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGHUP death "
        "signal, shutting down workers\n",
        "torch.distributed.elastic.multiprocessing.api.SignalException: Process 2920830 got signal: 1\n",
    ],
)
def test_a_terminal_that_went_away_is_no_shortage(line):
    crash = judge(line)
    assert (crash.verdict, crash.memory, crash.signature) == ("not_oom", "none", "sighup")


def test_a_shortage_before_the_terminal_went_away_stays_one():
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert judge(oom + "Sending process 85005 closing signal SIGHUP\n").verdict == "oom"
