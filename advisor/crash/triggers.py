"""The few literals a long log is searched for. Every anchor of every signature holds one of them.

How long a search takes depends on how many literals there are: up to 64 a vectorised search tells them by their first
bytes, beyond that it falls back to an automaton several times slower (measured with ahocorasick_rs 1.0.3). So a trigger
is short, begins with letters that are rare in logs, and stands for several anchors; which of them is meant is looked up
on the line.
"""

from __future__ import annotations

from collections.abc import Iterable

FAST = 64
"""Literals up to which the search stays quick."""
TRIGGERS = (
    *("f memory", "f-memory", "OUT_OF_M", "STATUS_", "ried to alloc", "nable to ", "Cannot all", "PyTorch", "capac"),
    *("CUDA", "cuda ", "CPUAlloc", "cumem", "bad_alloc", "torch_mem", "xpandable", "virtual", "mem=", " GiB", "(GB)"),
    *(
        "KV cache",
        "cache blo",
        "seq len (",
        "desired GPU",
        "Free memo",
        "Not enough",
        "Error in m",
        "ng manager",
        "ak detec",
    ),
    *("Memory", "shold of", "Spilled", "StoreFull", "ray.exc", "dError", "esource", "ry limit", "DUE TO"),
    *("ille", " SIG", "(SIG", ".SIGK", "sigquit", "exit", "Exit", "oom-k", "oom_k", "Traceback"),
    *("hared me", "dev/shm", "space le", "Bus err", "Segmentation", "Too many", "NVRM"),
    *("CCL WARN", "nccl", "unhandled", "atchdog", "failed to start", "tion failed", "EL0004", "rtMalloc", "cache flu"),
)


def trigger_set(anchors: Iterable[str]) -> tuple[bytes, ...]:
    """The triggers that stand in some anchor, and the anchors in which none stands."""
    every = set(anchors)
    useful = [trigger for trigger in TRIGGERS if any(trigger in anchor for anchor in every)]
    return tuple(text.encode() for text in [*useful, *uncovered(every)])


def uncovered(anchors: Iterable[str]) -> list[str]:
    """Anchors that hold no trigger: each is one more literal to search for."""
    return sorted(anchor for anchor in set(anchors) if not any(trigger in anchor for trigger in TRIGGERS))
