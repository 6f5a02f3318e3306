# ruff: noqa: E501  (log lines as they are printed)
"""Memory readings that frameworks print on the way come back in bytes, in order, thinned where there are very many."""

from advisor.units import GIB, MIB
from tests.loops import each

from .known import judge

LINES = [
    ("INFO worker.py:241] model weights take 7.51GiB; non_torch_memory takes 0.39GiB; PyTorch activation peak memory takes 2.53GiB; the rest of the memory reserved for KV Cache is 3.76GiB.", {"weights": 7.51 * GIB, "kv_cache": 3.76 * GIB}),
    ("(WorkerDict pid=3) before init cache memory allocated: 5.96926464GB, reserved: 6.079643648GB", {"allocated": 5_969_264_640, "reserved": 6_079_643_648}),
    ("[Rank 0] Memory-Usage after offload model: {'gpu': '0', 'total_GB': 139.81, 'free_GB': 130.2, 'used_GB': 9.61, 'allocated_GB': 3.1, 'reserved_GB': 4.2}", {"used": 9.61 * GIB, "allocated": 3.1 * GIB, "reserved": 4.2 * GIB}),
    ("{'loss': 6.5, 'memory(GiB)': 10.31, 'global_step': 1}", {"reserved": 10.31 * GIB}),
    ("[utils.py:789:see_memory_usage] CPU Virtual Memory:  used = 30.13 GB, percent = 8.3%", {"host_used": 30.13 * GIB}),
    ("[utils.py:782:see_memory_usage] MA 14.51 GB         Max_MA 14.6 GB         CA 15.02 GB         Max_CA 15 GB", {"allocated": 14.51 * GIB, "reserved": 15.02 * GIB}),
    ("| N/A   34C    P0    68W / 400W |  40536MiB / 81920MiB |     98%      Default |", {"used": 40536 * MIB}),
    ("INFO worker.py:133] Sleep mode freed 46.35 GiB memory, 26.10 GiB memory is still in use.", {"freed": 46.35 * GIB, "still_used": 26.1 * GIB}),
]  # fmt: skip


@each(("line", "expected"), LINES)
def test_a_printed_reading_comes_back_in_bytes(line, expected):
    assert {one.kind: one.bytes for one in judge(line + "\n").readings} == {k: round(v) for k, v in expected.items()}


def test_readings_stand_in_the_order_of_the_log():
    crash = judge("\n".join(line for line, _ in LINES))
    assert [one.line for one in crash.readings] == sorted(one.line for one in crash.readings)
    assert {one.line for one in crash.readings} == set(range(1, len(LINES) + 1))


def test_of_very_many_readings_some_are_kept_and_the_last_is_one_of_them():
    log = "".join(
        f"{{'loss': 0.1, 'memory(GiB)': {10 + step / 1000:.3f}, 'global_step': {step}}}\n" for step in range(3_000)
    )
    crash = judge(log)
    assert len(crash.readings) <= 2_000
    assert crash.readings[-1].bytes == round(12.999 * GIB)
    readings = [one for one in crash.evidence if one.signature == "swift-reading"]
    assert [one.line for one in readings] == [3_000]
