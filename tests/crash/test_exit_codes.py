"""An exit code is decoded wherever it is printed, and a launcher's line is an end of the run."""

from __future__ import annotations

import pytest

from tests.loops import each

from .known import judge

PRINTED = (
    "['python', '-u', 'a.py'] exits with return code = {0}",
    "E1223 api.py:882] failed (exitcode: {0}) local_rank: 0 (pid: 33) of binary: /opt/python3",
    "  exitcode  : {0} (pid: 33)",
    "subprocess.CalledProcessError: Command 'a.py' returned non-zero exit status {0}.",
)
"""How deepspeed, torchrun and Python print the code of a process that a signal ended."""
SHELL = (
    "a.sh: python exited with code {0}",
    "exit status {0}",
    "command terminated with exit code {0}",
    "Exit code: {0}",
)


@each(
    ("signal", "verdict", "signature"),
    [
        (7, "unclear", "bus-signal"),
        (9, "unclear", ("killed-9", "exit-137")),
        (11, "not_oom", "segfault"),
        (6, "unclear", "native-abort"),
    ],
)
def test_a_signal_is_known_by_its_code(signal: int, verdict: str, signature: str | tuple[str, ...]) -> None:
    negative = [line.format(-signal) for line in PRINTED]
    for line in (*negative, *(line.format(128 + signal) for line in SHELL)):
        crash = judge(f"step 3\n{line}\n")
        assert (crash.verdict, crash.signature in signature) == (verdict, True), line


def test_other_numbers_are_no_signal() -> None:
    for line in ("exit code 1350", "exited with code 13", "exit code: 1390", "accuracy rc=0.139"):
        assert judge(f"{line}\n").signature not in ("bus-signal", "segfault", "native-abort"), line


@pytest.mark.parametrize(
    "line", ["exits with return code = 1", "[launch.py:315:sigkill_handler] Killing subprocess 77"]
)
def test_a_launcher_that_ends_the_rest_is_the_end_of_a_run(line: str) -> None:
    crash = judge(f"Loading extension module fused_adam...\n{line}\n")
    assert (crash.verdict, crash.signature) == ("unclear", "launcher-ended")


def test_what_failed_above_the_launchers_line_stays_the_cause() -> None:
    log = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\nKilling subprocess 77\n"
    assert judge(log).verdict == "oom"


def test_a_bus_error_is_shared_memory_only_where_a_line_says_so() -> None:
    bare = judge("step 3\na.sh: line 4: 77 Bus error               (core dumped) python tune.py\n")
    assert (bare.verdict, bare.memory, bare.signature) == ("unclear", "unknown", "bus-signal")
    said = "DataLoader: bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
    told = judge(said + "exits with return code = -7\n")
    assert (told.verdict, told.memory) == ("oom", "shm")
