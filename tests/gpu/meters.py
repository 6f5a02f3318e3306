"""What a step holds at its fullest: the CUDA allocator's own peak, or every allocation of the same step on the CPU.

The CPU runs the very operators and the real autograd engine; torch's profiler tells each allocation and each release.
Matrix products are replaced by an allocation of their result, for their scratch memory is the CPU's own (and they
would take the time). A mode or tensor subclass would do without data, but autograd then leaves out its in-place paths:
the sums of gradients and the scatter of a gather's gradient would each cost a copy that a GPU never makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

BLOCK = 512
"""Bytes: torch's CUDA allocator rounds every tensor up to it (c10/cuda/CUDACachingAllocator, kMinBlockSize)."""
_MARK = "measured step: "


@dataclass(slots=True)
class Reading:
    """One step's peak in bytes, and what was there before it."""

    peak: int = 0
    before: int = 0


class Meter(Protocol):
    """Reads the peaks of named steps."""

    readings: dict[str, Reading]

    def whole(self) -> Any:
        """A context around all steps, the making of the model included; readings are complete after it."""

    def step(self, name: str) -> Any:
        """A context around one step."""


@dataclass(slots=True)
class CudaMeter:
    """`torch.cuda.max_memory_allocated`, less what was there before anything was made."""

    readings: dict[str, Reading] = field(default_factory=dict)
    _base: int = 0

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Starts from an empty cache."""
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        self._base = torch.cuda.memory_allocated()
        yield

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Peak of what torch allocated."""
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated() - self._base
        yield
        torch.cuda.synchronize()
        self.readings[name] = Reading(torch.cuda.max_memory_allocated() - self._base, before)


@dataclass(slots=True)
class CpuMeter:
    """Allocations and releases on the CPU, from torch's profiler."""

    readings: dict[str, Reading] = field(default_factory=dict)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Records everything, so that the tensors alive are known at any time."""
        from torch.profiler import ProfilerActivity, profile

        with _no_products(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
            yield
        events = recorded.profiler.kineto_results.events()  # type: ignore[union-attr]
        steps = [(e.start_ns(), e.end_ns(), e.name()[len(_MARK) :]) for e in events if e.name().startswith(_MARK)]
        memory = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
        self.readings = {name: _peak(memory, start, end) for start, end, name in sorted(steps)}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Marks the step in the record."""
        with torch.profiler.record_function(_MARK + name):
            yield


def _peak(memory: list[tuple[int, int]], start: int, end: int) -> Reading:
    """Most bytes alive between two times."""
    live, reading, begun = 0, Reading(), False
    for when, size in memory:
        if when > end:
            break
        if when >= start and not begun:
            begun, reading = True, Reading(live, live)
        live += -(-abs(size) // BLOCK) * BLOCK * (1 if size > 0 else -1)
        if begun:
            reading.peak = max(reading.peak, live)
    return reading


@contextmanager
def _no_products() -> Iterator[None]:
    """Matrix products give memory of their result's size and nothing else."""

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.new_empty((*a.shape[:-1], b.shape[-1]))

    def sum_with_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **_: Any) -> torch.Tensor:
        return a.new_empty((a.shape[0], b.shape[1]))

    library = torch.library.Library("aten", "IMPL")
    library.impl("mm", product, "CPU")
    library.impl("bmm", product, "CPU")
    library.impl("addmm", sum_with_product, "CPU")
    try:
        yield
    finally:
        library._destroy()
