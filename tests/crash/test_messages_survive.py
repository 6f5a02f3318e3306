# ruff: noqa: E501  (log lines as they are printed)
"""The fields of every printed message survive prefixes, colours, wraps at any column and other ranks in between."""

import time
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.units import GIB, KIB, MIB
from tests.heavy import examples
from tests.loops import each

from .known import judge


@dataclass(frozen=True)
class Message:
    """A message as it is printed, what it proves, and the fields that must come back."""

    text: str
    memory: str
    fields: dict[str, int | float | str]


def _gib(number: float) -> int:
    return round(number * GIB)


MESSAGES = {
    "torch 2.4": Message(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.55 GiB. GPU 3 has a total capacity of 79.15 GiB of which 11.42 GiB is free. Process 2684311 has 4.51 GiB memory in use. Including non-PyTorch memory, this process has 63.21 GiB memory in use. Of the allocated memory 60.21 GiB is allocated by PyTorch, with 1.20 GiB allocated in private pools (e.g., CUDA Graphs), and 933.12 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        "gpu",
        {
            "tried_bytes": _gib(18.55),
            "gpu": 3,
            "total_bytes": _gib(79.15),
            "free_bytes": _gib(11.42),
            "process_bytes": _gib(63.21),
            "other_process_bytes": _gib(4.51),
            "allocated_bytes": _gib(60.21),
            "private_bytes": _gib(1.2),
            "reserved_unallocated_bytes": round(933.12 * MIB),
        },
    ),
    "torch 2.1, HIP": Message(
        "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 512.00 MiB. GPU 7 has a total capacty of 63.98 GiB of which 308.00 MiB is free. Of the allocated memory 60.21 GiB is allocated by PyTorch, and 1.02 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
        "gpu",
        {"tried_bytes": 512 * MIB, "gpu": 7, "total_bytes": _gib(63.98), "free_bytes": 308 * MIB},
    ),
    "torch 1.13": Message(
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 79.15 GiB total capacity; 77.12 GiB already allocated; 10.50 MiB free; 77.50 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
        "gpu",
        {"tried_bytes": 20 * MIB, "gpu": 3, "total_bytes": _gib(79.15), "free_bytes": round(10.5 * MIB)},
    ),
    "torch_npu": Message(
        "RuntimeError: NPU out of memory. Tried to allocate 22.00 MiB (NPU 5; 60.97 GiB total capacity; 10.24 GiB already allocated; 10.24 GiB current active; 19.52 MiB free; 10.65 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb",
        "gpu",
        {"tried_bytes": 22 * MIB, "gpu": 5, "total_bytes": _gib(60.97), "active_bytes": _gib(10.24)},
    ),
    "Ray's kill": Message(
        "Memory on the node (IP: 10.0.0.1, ID: ca4d) where the task (task ID: 13a8, name=WorkerDict.actor_rollout_update_actor, pid=108824, memory used=88.25GB) was running was 726.33GB / 760.00GB (0.955697), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: 4039) because it was the most recently scheduled task",
        "host",
        {"node_used_bytes": _gib(726.33), "node_total_bytes": _gib(760), "task_bytes": _gib(88.25), "pid": 108824},
    ),
    "vLLM finds too little free": Message(
        "ValueError: Free memory on device (11.11/79.15 GiB) on startup is less than desired GPU memory utilization (0.9, 71.24 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "gpu",
        {"free_bytes": _gib(11.11), "total_bytes": _gib(79.15), "tried_bytes": _gib(71.24)},
    ),
    "torch on the host": Message(
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 53687091200 bytes. Error code 12 (Cannot allocate memory)",
        "host",
        {"tried_bytes": 53687091200},
    ),
    "the kernel": Message(
        "Memory cgroup out of memory: Killed process 4242 (ray::WorkerDict) total-vm:412345678kB, anon-rss:198765432kB, file-rss:1234kB, shmem-rss:5678kB, UID:0 pgtables:400000kB oom_score_adj:1000",
        "host",
        {"pid": 4242, "task_bytes": 198765432 * KIB, "shared_bytes": 5678 * KIB},
    ),
    "cumem-named": Message("cumem_allocator.cpp:62 (CuMemAllocator wake_up: create_and_map failed)", "gpu", {}),
    "cumem": Message("RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62", "gpu", {}),
    "torch_memory_saver": Message(
        "[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func=cu_mem_create line=194",
        "gpu",
        {},
    ),
    "NCCL": Message("node1:77:99 [3] enqueue.cc:88 NCCL WARN Cuda failure 2 'out of memory'", "gpu", {}),
    "the KV cache": Message(
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "gpu",
        {},
    ),
}
WRAPPABLE = [name for name in MESSAGES if "torch 1" in name or "torch 2" in name or name in ("torch_npu", "Ray's kill")]
PREFIXES = [
    "",
    "(WorkerDict pid=123, ip=10.0.0.1) ",
    "\x1b[36m(main_task pid=9)\x1b[0m ",
    "(TaskRunner pid=8111) (WorkerDict pid=123) ",
    "[rank3]: ",
    "[default1]:[rank1]: ",
    "3: ",
    "12: ",
    "[1,3]<stderr>:",
    "worker-1: ",
    "Nov 21 14:57:50 node1 kernel: [12345.678901] ",
    "Nov 21 14:57:50 node1 train.sh[4242]: ",
    "2025-11-12T11:25:13.4961658Z ",
    "2025-11-12T11:25:13.496165812Z stderr F ",
    "2025-04-25 01:08:59,307 - __main__ - ERROR - ",
    "(EngineCore_DP0 pid=553) ERROR 09-17 04:55:13 [core.py:842] ",
    "ERROR 01-28 03:21:01 engine.py:387] ",
    "[2025-06-11 03:12:11 TP3] ",
    "[2025-06-11 03:12:11,123] [ERROR] [logging.py:107:log_dist] [Rank 0] ",
    "E0622 19:47:13.438884 140373504014144 torch/distributed/elastic/api.py:851] ",
    "E   ",
    "| ",
    "│ ERROR 09-27 06:46:46 engine.py:157] ",
]
COLOURS = ["\x1b[31m", "\x1b[1;36m", "\x1b[38;5;196m"]


def assert_told(log: str, message: Message) -> None:
    crash = judge(log)
    assert (crash.verdict, crash.memory) == ("oom", message.memory)
    read = crash.evidence[0].fields
    assert {name: read.get(name) for name in message.fields} == message.fields


@pytest.mark.parametrize("prefix", PREFIXES)
@settings(max_examples=examples(5), deadline=None)
@given(name=st.sampled_from(sorted(MESSAGES)))
def test_a_message_is_found_behind_any_prefix(prefix, name):
    message = MESSAGES[name]
    assert_told(f"start\n{prefix}{message.text}\nend\n", message)


@pytest.mark.parametrize("name", WRAPPABLE)
@settings(max_examples=examples(8), deadline=None)
@given(prefix=st.sampled_from(PREFIXES), colour=st.sampled_from(COLOURS), data=st.data())
def test_coloured_between_any_two_words(name, prefix, colour, data):
    message = MESSAGES[name]
    words = message.text.split(" ")
    place = data.draw(st.integers(0, len(words) - 1))
    text = " ".join([*words[:place], colour + words[place] + "\x1b[0m", *words[place + 1 :]])
    assert_told(f"{prefix}{text}\n", message)


@pytest.mark.parametrize("name", WRAPPABLE)
@settings(max_examples=examples(20), deadline=None)
@given(prefix=st.sampled_from(PREFIXES[:10]), column=st.integers(20, 240), each=st.booleans())
def test_wrapped_at_any_column(name, prefix, column, each):
    message = MESSAGES[name]
    first, *rest = [message.text[at : at + column] for at in range(0, len(message.text), column)]
    lines = [prefix + first, *((prefix if each else "") + piece for piece in rest)]
    assert_told("start\n" + "\n".join(lines) + "\nend\n", message)


@pytest.mark.parametrize("name", WRAPPABLE)
@settings(max_examples=examples(12), deadline=None)
@given(column=st.integers(20, 240), data=st.data())
def test_with_lines_of_other_ranks_in_between(name, column, data):
    message = MESSAGES[name]
    lines = []
    for at in range(0, len(message.text), column):
        lines.append(f"[rank1]: {message.text[at : at + column]}")
        others = data.draw(st.lists(st.integers(2, 7), max_size=2))
        lines.extend(f"[rank{rank}]: step went on" for rank in others)
    assert_told("\n".join(lines) + "\n", message)


@each("name", MESSAGES)
def test_among_the_redraws_of_a_progress_bar(name):
    message = MESSAGES[name]
    bars = "".join(f"\rTraining Progress:  {n}%|#| {n}/100 [00:01<00:09, 1.1it/s]" for n in range(3))
    assert_told(f"{bars}\r{message.text}\n{bars}\n", message)


@pytest.mark.parametrize("name", ["torch 2.4", "Ray's kill"])
def test_repeated_across_the_cluster(name):
    message = MESSAGES[name]
    log = f"(WorkerDict pid=1) {message.text}\n(WorkerDict pid=2) {message.text}\x1b[32m [repeated 7x across cluster]\x1b[0m\n"
    assert_told(log, message)
    assert judge(log).evidence[0].repeats == 8


@pytest.mark.parametrize(
    "chatter", ["we run out of memory of the past", "this PyTorch build is odd", "tried to allocate nothing"]
)
def test_after_thousands_of_lines_that_only_sound_alike_and_soon(chatter):
    message = MESSAGES["torch 2.4"]
    began = time.process_time()
    assert_told(f"(WorkerDict pid=7) {chatter}\n" * 4_000 + message.text + "\n", message)
    assert time.process_time() - began < 5
