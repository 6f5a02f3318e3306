"""Runs possibly hanging calls, such as those into a GPU driver, in daemon threads and under a timeout."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class ThreadResult(Generic[T]):
    """What a call in another thread came to: nothing yet, a value, or what it raised."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self.problem: Exception | None = None

    def __enter__(self) -> ThreadResult[T]:
        return self

    def __exit__(self, _: object, problem: BaseException | None, __: TracebackType | None) -> bool:
        """Keep the problem instead of ending the thread with it: `take` raises it in the caller's thread."""
        self.problem = problem if isinstance(problem, Exception) else None
        return self.problem is not None

    def take(self) -> T | None:
        """The value, None where there is none yet. Raises what the call raised."""
        if self.problem is not None:
            raise self.problem
        return self.values[0] if self.values else None


def run_in_thread(call: Callable[[], T], done: Callable[[ThreadResult[T]], None]) -> Thread:
    """Run `call` in a daemon thread, then `done` with its result in that same thread."""

    def run() -> None:
        with result:
            result.values.append(call())
        done(result)

    result: ThreadResult[T] = ThreadResult()
    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T | None:
    """What `call` returns or raises; None after `seconds`, and its thread goes on by itself."""
    results: list[ThreadResult[T]] = []
    run_in_thread(call, results.append).join(seconds)
    return results[0].take() if results else None
