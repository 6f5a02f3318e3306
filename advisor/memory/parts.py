"""A part of a sum before it has a phase and a place: what the formulas of trainer, engine and host return."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import say
from advisor.memory.cells import Cell, Kind, Owner, PhaseSum, Place
from advisor.memory.constants import FRAGMENTATION, FRAGMENTATION_HIGH, FRAGMENTATION_LOW
from advisor.memory.formula import Words, read
from advisor.units import show_bytes
from advisor.words import Basis, Phase, weakest


class Part(Struct, frozen=True):
    """Bytes that one owner holds, with the arithmetic that gave them."""

    owner: Owner
    low: int
    expected: int
    high: int
    words: str | Words
    """The arithmetic, said when it is read (`formula`)."""
    basis: Basis = "computed"
    pooled: bool = True
    """Allocated by torch's caching allocator, which fragments."""
    kind: Kind = ""

    @property
    def formula(self) -> str:
        """In words and numbers."""
        return read(self.words)


def part(
    owner: Owner,
    size: float,
    words: str | Words,
    *,
    low: float | None = None,
    high: float | None = None,
    basis: Basis = "computed",
    pooled: bool = True,
    kind: Kind = "",
) -> Part:
    """A part of `size` bytes; `low` and `high` default to it and never cross it. Nothing is ever negative."""
    expected = max(0, round(size))
    least = expected if low is None else min(expected, max(0, round(low)))
    most = expected if high is None else max(expected, round(high))
    return Part(owner, least, expected, most, words, basis, pooled, kind)


def total(parts: Iterable[Part]) -> int:
    """Expected bytes of all parts."""
    return sum(p.expected for p in parts)


def weaker(parts: Iterable[Part], basis: Basis) -> list[Part]:
    """The same parts, claiming no more than `basis`."""
    if basis == "measured":
        return list(parts)
    return [p if weakest(p.basis, basis) == p.basis else replace(p, basis=weakest(p.basis, basis)) for p in parts]


Bounds = tuple[tuple[float, float], tuple[float, float]]


def phase_sum(phase: Phase, place: Place, parts: Iterable[Part], bounds: Bounds | None = None) -> PhaseSum:
    """The parts as cells of one phase; empty ones are dropped, and on the GPU the allocator's own loss is added."""
    kept = [p for p in parts if p.high > 0 or p.kind == "cannot_start"]
    counted = any(p.owner == "fragmentation" and not p.pooled for p in kept)
    if place == "gpu" and not counted and any(p.pooled and p.expected for p in kept):
        kept.append(_fragmentation(kept))
    return PhaseSum(
        phase,
        place,
        tuple(Cell(phase, place, p.owner, p.low, p.expected, p.high, p.words, p.basis, p.kind) for p in kept),
        bounds,
    )


def _fragmentation(parts: Iterable[Part]) -> Part:
    pooled = [p for p in parts if p.pooled]
    low, expected, high = (sum(getattr(p, end) for p in pooled) for end in ("low", "expected", "high"))
    return part(
        "fragmentation",
        expected * FRAGMENTATION,
        lambda: say("{share:.0%} of {size} allocated by torch", share=FRAGMENTATION, size=show_bytes(expected)),
        low=low * FRAGMENTATION_LOW,
        high=high * FRAGMENTATION_HIGH,
        basis="estimated",
        pooled=False,
    )
