"""A process that torch lists beside the one that failed is the run's own engine where the log bears its name."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.crash.log_facts import engine_processes
from advisor.units import GIB, parse_size

from .known import judge

LISTED = (
    "CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.50 GiB is "
    "free. Process 3478 has 40.00 GiB memory in use. Including non-PyTorch memory, this process has 37.55 GiB memory "
    "in use. Of the allocated memory 36.00 GiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but "
    "unallocated."
)
FAILED = f"(ActorModelRayActor pid=3489) torch.OutOfMemoryError: {LISTED}"


def log(*lines):
    return "\n".join([*lines, FAILED])


def test_rays_name_for_the_listed_process_says_that_it_is_the_engine():
    crash = judge(log("(LLMRayActor pid=3478) INFO 05-10 12:05:37 [worker.py:145] Sleep mode freed 38.51 GiB memory"))
    fields = crash.evidence[0].fields
    assert fields["engine_process_bytes"] == 40 * GIB
    assert fields["engine_process"] == "LLMRayActor pid=3478"
    assert fields["other_process_bytes"] == 40 * GIB


def test_an_engines_own_child_is_the_engine_too():
    line = "(RolloutRayActor pid=3400) (EngineCore_DP0 pid=3478) INFO 05-10 12:05:37 [worker.py:145] Sleep mode freed"
    assert judge(log(line)).evidence[0].fields["engine_process"] == "EngineCore_DP0 pid=3478"


def test_another_rank_is_no_engine():
    assert "engine_process" not in judge(log("(CriticModelRayActor pid=3478) loaded")).evidence[0].fields


def test_an_engine_that_is_not_on_this_card_is_not_named():
    assert "engine_process" not in judge(log("(LLMRayActor pid=77) awake")).evidence[0].fields


@given(st.integers(1, 9_999_999), st.integers(0, 400))
def test_wherever_the_message_was_wrapped(pid, column):
    message = f"Process {pid} has 6.25 GiB memory in use."
    broken = message[:column] + "\n  " + message[column:]
    found = engine_processes(broken, [f"vLLMHttpServer pid={pid}"])
    assert found == {"engine_process_bytes": parse_size("6.25 GiB"), "engine_process": f"vLLMHttpServer pid={pid}"}
