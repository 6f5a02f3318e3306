"""Reads a record back as series, phases and steps. What was cut off by a kill -9 is simply not there."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from advisor.hostile import clean_line
from advisor.language import say
from advisor.units import MIB
from advisor.watch.gauges import Gauge, shown_name
from advisor.watch.record import HEAD, MAGIC, VERSION
from advisor.watch.record_files import ERRORS, KERNEL, OUTPUT, RING, SAMPLES, WORDS
from advisor.words import PHASES, Phase

_LONGEST_LINE = 1 << 20
"""Bytes; what is longer was not written by `watch`."""
_MOST_GAUGES = 4096
_LATEST = 1e12
"""No second and no count of a record lies beyond."""
_MOST_MIB = 1 << 43
"""What fits into 63 bits as bytes."""


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
    boot: str = ""
    """Which start of the kernel it was written under."""
    node_kills: int | None = None
    """What that kernel had counted on the whole node when the run began."""
    killed_meanwhile: int | None = None
    """What it counted there until the run ended."""
    grouped: bool = False
    """The kernel kills the run and its watcher at once."""
    end: dict[str, Any] | None = None
    """{"signal": 9} or {"code": 1}; None: the watcher ended before the run."""

    @property
    def logs(self) -> tuple[Path, ...]:
        """What can be read as logs of this run."""
        found = (self.folder / name for name in (OUTPUT, ERRORS, KERNEL, WORDS))
        return tuple(path for path in found if path.is_file() and path.stat().st_size)

    def of_kind(self, kind: str) -> list[Series]:
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
    values = _values(path)
    head = next(values, None)
    if head is None:
        raise RecordError(say("{file}: the record is empty", file=clean_line(str(path))))
    began = number_in(head.get("began")) if isinstance(head, dict) and head.get("v") == VERSION else None
    if not began:
        raise RecordError(say("{file}: not a record that this version reads", file=clean_line(str(path))))
    recording.began = began
    recording.command = tuple(clean_line(word) for word in head.get("command") or () if isinstance(word, str))
    recording.boot, recording.node_kills = _words(head.get("boot"), 40), _whole(head.get("node_kills"))
    recording.grouped = head.get("grouped") is True
    for value in values:
        if isinstance(value, list):
            _sample(recording, value)
        elif isinstance(value, dict):
            _event(recording, value)
    _add_ring(recording)
    return recording


def _values(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        while line := file.readline(_LONGEST_LINE):
            if line.endswith(b"\n"):
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError):
                    continue


def _sample(recording: Recording, value: list[Any]) -> None:
    at = _passed(recording, value[0] if value else None)
    for column, size in zip(value[1::2], value[2::2], strict=False):
        if at is not None and isinstance(column, int) and 0 <= column < len(recording.series):
            one = recording.series[column]
            one.times.append(at)
            one.sizes.append(_bytes(size))


def _event(recording: Recording, value: dict[str, Any]) -> None:
    if "column" in value:
        if len(recording.series) < _MOST_GAUGES:
            total, pid, gpu = (_whole(value.get(name)) for name in ("total", "pid", "gpu"))
            name, kind = _words(value.get("name"), 200), _words(value.get("kind"), 40)
            recording.series.append(Series(Gauge(kind, name, total, pid, gpu)))
        return
    at = _passed(recording, value.get("t"))
    if at is None:
        return
    phase, column = value.get("phase"), _whole(value.get("alert"))
    if isinstance(phase, str) and phase in PHASES:
        recording.phases.append((at, phase))
    elif (count := number_in(value.get("count"))) is not None:
        recording.steps.setdefault(_words(value.get("counter"), 40), []).append((at, count))
    elif (kills := _whole(value.get("oom_kills"))) is not None:
        recording.oom_kills += kills
    elif (kills := _whole(value.get("node_kills"))) is not None:
        recording.killed_meanwhile = kills
    elif column is not None and column < len(recording.series):
        size = max(_bytes(value.get("mib")), 0)
        recording.alerts.append(Alert(at, recording.series[column].gauge.name, size))
    elif isinstance(value.get("end"), dict):
        recording.end = how_it_ended(value["end"])


def _passed(recording: Recording, value: object) -> float | None:
    """Seconds, from tenths; the record is at least as long."""
    tenths = number_in(value)
    if tenths is not None:
        recording.length = max(recording.length, tenths / 10)
    return None if tenths is None else tenths / 10


# --- anybody may have written the record: what `watch` does not write is no value ------------------------------------


def how_it_ended(told: Mapping[str, object]) -> dict[str, int | bool]:
    """The end that a record tells: "code", "signal" and "sent" are numbers, "unknown" and "left" are facts."""
    numbers = {name: _whole(told.get(name)) for name in ("code", "signal", "sent")}
    known = {name: number for name, number in numbers.items() if number is not None}
    return {**known, **{name: True for name in ("unknown", "left") if told.get(name) is True}}


def number_in(value: object) -> float | None:
    """A second or a count, within what a record can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _LATEST:
        return None
    return float(value)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def _bytes(mib: object) -> int:
    """-1: not answering."""
    size = _whole(mib)
    return -1 if size is None or size >= _MOST_MIB else size * MIB


def _words(value: object, limit: int) -> str:
    return clean_line(value, limit) if isinstance(value, str) else ""


def _add_ring(recording: Recording) -> None:
    """The last minute ten times a second: merged into the series, by time."""
    rows = ring_rows(recording.folder)
    if not rows:
        return
    recording.length = max(recording.length, rows[-1][0])
    fixed = [one for one in recording.series if one.gauge.pid is None]
    for place, one in enumerate(fixed[: len(rows[0][1])]):
        points = dict(zip(one.times, one.sizes, strict=True))
        points.update((at, _bytes(sizes[place])) for at, sizes in rows)
        ordered = sorted(points.items())
        one.times, one.sizes = array("d", (at for at, _ in ordered)), array("q", (size for _, size in ordered))


def ring_rows(folder: Path) -> list[tuple[float, tuple[int, ...]]]:
    """(seconds, MiB of each gauge), oldest first; [] where there is no ring, or it is not whole."""
    try:
        data = (folder / RING).read_bytes()
        magic, slots, width = HEAD.unpack_from(data)
    except (OSError, struct.error):
        return []
    slot = struct.Struct(f"<d{min(width, _MOST_GAUGES)}q")
    if magic != MAGIC or len(data) < HEAD.size + slots * slot.size:
        return []
    rows = [slot.unpack_from(data, HEAD.size + place * slot.size) for place in range(slots)]
    return sorted((float(row[0]), tuple(row[1:])) for row in rows if 0 < row[0] < _LATEST)


class Band(Struct, frozen=True):
    """A phase from one moment to the next, in seconds."""

    begin: float
    end: float
    phase: Phase


class Curve(Struct, frozen=True):
    """One gauge in equal columns of time; None: nothing known there. Bytes."""

    name: str
    kind: str
    total: int | None
    values: tuple[int | None, ...]


def phase_bands(recording: Recording) -> tuple[Band, ...]:
    """Phases in order, neighbours alike joined; before the first mark the phase is not known."""
    marks: list[tuple[float, Phase]] = [(0.0, "unknown"), *recording.phases, (recording.length, "unknown")]
    found: list[Band] = []
    for (begin, phase), (end, _) in pairwise(marks):
        if end <= begin:
            continue
        if found and found[-1].phase == phase:
            found[-1] = Band(found[-1].begin, end, phase)
        else:
            found.append(Band(begin, end, phase))
    return tuple(found)


def downsampled(series: Series, columns: int, begin: float, end: float) -> Curve:
    """The highest value in each of `columns` slices between two moments; a value stays until the next."""
    values: list[int | None] = [None] * columns
    span = max(end - begin, 1e-9)
    current: int | None = None
    place = 0
    for column in range(columns):
        until = begin + span * (column + 1) / columns
        best = current
        while place < len(series.times) and series.times[place] < until:
            size = series.sizes[place]
            current = size if size >= 0 else None
            if current is not None and (best is None or current > best):
                best = current
            place += 1
        values[column] = best
    return Curve(shown_name(series.gauge.name), series.gauge.kind, series.gauge.total, tuple(values))


def plotted_series(recording: Recording) -> list[Series]:
    """The gauges worth a curve, cards first: those that a run can die of."""
    kinds = ("gpu", "limit", "host", "store", "shm")
    every = [one for kind in kinds for one in recording.of_kind(kind) if one.peak]
    limited = any(one.gauge.kind == "limit" and one.gauge.total for one in every)
    return [one for one in every if one.gauge.kind != "limit" or limited]


def axis_top(curves: Sequence[Curve]) -> int:
    """What an axis must reach: capacities where they are known, else the highest values."""
    return max((max(one.total or 0, *(value or 0 for value in one.values)) for one in curves), default=1) or 1
