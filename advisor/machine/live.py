"""Polls the gauges of GPUs and host for one background thread, with history, peaks and marks for stale readings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from advisor.machine.cards import AllCards, CardReader
from advisor.machine.host import read_host
from advisor.machine.inventory import Gpu, Host
from advisor.machine.nvml import Refused, Trouble
from advisor.machine.processes import with_details

FAST_SECONDS, PROCESS_SECONDS, SLOW_SECONDS, REOPEN_SECONDS = 1.0, 2.0, 5.0, 30.0
HANGS_SECONDS = 10.0
"""A reading takes a fraction of a second; a driver that hangs never gives it."""
HISTORY = 300
"""Readings kept a card: five minutes at one a second."""


@dataclass(frozen=True, slots=True)
class GpuGauge:
    """One card's row."""

    gpu: Gpu
    """The last good reading; its `problem` says why there is no newer one."""
    read_at: float | None
    """When it was read, on the caller's clock; None: never."""
    stale: bool = False
    history: tuple[int | None, ...] = ()
    """Used bytes, oldest first, one a reading; None where the card did not answer."""
    peak_bytes: int | None = None
    """The most ever seen."""

    def age(self, now: float) -> float | None:
        """Seconds since the last good reading."""
        return None if self.read_at is None else max(0.0, now - self.read_at)


@dataclass(frozen=True, slots=True)
class GaugeSnapshot:
    """All gauges at one moment. `taken` is on the caller's clock."""

    taken: float
    gpus: tuple[GpuGauge, ...] = ()
    host: Host = field(default_factory=Host)
    host_peak_bytes: int | None = None
    problem: str = ""
    """Why no card can be read at all; the last good rows stay, marked stale."""
    host_history: tuple[int | None, ...] = ()
    """As of a card."""

    def unanswered(self, now: float) -> GaugeSnapshot:
        """The same at `now`, while a reading does not come back: every row is old."""
        rows = tuple(replace(gauge, stale=True) for gauge in self.gpus)
        return replace(self, taken=now, gpus=rows, problem=Refused(Trouble.TIMEOUT, "poll").says)


NEVER = GaugeSnapshot(taken=float("-inf"))
"""What there is before the first poll."""


@dataclass(slots=True)
class Gauges:
    """Polls when asked and not more often than it should. Not thread-safe: the thread that polls owns it.

    Memory, utilisation, temperature and power every `FAST_SECONDS`, the process list every `PROCESS_SECONDS`, ECC,
    throttling and limits every `SLOW_SECONDS`; after a failure the driver is opened again every `REOPEN_SECONDS`.
    Pausing is the caller's: who does not poll spends nothing, and the last snapshot stays valid.
    """

    reader: CardReader = field(default_factory=AllCards)
    host: Callable[[], Host] = read_host
    details: Callable[[tuple[Gpu, ...]], tuple[Gpu, ...]] = with_details
    latest: GaugeSnapshot = NEVER
    _tracks: dict[tuple[int, str], GpuGauge] = field(default_factory=dict)
    _is_open: bool = False
    _problem: str = ""
    _due: dict[str, float] = field(default_factory=dict)

    def poll(self, now: float) -> GaugeSnapshot:
        """The gauges at `now` (seconds on a clock that never goes back). Within `FAST_SECONDS`: the last ones again."""
        if now - self.latest.taken < FAST_SECONDS:
            return self.latest
        gpus = self._read(now)
        host = self.host()
        peak = _most(self.latest.host_peak_bytes, host.used_bytes)
        seen = (*self.latest.host_history, host.used_bytes)[-HISTORY:]
        self.latest = GaugeSnapshot(now, self._rows(gpus, now), host, peak, self._problem, seen)
        return self.latest

    def close(self) -> None:
        self.reader.close()
        self._is_open = False

    def _is_due(self, what: str, now: float, every: float) -> bool:
        if now < self._due.get(what, float("-inf")):
            return False
        self._due[what] = now + every
        return True

    def _read(self, now: float) -> tuple[Gpu, ...]:
        if not self._is_open:
            if not self._is_due("open", now, REOPEN_SECONDS):
                return ()
            self._problem = self.reader.open() or ""
            self._is_open = not self._problem
            if not self._is_open:
                return ()
        processes = self._is_due("processes", now, PROCESS_SECONDS)
        gpus = self.reader.snapshot(slow=self._is_due("slow", now, SLOW_SECONDS), processes=processes)
        if gpus and all(gpu.is_silent for gpu in gpus):  # let go, so that a driver that comes back is found
            self._problem = gpus[0].problem
            self._due["open"] = now + REOPEN_SECONDS
            self.close()
        if processes:
            return self.details(gpus)
        tracks = [self._tracks.get(_key(gpu)) for gpu in gpus]
        return tuple(  # between two process lists, the described processes of the last one
            replace(gpu, processes=track.gpu.processes) if track is not None and gpu.processes else gpu
            for gpu, track in zip(gpus, tracks, strict=True)
        )

    def _rows(self, gpus: tuple[Gpu, ...], now: float) -> tuple[GpuGauge, ...]:
        self._tracks = {key: replace(row, stale=True) for key, row in self._tracks.items()}
        for gpu in gpus:
            before = self._tracks.get(_key(gpu)) or GpuGauge(gpu, None, stale=True)
            history = (*before.history, gpu.used_bytes)[-HISTORY:]
            if gpu.is_silent:
                row = replace(before, gpu=replace(before.gpu, problem=gpu.problem), history=history)
            else:
                row = GpuGauge(gpu, now, False, history, _most(before.peak_bytes, gpu.used_bytes))
            self._tracks[_key(gpu)] = row
        return tuple(self._tracks.values())


def _most(*sizes: int | None) -> int | None:
    return max((size for size in sizes if size is not None), default=None)


def _key(gpu: Gpu) -> tuple[int, str]:
    return gpu.index, gpu.uuid if gpu.mig else ""
