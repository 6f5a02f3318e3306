"""What Megatron prints of its memory after each step is a reading, and its course tells growth from none."""

from __future__ import annotations

import pytest

from advisor.diagnosis.course_facts import course_facts

from .known import judge

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
PLAIN = "[Rank 0] (after {0} iterations) memory (MB) | allocated: {1} | max allocated: 9.0 | reserved: 8.5\n"
BRIDGE = "[Rank 0] (after {0} iterations) memory (GB) | mem-allocated-gigabytes: {1} | mem-active-gigabytes: 3.5\n"


def test_both_forms_are_read_in_their_own_units() -> None:
    first = judge(PLAIN.format(1, "2048.0") + OOM).readings[0]
    assert (first.kind, first.bytes) == ("allocated", 2 << 30)
    first = judge(BRIDGE.format(1, "2.5") + OOM).readings[0]
    assert (first.kind, first.bytes) == ("allocated", 2_500_000_000)


@pytest.mark.parametrize(("rise", "grows"), [(0.0, False), (4.0, True)])
def test_the_course_of_readings_tells_growth(rise: float, grows: bool) -> None:
    log = "".join(BRIDGE.format(step, 20.0 + rise * step) for step in range(1, 9))
    assert course_facts(judge(log + OOM))["gpu.grows"].value is grows


@pytest.mark.parametrize(("call", "verdict"), [("cublasCreate(handle)", "unclear"), ("cublasLtMatmul(lt)", "oom")])
def test_a_refusal_of_cublas_comes_with_what_would_tell_a_broken_environment(call: str, verdict: str) -> None:
    """The first call of a library fails also where driver, CUDA and torch do not match."""
    crash = judge(f"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `{call}`\n")
    assert crash.verdict == verdict
    assert any("a @ a" in one for one in crash.settle_by)
