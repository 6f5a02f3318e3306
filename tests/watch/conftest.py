"""Starts the tests of this folder as from a terminal, also where they run under nohup."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def hangups_end_processes() -> Iterator[None]:
    """Gives SIGHUP its default back: nohup ignores it, and every process started from here would inherit that."""
    before = signal.getsignal(signal.SIGHUP)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, before)
