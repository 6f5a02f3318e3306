"""Lists the records of a folder: of each its command, how long it ran, how it ended, and which attempt it followed.

Only the beginning and the end of a record are read, a folder may hold many, of days each; all of each of the attempts
of one run, which are one story.
"""

from __future__ import annotations

import json
import os
import signal
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import Struct, ValidationError, convert

from advisor.hostile import clean_line
from advisor.language import say
from advisor.watch.measured import PhasePeak, measured_in
from advisor.watch.process_tree import born
from advisor.watch.record_files import ATTEMPT, RING, SAMPLES, STEP_COUNTERS
from advisor.watch.recording import RecordError, Recording, Series, how_it_ended, number_in, read_record
from advisor.words import MEMORIES, MEMORY_TITLES, PHASE_TITLES, PHASES, Memory, Phase, Verdict

_END = 1 << 18
"""Bytes of a record's end that are read."""
_LONGEST_HEAD = 1 << 16
_FRESH = 5.0
"""Seconds without a reading from which on nobody is watching."""


class PlannedPeak(Struct, frozen=True):
    """The fullest phase of one place as the plan of a retry expected it."""

    place: Literal["gpu", "host"]
    phase: Phase
    bytes: int


class ListedRecord(Struct, frozen=True):
    """One record in short."""

    folder: Path
    began: float
    """Epoch seconds."""
    length: float
    """Seconds until the last line."""
    command: tuple[str, ...]
    end: dict[str, Any] | None
    """{"signal": 9} or {"code": 1}; None: it runs, or the watcher ended first."""
    runs: bool
    attempt: int = 1
    after: str = ""
    """Name of the record of the attempt before; "": this is the first."""
    changed: tuple[str, ...] = ()
    """What was changed after that one: "trainer.save_freq -1 -> 20"."""
    from_step: int | None = None
    """The step of the checkpoint from which it went on; None: from the beginning, or it is not known."""
    planned: PlannedPeak | None = None
    """What the plan expected of this attempt; None of the first one."""
    step: int | None = None
    """The last step that the output counted."""
    verdict: Verdict | None = None
    """What the crash was; None: nobody has diagnosed it."""
    memory: Memory = "unknown"
    phase: Phase = "unknown"

    @property
    def ended(self) -> str:
        if self.runs:
            return say("runs")
        if self.verdict == "oom":
            return say("{memory} ran out: {phase}", memory=MEMORY_TITLES[self.memory], phase=PHASE_TITLES[self.phase])
        return end_words(self.end)


def end_words(end: Mapping[str, Any] | None) -> str:
    """How a command ended, of what its record says of it."""
    if end is None:
        return say("how it ended is not known: the watcher ended first")
    if "sent" in end:
        return say("stopped by {signal}", signal=_signal_name(end["sent"]))
    if "signal" in end:
        return say("killed by {signal}", signal=_signal_name(end["signal"]))
    code = end.get("code")
    return say("ended well") if code == 0 else say("exit code {code}", code="?" if code is None else code)


def list_records(folder: Path) -> list[ListedRecord]:
    """The records in a folder, itself one or not, the oldest first. Raises OSError where it cannot be read."""
    folders = [folder, *(child for child in folder.iterdir() if child.is_dir())]
    found = [record for each in folders if (each / SAMPLES).is_file() for record in _read(each)]
    return sorted(found, key=lambda record: (record.began, record.attempt))


def _read(folder: Path) -> Iterator[ListedRecord]:
    with suppress(OSError, ValueError, TypeError, RecursionError):
        head, lines = _ends(folder / SAMPLES)
        marks = [line for line in lines if isinstance(line, dict)]
        last = [line.get("t") if isinstance(line, dict) else line[0] for line in lines if line]
        began = number_in(head.get("began"))
        if began is None:
            return
        tenths = [time for each in last if (time := number_in(each)) is not None]
        ends = [how_it_ended(mark["end"]) for mark in marks if isinstance(mark.get("end"), dict)]
        counted = {
            mark["counter"]: int(count)
            for mark in marks
            if mark.get("counter") in STEP_COUNTERS and (count := number_in(mark.get("count"))) is not None
        }
        told: dict[str, Any] = {}
        for mark in marks:
            told |= mark["told"] if isinstance(mark.get("told"), dict) else {}
        attempt = _attempt(folder)
        yield ListedRecord(
            folder,
            began,
            max(tenths, default=0) / 10,
            tuple(clean_line(str(word), 200) for word in head.get("command") or ()),
            ends[-1] if ends else None,
            not ends and _is_watched(folder, _whole(head.get("watcher")), head.get("born")),
            _whole(attempt.get("attempt")) or 1,
            clean_line(Path(str(attempt.get("before") or "")).name, 200),
            tuple(clean_line(str(change), 300) for change in attempt.get("changes") or ()),
            _whole(attempt.get("from_step")),
            _planned(attempt.get("planned")),
            next((counted[name] for name in STEP_COUNTERS if name in counted), None),
            next((word for word in get_args(Verdict) if word == told.get("verdict")), None),
            next((word for word in MEMORIES if word == told.get("memory")), "unknown"),
            next((word for word in PHASES if word == told.get("phase")), "unknown"),
        )


def _is_watched(folder: Path, watcher: int | None, since: object) -> bool:
    """Its watcher is there; or, where numbers of processes mean others (a container, another node), it still writes."""
    if watcher is None:
        return False
    now = born(watcher)
    return (now is not None and since in (None, now)) or time.time() - (written_at(folder) or 0.0) < _FRESH


def written_at(folder: Path) -> float | None:
    """Epoch seconds of the last reading, which comes twice a second; None where there is none."""
    with suppress(OSError):
        return (folder / RING).stat().st_mtime
    return None


def _attempt(folder: Path) -> dict[str, Any]:
    """What `watch --retry` wrote beside the record; {}: nothing."""
    try:
        with (folder / ATTEMPT).open("rb") as file:
            told = json.loads(file.read(_LONGEST_HEAD))
    except (OSError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def settings_of(folder: Path) -> tuple[tuple[str, str | None], ...]:
    """Key and new value of each setting that an attempt had beside the original."""
    pairs = _attempt(folder).get("set")
    found = [pair for pair in pairs if isinstance(pair, list) and len(pair) == 2] if isinstance(pairs, list) else []
    return tuple((str(key), None if new is None else str(new)) for key, new in found)


def _planned(told: object) -> PlannedPeak | None:
    try:
        return convert(told, PlannedPeak)
    except ValidationError:
        return None


def _ends(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """The first line, and what is whole of the last ones."""
    with path.open("rb") as file:
        head = json.loads(file.readline(_LONGEST_HEAD))
        begin = max(file.tell(), os.fstat(file.fileno()).st_size - _END)
        cut = begin > file.tell()
        file.seek(begin)
        lines = file.read().splitlines(keepends=True)[1 if cut else 0 :]
    values = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            values.append(json.loads(line) if line.endswith(b"\n") else None)
    return (head if isinstance(head, dict) else {}), [value for value in values if value]


def add_told(folder: Path, **told: Any) -> None:
    """Append to a record that was closed what was found of it. A full disk costs the words."""
    with suppress(OSError), (folder / SAMPLES).open("ab") as file:
        file.write(json.dumps({"told": told}, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _signal_name(number: object) -> str:
    try:
        return signal.Signals(number).name  # type: ignore[arg-type]
    except ValueError:
        return clean_line(str(number), 20)


class AttemptTold(Struct, frozen=True):
    """One attempt of several."""

    record: ListedRecord
    peak: PhasePeak | None = None
    """The most that was in use where the plan looked (else where the first attempt died)."""

    @property
    def planned(self) -> PlannedPeak | None:
        """What was expected after the changes; None of the first attempt."""
        return self.record.planned


def attempts_of(folder: Path) -> tuple[AttemptTold, ...]:
    """All attempts of the run that this record is one of, the first first, out of one folder; () of a single one."""
    if not (folder / ATTEMPT).is_file():
        return ()
    try:
        beside = {each.folder.name: each for each in list_records(folder.absolute().parent)}
    except OSError:
        return ()
    one = beside.get(folder.absolute().name)
    chain: list[ListedRecord] = []
    while one is not None and one not in chain:
        chain.insert(0, one)
        one = beside.get(one.after)
    while chain:
        following = [each for each in beside.values() if each.after == chain[-1].folder.name and each not in chain]
        if not following:
            break
        chain.append(max(following, key=lambda each: each.began))
    return tuple(_told(each, chain) for each in chain) if len(chain) > 1 else ()


def _told(record: ListedRecord, chain: Sequence[ListedRecord]) -> AttemptTold:
    place = record.planned.place if record.planned is not None else "host" if chain[0].memory == "host" else "gpu"
    with suppress(RecordError, OSError):
        here = [peak for peak in measured_in(record.folder).peaks if peak.place == place]
        return AttemptTold(record, max(here, key=lambda peak: peak.bytes, default=None))
    return AttemptTold(record)


def joined(attempts: Sequence[AttemptTold]) -> Recording:
    """The attempts as one record; a gauge of one name is one series. Raises RecordError, OSError."""
    parts = [read_record(each.record.folder) for each in attempts]
    first = parts[0]
    whole = Recording(first.folder, first.began, command=first.command, end=parts[-1].end)
    places: dict[tuple[str, str, int | None], Series] = {}
    for part in parts:
        moved = part.began - first.began
        for one in part.series:
            gauge = one.gauge
            name = "" if gauge.kind == "limit" else gauge.name  # a group's own name differs from attempt to attempt
            series = places.setdefault((gauge.kind, name, gauge.pid), Series(gauge))
            series.times.extend(array("d", (moved + at for at in one.times)))
            series.sizes.extend(one.sizes)
            series.times.append(moved + part.length)  # from its end on nothing is known, until the next one begins
            series.sizes.append(-1)
        whole.phases += [(moved + at, phase) for at, phase in part.phases]
        whole.phases.append((moved + part.length, "unknown"))
        for name, marks in part.steps.items():
            whole.steps.setdefault(name, []).extend((moved + at, count) for at, count in marks)
        whole.alerts += part.alerts
        whole.oom_kills += part.oom_kills
        whole.length = moved + part.length
    whole.series = list(places.values())
    return whole
