# ruff: noqa: E501  (log lines as they are printed)
"""Allocators of host memory are known by name in any form, and a person's last words are not "no word"."""

from __future__ import annotations

from tests.crash.known import judge
from tests.loops import each

STEPS = "".join(f"step {number} | loss 1.{number} | lr 1e-6\n" for number in range(1, 6))


@each(
    ("line", "tried"),
    [
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate memory", None),
        ("[rank3]: RuntimeError: DefaultCPUAllocator: Can't allocate memory", None),
        ("defaultcpuallocator: not enough memory: you tried to allocate 4096 bytes. Buy new RAM!", 4096),
        (
            "[enforce fail at CPUAllocator.cpp:64] DefaultCPUAllocator: can't allocate memory: you tried to allocate 12 bytes",
            12,
        ),
        ("[enforce fail at alloc_cpu.cpp:118] err == 0.", None),
        ("pyarrow.lib.ArrowMemoryError: malloc of size 2147483648 failed", 2147483648),
        ("pyarrow.lib.ArrowMemoryError: realloc of size 77 failed", 77),
    ],
)
def test_what_fails_in_an_allocator_of_the_host_is_a_shortage_of_host_memory(line: str, tried: int | None) -> None:
    crash = judge(f"tokenizing\n{line}\n")
    assert (crash.verdict, crash.memory) == ("oom", "host")
    assert crash.evidence[0].fields.get("tried_bytes") == tried


@each(
    ("words", "memory"),
    [
        (" -> step 6 OOM", "unknown"),
        ("got OOM again", "unknown"),
        ("RuntimeError: oom", "unknown"),
        ("error: cuda OOM", "gpu"),
        ("跑到第六步就爆显存了", "gpu"),
        ("and here it ran out of GPU memory", "gpu"),
    ],
)
def test_a_person_s_last_words_are_read_where_the_steps_end(words: str, memory: str) -> None:
    assert judge(STEPS).verdict == "not_oom"
    crash = judge(f"{STEPS}{words}\n")
    assert (crash.verdict, crash.memory, crash.evidence[0].line) == ("oom", memory, 6)


@each(
    "words",
    [
        *("to avoid OOM, lower the batch", "no OOM this time", "CUDA OOM: False", "if you get a GPU OOM, see below"),
        *("Loading model with OOM protection", "Failed requests: 0, OOM: 0", "如果显存不足，请调小 batch"),
        *("zoom with error", "OOM score adj set to 0, error ignored", "did it get a cuda OOM?"),
    ],
)
def test_words_that_warn_or_ask_are_no_shortage(words: str) -> None:
    assert judge(f"loading\n{words}\n").verdict != "oom"


def test_a_run_that_went_on_after_such_words_was_going_on() -> None:
    later = STEPS.replace("step ", "step 1")
    assert judge(f"{STEPS}batch 8 was OOM, trying 4\n{later}").verdict == "not_oom"
