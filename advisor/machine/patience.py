"""A call into a driver that may never come back."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, ask: Callable[[], T]) -> T | None:
    """What `ask` returns or raises; None after `seconds`. It then goes on in a thread that nobody waits for."""
    told: list[T] = []
    problems: list[Exception] = []

    def run() -> None:
        try:
            told.append(ask())
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that asked
            problems.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if problems:
        raise problems[0]
    return told[0] if told else None
