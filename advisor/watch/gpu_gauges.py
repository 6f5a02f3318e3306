"""Reads GPU memory through a driver that may hang: one thread asks it, and nobody waits for that thread for long.

Without GPUs there is no thread. With them it sleeps until it is asked, so that it wakes no oftener than its asker.
"""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from advisor.watch.gauges import Gauge

if TYPE_CHECKING:
    from advisor.machine.cards import CardReader
    from advisor.machine.tool import ThreadResult

_PATIENCE = 0.05
"""Seconds that the last reading waits for its answer. The others do not: they take the answer to the one before."""
_OPENING = 0.3
"""Seconds that the start waits for the driver; cards that come later are taken in then."""
_WAKING = 0.00005
"""Seconds of processor time."""
_SILENT = 2.0
"""Seconds without an answer from which on the cards hold nobody knows what."""
GpuQuery = Literal["gauges", "used", "holders"]
Holders = dict[tuple[int, int], int]


class GpuGauges(Struct):
    """Every card's memory, and what each process holds of it."""

    reader: CardReader | None = None
    """None: there is no driver, or it was not looked for yet."""
    gauges: list[Gauge] = field(default_factory=list)
    """[] until the driver has told of its cards."""
    cost: float = 0.0
    """Seconds of processor time that the last reading took its thread."""
    silent: bool = False
    """The driver was asked long ago and does not answer."""
    _questions: SimpleQueue[GpuQuery | None] = field(default_factory=SimpleQueue)
    _answers: SimpleQueue[tuple[GpuQuery, ThreadResult[Any], float]] = field(default_factory=SimpleQueue)
    _since: dict[GpuQuery, float] = field(default_factory=dict)
    """When the questions were asked that are not answered yet."""
    _answered: dict[GpuQuery, Any] = field(default_factory=dict)
    """Answers that nobody has taken yet."""
    _holders: Holders = field(default_factory=dict)

    def open(self) -> None:
        """Start the driver; without one there are no gauges."""
        if self.reader is None:
            from advisor.machine.tool import any_driver

            if not any_driver():  # asked first: what reads the cards takes longer to load than this whole file
                return
            from advisor.machine.cards import AllCards

            self.reader = AllCards()
        from threading import Thread

        Thread(target=_answer_all, args=(self.reader, self._questions, self._answers), daemon=True).start()
        self._ask("gauges")
        self._hear(_OPENING)
        self.join()

    def join(self) -> list[Gauge]:
        """The gauges of the cards, when the driver tells of them; [] at all other times."""
        if self.gauges or not (self._since or self._answered):
            return []
        self._hear(0.0)
        self.gauges = self._answered.pop("gauges", [])
        return self.gauges

    def read(self, due: bool = True) -> list[int | None] | None:
        """Bytes in use, one a card, as asked for the time before; None: no answer since. `due`: ask anew. Of a driver
        that fell silent there is, once, no number for each card."""
        if not self.gauges:
            return None
        self._hear(0.0)
        asked = self._since.get("used")
        if asked is not None and not self.silent and time.monotonic() > asked + _SILENT:
            self.silent = True
            self._holders = {}
            return [None] * len(self.gauges)
        if due:
            self._ask("used")
        found: list[int | None] | None = self._answered.pop("used", None)
        return found

    def last(self) -> list[int | None] | None:
        """The same as it is now, for which it is worth to wait a moment."""
        found = self.read()
        while self._since and self._hear(_PATIENCE):
            pass
        now: list[int | None] | None = self._answered.pop("used", None)
        return now or found

    def holders(self) -> Holders:
        """(card, process id) → bytes, as asked for the time before."""
        if self.gauges:
            self._hear(0.0)
            self._ask("holders")
            self._holders = self._answered.pop("holders", self._holders)
        return self._holders

    def _ask(self, what: GpuQuery) -> None:
        if what not in self._since:
            self._since[what] = time.monotonic()
            self._questions.put(what)

    def _hear(self, patience: float) -> bool:
        """Take the answers that are there, waiting so many seconds for the first. Raises what a call raised."""
        heard = False
        with suppress(Empty):
            while True:
                wait = patience and not heard
                what, answer, cost = self._answers.get(timeout=patience) if wait else self._answers.get_nowait()
                self.cost = cost if what == "used" else self.cost
                heard, self.silent = True, False
                del self._since[what]
                self._answered[what] = answer.take()
        return heard

    def close(self) -> None:
        """The thread ends when it is asked next; one that hangs is left behind."""
        self._questions.put(None)


def _answer_all(reader: CardReader, questions: SimpleQueue[GpuQuery | None], answers: SimpleQueue[Any]) -> None:
    """The thread: owns the reader. What waking it costs is put on top."""
    from advisor.machine.tool import ThreadResult

    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are the watcher's
    while (what := questions.get()) is not None:
        answer: ThreadResult[Any] = ThreadResult()
        begun = time.thread_time()
        with answer:
            answer.values.append(_gauges_of(reader) if what == "gauges" else getattr(reader, what)())
        answers.put((what, answer, time.thread_time() - begun + _WAKING))
    reader.close()


def _gauges_of(reader: CardReader) -> list[Gauge]:
    """[] where no driver starts."""
    if reader.open() is not None:
        return []
    return [
        Gauge(
            "gpu",
            f"GPU {gpu.index} {gpu.name}" + (f" MIG {gpu.mig}" if gpu.mig and gpu.mig not in gpu.name else ""),
            gpu.usable_bytes,
            gpu=gpu.index,
        )
        for gpu in reader.snapshot(processes=False)
    ]
