"""Lists the processes that hold GPU memory, with user, age and command, and finds what a dead run left behind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from advisor.hostile import clean_line, readable
from advisor.language import mark, say
from advisor.machine.inventory import Gpu, GpuProcess
from advisor.regex import regex
from advisor.units import GIB, in_ranges, show_bytes

T = TypeVar("T")
UNKNOWN_PROCESS = mark("unknown process")
"""A pid that does not exist here: the driver counts host pids, a container has its own."""
_TRAINING = regex(
    r"python|ray::|raylet|vllm|sglang|EngineCore|WorkerDict|torchrun|deepspeed|accelerate|pt_main_thread|megatron|swift",
    re.IGNORECASE,
)


SILENT_ABOUT = mark("GPU {gpus}: the driver does not say which processes (not permitted, or not supported).")
_UNSEEN = mark("GPU {gpu}: {size} are held by processes that cannot be seen from here (another container or user).")
_UNSEEN_EACH = mark(
    "GPU {gpu}: up to {size} on each are held by processes that cannot be seen from here (another container or user)."
)
HolderKind = Literal["training", "engine", "other"]
_ENGINE = regex(r"vllm|sglang|EngineCore|lmdeploy|tritonserver|text-generation", re.IGNORECASE)


def holder_of(process: GpuProcess) -> HolderKind:
    """What a process is by its command: a rollout engine of its own, training (with its engine inside), or other."""
    if _ENGINE.search(process.command):
        return "engine"
    return "training" if _TRAINING.search(process.command) else "other"


def held_by(gpu: Gpu) -> dict[HolderKind, int]:
    """Bytes on a card by the kind of process that holds them; nothing where the driver does not say."""
    held: dict[HolderKind, int] = {}
    for process in gpu.processes or ():
        if process.used_bytes:
            held[holder_of(process)] = held.get(holder_of(process), 0) + process.used_bytes
    return held


def with_details(gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The same cards, their processes with user, start, resident memory and command as far as this system tells."""
    every = {process.pid: process for gpu in gpus for process in gpu.processes or ()}
    seen = {pid: _described(process) for pid, process in every.items()}
    return tuple(
        replace(gpu, processes=tuple(replace(seen[p.pid], used_bytes=p.used_bytes) for p in gpu.processes))
        if gpu.processes
        else gpu
        for gpu in gpus
    )


def _described(process: GpuProcess) -> GpuProcess:
    import psutil

    try:
        system = psutil.Process(process.pid)
        started = system.create_time()
    except (psutil.Error, OSError, ValueError):
        return replace(process, command=UNKNOWN_PROCESS)
    with system.oneshot():
        user, memory = _allowed(system.username), _allowed(system.memory_info)
        words = _allowed(system.cmdline) or [_allowed(system.name) or UNKNOWN_PROCESS]
    return replace(
        process,
        started=started,
        user=None if user is None else clean_line(user, 64),
        host_rss_bytes=None if memory is None else memory.rss,
        command=readable(" ".join(words)),
    )


def _allowed(ask: Callable[[], T]) -> T | None:
    """What the system answers, None where it refuses or the process is gone meanwhile."""
    import psutil

    try:
        return ask()
    except (psutil.Error, OSError, KeyError):  # KeyError: a user id without a name
        return None


def unseen_bytes(gpu: Gpu) -> int | None:
    """Memory in use on the card that no listed process accounts for; None where that is unknown. Large beside an empty
    list, the holders live in another container. npu-smi counts what the driver keeps as used."""
    if gpu.used_bytes is None:
        return None
    kept = gpu.reserved_bytes or 0 if gpu.vendor == "ascend" else 0
    return max(0, gpu.used_bytes - sum(process.used_bytes or 0 for process in gpu.processes or ()) - kept)


def unseen(gpus: Sequence[Gpu]) -> str:
    """A sentence on memory that no process accounts for; "" where there is none."""
    held = [(gpu.index, size) for gpu in gpus if (size := unseen_bytes(gpu) or 0) >= GIB]
    if not held:
        return ""
    indices, sizes = zip(*held, strict=True)
    sentence = _UNSEEN if len(set(indices)) == 1 else _UNSEEN_EACH
    return say(sentence, gpu=in_ranges(indices), size=show_bytes(max(sizes)))


@dataclass(frozen=True, slots=True)
class Leftover:
    """A process that holds GPU memory though no run should be going."""

    gpu: int
    """Index of the card."""
    process: GpuProcess
    age_seconds: float | None


def leftovers(gpus: Sequence[Gpu], now: float, run_started: float | None = None) -> tuple[Leftover, ...]:
    """Training-like processes on the cards while nothing should run: what a dead run left, largest first.

    `now` and `run_started` are epoch seconds. With `run_started` (of the run that just ended or is to begin), a process
    that began later is not counted. A process that cannot be identified counts: it holds memory all the same.
    """
    found = [
        Leftover(gpu.index, process, None if process.started is None else max(0.0, now - process.started))
        for gpu in gpus
        for process in gpu.processes or ()
        if process.pid != os.getpid() and process.used_bytes != 0
        if process.command == UNKNOWN_PROCESS or _TRAINING.search(process.command)
        if run_started is None or process.started is None or process.started <= run_started
    ]
    return tuple(sorted(found, key=lambda left: -(left.process.used_bytes or 0)))
