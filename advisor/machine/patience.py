"""A call into a driver that may never come back: made in a thread that nobody waits for at the end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Answer(Generic[T]):
    """What a call in another thread came to, carried to whoever asked: nothing yet, a value, or what it raised."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self.problem: Exception | None = None

    def __enter__(self) -> Answer[T]:
        return self

    def __exit__(self, _: object, problem: BaseException | None, __: TracebackType | None) -> bool:
        """Keep the problem instead of ending the thread with it: it is raised where the answer is taken."""
        self.problem = problem if isinstance(problem, Exception) else None
        return self.problem is not None

    def take(self) -> T | None:
        """The value, None where there is none yet. Raises what the call raised."""
        if self.problem is not None:
            raise self.problem
        return self.values[0] if self.values else None


def apart(ask: Callable[[], T], told: Callable[[Answer[T]], None]) -> Thread:
    """Call `ask` in a thread that does not keep the program, then `told` with the answer, in that thread."""

    def run() -> None:
        with answer:
            answer.values.append(ask())
        told(answer)

    answer: Answer[T] = Answer()
    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


def within(seconds: float, ask: Callable[[], T]) -> T | None:
    """What `ask` returns or raises; None after `seconds`. It then goes on by itself."""
    answers: list[Answer[T]] = []
    apart(ask, answers.append).join(seconds)
    return answers[0].take() if answers else None
