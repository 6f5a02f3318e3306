"""Marks what takes long and says little that its sample does not: run by schedule and before a release, not in CI.

The tests of a change stay within four minutes on two cores. `python -m pytest -m heavy` runs the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

heavy = pytest.mark.heavy
ASKED = "HEAVY_TESTS"
"""Environment variable of the test processes that is set where heavy tests are asked for."""


def sampled(rows: Iterable[Any], kept: int | Sequence[int]) -> list[Any]:
    """The rows of a parametrised test: the first `kept`, or those at these places, in every run, the others only where
    heavy ones are asked for."""
    places = range(kept) if isinstance(kept, int) else kept
    return [row if place in places else pytest.param(*_values(row), marks=heavy) for place, row in enumerate(rows)]


def examples(count: int) -> int:
    """How many examples a property is tried on: `count` where heavy tests are asked for, a third of them in every run,
    which draws others each time."""
    return count if os.environ.get(ASKED) else max(4, count // 3)


def _values(row: Any) -> Sequence[Any]:
    return row if isinstance(row, tuple) else (row,)
