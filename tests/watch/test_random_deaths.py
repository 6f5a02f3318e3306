"""A few of the random deaths of `python -m tests.watch.random_deaths`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.heavy import sampled
from tests.watch.random_deaths import one_death

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes of Linux")


@pytest.mark.parametrize(
    ("kind", "delay"),
    sampled(
        [("watcher", 1.0), ("trainer", 1.1), ("taken", 0.1), ("script", 1.2), ("checkpoint", 1.3), ("cards", 0.1)], 3
    ),
)
def test_what_must_hold_holds_whatever_dies(kind: str, delay: float, tmp_path: Path) -> None:
    assert one_death(kind, delay, tmp_path) == []
