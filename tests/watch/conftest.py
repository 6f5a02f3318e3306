"""Starts the tests of this folder as from a terminal, also where they run under nohup or in the background."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

USUAL = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
"""Signals that nohup and a shell's `&` ignore, as Python has them elsewhere."""


@pytest.fixture(autouse=True, scope="session")
def signals_end_processes() -> Iterator[None]:
    """Gives the signals their usual effect back, which every process started from here would inherit."""
    ignored = [number for number in USUAL if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, USUAL[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
