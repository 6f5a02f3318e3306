"""Marks what takes long and says little that its sample does not: run by schedule and before a release, not in CI.

The tests of a change stay within four minutes on two cores. `python -m pytest -m heavy` runs the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

heavy = pytest.mark.heavy


def sampled(rows: Iterable[Any], kept: int | Sequence[int]) -> list[Any]:
    """The rows of a parametrised test: the first `kept`, or those at these places, in every run, the others only where
    heavy ones are asked for."""
    places = range(kept) if isinstance(kept, int) else kept
    return [row if place in places else pytest.param(*_values(row), marks=heavy) for place, row in enumerate(rows)]


def _values(row: Any) -> Sequence[Any]:
    return row if isinstance(row, tuple) else (row,)
