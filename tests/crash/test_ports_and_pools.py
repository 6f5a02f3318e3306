"""Ports that are taken and calls that a memory pool got wrong are no shortage of memory."""

from __future__ import annotations

import pytest

from tests.loops import each

from .known import judge


@each(
    ("line", "signature"),
    [
        ("RuntimeError: The server socket has failed to listen on any local network address. port: 1", "port-in-use"),
        ("[W socket.cpp:426] The server socket has failed to bind to [::]:29500", "port-in-use"),
        ("OSError: [Errno 98] Address already in use", "port-in-use"),
        ("[torch_memory_saver.cpp] CUresult error: 1 (invalid argument) file=a.cpp func=free", "memory-saver-refused"),
        ("[torch_memory_saver.cpp] CUresult error  result=1 file=a.cpp func=resume line=206", "memory-saver-refused"),
    ],
)
def test_it_is_not_memory(line: str, signature: str) -> None:
    crash = judge(line + "\n")
    assert (crash.verdict, crash.signature) == ("not_oom", signature)


def test_the_pools_own_shortage_stays_one() -> None:
    assert judge("[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=a func=resume\n").verdict == "oom"


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: The global train batch size (8 x 1) must be evenly divisible by the number of generations (7).",
        "AssertionError: real_train_batch_size (30) must be divisible by minimal possible batch size (8)",
    ],
)
def test_numbers_that_do_not_divide_are_no_shortage(line: str) -> None:
    assert judge(line + "\n").verdict == "not_oom"


@pytest.mark.parametrize(
    "end", ["Killed: 9  python -m train", "Killed :9 python -m train", "Killed" + " " * 18 + "A=1 python"]
)
def test_the_shells_word_for_a_kill_is_read_with_its_command(end: str) -> None:
    crash = judge(f"./run.sh: line 155 : 1126 {end} " + "--key value " * 60 + "\n")
    assert crash.signature == "bash-killed"
