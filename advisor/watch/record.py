"""Writes the record of a run: a folder that can be read at every moment, also after a kill -9 of its writer.

    output.log     what the command printed on its terminal, or on standard output and error together
    errors.log     standard error, where it went elsewhere than standard output
    samples.jsonl  the gauges and marks, one JSON value a line, only ever appended to:
        {"v": 1, "began": 1763740800.0, "command": [...], "host": "node7", …}     the first line; times below count
                                                                               from `began`, in tenths of a second; with
                                       the watcher's number and birth, the kernel's start and its count of kills
        {"column": 3, "kind": "gpu", "name": "GPU 0 …", "total": 85899345920, "pid": …, "gpu": 0}   a gauge appears
        [120, 0, 18432, 3, 40960]      12.0 s: gauge 0 has 18432 MiB, gauge 3 has 40960 MiB; the others have not changed
                                       by a MiB since; null instead of MiB: the gauge has ended or does not answer
        {"t": 121, "phase": "actor_update"}         a mark in the output
        {"t": 130, "counter": "step", "count": 12}  a step that the output counts
        {"t": 140, "oom_kills": 1, "group": "/sys/fs/cgroup/…"}  the kernel's counter rose by so many
        {"t": 160, "node_kills": 0}                 what the kernel killed on the whole node meanwhile
        {"t": 150, "alert": 0, "mib": 38912}        gauge 0 passed the level that was asked for
        {"t": 155, "trouble": "…"}     a reading failed; there are fewer of them from here on
        {"t": 160, "end": {"signal": 9}}            how the command ended; without this line, the watcher ended first
        {"told": {"verdict": "oom", …}}             what a diagnosis found once the record was closed
    ring.bin       the last minute ten times a second, in place: 8 bytes "rlring1\\0", two little-endian uint32 (slots,
                   gauges), then slots of one float64 (seconds since `began`, 0: empty) and one int64 a gauge (MiB, -1:
                   unknown); gauges in the order of their columns, those without a process only. Slots are written in
                   turn; the newest has the greatest time. The run's group (without one, the RAM) is read for each
                   slot, the cards as often as their driver's time allows, the host's other gauges where the first
                   moved, or twice a second. Written twice a second: a kill -9 costs half a second at most
    kernel.log     what the kernel said of memory while the run ended, and its counters, as a log that can be diagnosed
    watch.log      peaks and the end in words, likewise
    ray-logs/      the ends of Ray's own logs, where the run failed and there are such
    command.sh     the command, its secrets taken out
    attempt.json   under --retry: which attempt it is, the record before it, its changes (in words, and as settings),
                   the step it resumed from
    case.yaml      likewise, where the changes helped: the case that was made of it

A reader leaves out a last line that was cut. samples.jsonl grows by `RATE` bytes a second at most over the life of a
run (`ROOM` at once): where more changes, several samples become one, of which each gauge's highest value is kept.
20 MB a day are thus never passed; the output's own size is the command's.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from advisor.units import MIB
from advisor.watch.gauges import Gauge
from advisor.watch.record_files import RING, SAMPLES

VERSION = 1
RATE = 220.0
"""Bytes a second: 19.0 MB a day."""
ROOM = 200_000
SLOTS = 600
_TOGETHER = 5
"""Slots that are written at once, half a second of them; a divisor of `SLOTS`."""
MAGIC = b"rlring1\0"
HEAD = struct.Struct("<8sII")
_TIME = struct.Struct("<d")
_ENCODED = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Record(Struct):
    """The writer. Times are seconds since `began`."""

    folder: Path
    _fd: int
    _written: int = 0
    _gauges: list[Gauge] = field(default_factory=list)
    _last: dict[int, int | None] = field(default_factory=dict)
    _pending: dict[int, int | None] = field(default_factory=dict)

    @classmethod
    def create(cls, folder: Path, about: Mapping[str, Any], fd: int | None = None) -> Record:
        """Make the folder (readable for its owner only) and the first line. Raises OSError, also where one is there.
        `fd`: the samples' file, where it was opened before."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        record = cls(folder, os.open(folder / SAMPLES, flags, 0o600) if fd is None else fd)
        record._line({"v": VERSION, **about})
        return record

    def column(self, gauge: Gauge) -> int:
        """A new gauge; its number."""
        number = len(self._gauges)
        self._gauges.append(gauge)
        known = {"kind": gauge.kind, "name": gauge.name, "total": gauge.total, "pid": gauge.pid, "gpu": gauge.gpu}
        self._line({"column": number, **{name: value for name, value in known.items() if value is not None}})
        return number

    def sample(self, at: float, values: Mapping[int, int | None]) -> None:
        """What the gauges show (column → bytes), as far as it has changed and there is room."""
        for column, value in values.items():
            size = None if value is None else round(value / MIB)
            waiting = self._pending.get(column)
            if column in self._pending and waiting is not None and size is not None:
                size = max(size, waiting)
            if column in self._pending or self._last.get(column, -1) != size:
                self._pending[column] = size
        if self._pending and self._written <= ROOM + RATE * at:
            self.flush(at)

    def flush(self, at: float) -> None:
        if self._pending:
            self._line([round(at * 10), *(part for pair in sorted(self._pending.items()) for part in pair)])
            self._last.update(self._pending)
            self._pending.clear()

    def mark(self, at: float, **said: Any) -> None:
        """One event; events are few, a flood of them is cut off as samples are."""
        if self._written <= 2 * ROOM + RATE * at or "end" in said:
            self._line({"t": round(at * 10), **said})

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._fd)

    def _line(self, value: Any) -> None:
        """One write, so that it is whole or missing; a full disk costs samples, not the run."""
        data = _ENCODED(value).encode("utf-8", "replace") + b"\n"
        with suppress(OSError):
            self._written += os.write(self._fd, data)


class Ring(Struct):
    """The last minute in a file of fixed size. (Not mapped: where the disk is full, writing to a map kills.)"""

    width: int
    _fd: int
    _slot: struct.Struct
    _next: int = 0
    _latest: bytes = b""
    """The gauges of the newest slot."""
    _unwritten: bytearray = field(default_factory=bytearray)
    """The newest slots, not in the file yet."""

    @classmethod
    def create(cls, folder: Path, width: int) -> Ring:
        """For so many gauges. Raises OSError."""
        slot = struct.Struct(f"<d{width}q")
        fd = os.open(folder / RING, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        ring = cls(width, fd, slot)
        try:
            os.pwrite(fd, HEAD.pack(MAGIC, SLOTS, width) + bytes(SLOTS * slot.size), 0)
        except OSError:
            ring.close()
            raise
        return ring

    def put(self, at: float, values: Sequence[int | None]) -> None:
        """One reading, in the place of the oldest."""
        sizes = (-1 if value is None else value // MIB for value in values)
        self._latest = self._slot.pack(0.0, *sizes)[_TIME.size :]
        self.again(at)

    def again(self, at: float) -> None:
        self._unwritten += _TIME.pack(max(at, 1e-9)) + self._latest
        self._next = (self._next + 1) % SLOTS
        if self._next % _TOGETHER == 0:
            self.flush()

    def flush(self) -> None:
        end = HEAD.size + (self._next or SLOTS) * self._slot.size
        with suppress(OSError):
            os.pwrite(self._fd, self._unwritten, end - len(self._unwritten))
        self._unwritten.clear()

    def close(self) -> None:
        self.flush()
        with suppress(OSError):
            os.close(self._fd)
