"""Stands in for pynvml in a watched process: four cards that a stranger's process holds, whoever dies beside it."""

from __future__ import annotations

from typing import Any

from tests.machine.fake_nvml import MIB, Card, FakeNvml, NVMLError

STRANGER, HELD = 1, 74_000 * MIB
_node = FakeNvml(*(Card(total=81_920 * MIB, used=HELD, processes=[(STRANGER, HELD)]) for _ in range(4)))
__all__ = ["NVMLError"]


def __getattr__(name: str) -> Any:
    return getattr(_node, name)
