"""A record read back: series, phases and steps. What was cut off by a kill -9 is simply not there."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.language import say
from advisor.units import MIB
from advisor.watch.gauges import Gauge
from advisor.watch.names import ERRORS, KERNEL, OUTPUT, RING, SAMPLES, WORDS
from advisor.watch.record import HEAD, MAGIC, VERSION
from advisor.words import PHASES, Phase


class RecordError(ValueError):
    """A folder that is no record: one sentence saying which and why."""


class Series(Struct):
    """One gauge over time: its value from each moment on until the next. -1: ended or not answering."""

    gauge: Gauge
    times: array[float] = field(default_factory=lambda: array("d"))
    """Seconds since the record began."""
    sizes: array[int] = field(default_factory=lambda: array("q"))
    """Bytes."""

    @property
    def peak(self) -> int | None:
        """The most it ever showed."""
        return max((size for size in self.sizes if size >= 0), default=None)


class Alert(Struct, frozen=True):
    """A level that was passed."""

    at: float
    gauge: str
    bytes: int


class Recording(Struct):
    """A whole record."""

    folder: Path
    began: float = 0.0
    """Epoch seconds."""
    length: float = 0.0
    """Seconds until the last line."""
    command: tuple[str, ...] = ()
    series: list[Series] = field(default_factory=list)
    phases: list[tuple[float, Phase]] = field(default_factory=list)
    steps: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    """Counter ("step", "done", "epoch" …) → (time, count)."""
    alerts: list[Alert] = field(default_factory=list)
    oom_kills: int = 0
    end: dict[str, Any] | None = None
    """{"signal": 9} or {"code": 1}; None: the watcher ended before the run."""

    @property
    def logs(self) -> tuple[Path, ...]:
        """What can be read as logs of this run."""
        found = (self.folder / name for name in (OUTPUT, ERRORS, KERNEL, WORDS))
        return tuple(path for path in found if path.is_file() and path.stat().st_size)

    def of_kind(self, kind: str) -> list[Series]:
        """The gauges of one kind."""
        return [one for one in self.series if one.gauge.kind == kind]


def _no_record(folder: Path) -> str:
    what = {"file": clean_line(str(folder)), "samples": SAMPLES}
    return say("{file}: is no record of `watch` (there is no {samples} in it)", **what)


def logs_in(folder: Path) -> tuple[Path, ...]:
    """What of a record can be read as logs of its run. Raises RecordError where there is no record."""
    if not (folder / SAMPLES).is_file():
        raise RecordError(_no_record(folder))
    return Recording(folder).logs


def read_record(folder: Path) -> Recording:
    """Read it back, whatever state it is in. Raises RecordError where there is none, OSError."""
    path = folder / SAMPLES if folder.is_dir() else folder
    if not path.is_file() or path.name != SAMPLES:
        raise RecordError(_no_record(folder))
    recording = Recording(path.parent)
    for place, value in enumerate(_values(path)):
        if place == 0:
            _head(recording, value, path)
        elif isinstance(value, list):
            _sample(recording, value)
        elif isinstance(value, dict):
            _event(recording, value)
    if recording.began == 0.0:
        raise RecordError(say("{file}: the record is empty", file=clean_line(str(path))))
    _add_ring(recording)
    return recording


def _values(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                try:
                    yield json.loads(line)
                except ValueError:
                    continue


def _head(recording: Recording, value: Any, path: Path) -> None:
    if not isinstance(value, dict) or value.get("v") != VERSION or not isinstance(value.get("began"), (int, float)):
        raise RecordError(say("{file}: not a record that this version reads", file=clean_line(str(path))))
    recording.began = float(value["began"])
    recording.command = tuple(clean_line(str(word)) for word in value.get("command") or ())


def _sample(recording: Recording, value: list[Any]) -> None:
    at = _seconds(value[0] if value else None)
    if at is None:
        return
    recording.length = max(recording.length, at)
    for column, size in zip(value[1::2], value[2::2], strict=False):
        if isinstance(column, int) and 0 <= column < len(recording.series):
            one = recording.series[column]
            one.times.append(at)
            one.sizes.append(size * MIB if isinstance(size, int) else -1)


def _event(recording: Recording, value: dict[str, Any]) -> None:
    if "column" in value:
        total, pid, gpu = (value.get(name) for name in ("total", "pid", "gpu"))
        name, kind = clean_line(str(value.get("name", "")), 200), clean_line(str(value.get("kind", "")), 40)
        recording.series.append(Series(Gauge(kind, name, total, pid, gpu)))
        return
    at = _seconds(value.get("t"))
    if at is None:
        return
    recording.length = max(recording.length, at)
    if value.get("phase") in PHASES:
        recording.phases.append((at, cast(Phase, value["phase"])))
    elif isinstance(value.get("count"), (int, float)):
        recording.steps.setdefault(clean_line(str(value.get("counter")), 40), []).append((at, float(value["count"])))
    elif isinstance(value.get("oom_kills"), int):
        recording.oom_kills += value["oom_kills"]
    elif isinstance(value.get("alert"), int) and value["alert"] < len(recording.series):
        size = value.get("mib")
        name = recording.series[value["alert"]].gauge.name
        recording.alerts.append(Alert(at, name, size * MIB if isinstance(size, int) else 0))
    elif isinstance(value.get("end"), dict):
        recording.end = value["end"]


def _seconds(value: object) -> float | None:
    return value / 10 if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _add_ring(recording: Recording) -> None:
    """The last minute ten times a second: merged into the series, by time."""
    rows = ring_rows(recording.folder)
    if not rows:
        return
    recording.length = max(recording.length, rows[-1][0])
    fixed = [one for one in recording.series if one.gauge.pid is None]
    for place, one in enumerate(fixed[: len(rows[0][1])]):
        points = dict(zip(one.times, one.sizes, strict=True))
        points.update((at, -1 if sizes[place] < 0 else sizes[place] * MIB) for at, sizes in rows)
        ordered = sorted(points.items())
        one.times, one.sizes = array("d", (at for at, _ in ordered)), array("q", (size for _, size in ordered))


def ring_rows(folder: Path) -> list[tuple[float, tuple[int, ...]]]:
    """(seconds, MiB of each gauge), oldest first; [] where there is no ring, or it is not whole."""
    try:
        data = (folder / RING).read_bytes()
        magic, slots, width = HEAD.unpack_from(data)
    except (OSError, struct.error):
        return []
    slot = struct.Struct(f"<d{width}q")
    if magic != MAGIC or len(data) < HEAD.size + slots * slot.size:
        return []
    rows = [slot.unpack_from(data, HEAD.size + place * slot.size) for place in range(slots)]
    return sorted((float(row[0]), tuple(row[1:])) for row in rows if row[0] > 0)
