"""Ports that are taken and calls that a memory pool got wrong are no shortage of memory."""

from __future__ import annotations

import pytest

from .known import judge


@pytest.mark.parametrize(
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
