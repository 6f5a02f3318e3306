"""Follows the attempts of a run that came back: which record followed which, what each held at most, as one story."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from advisor.watch.listing import ListedRecord, PlannedPeak, list_records
from advisor.watch.measured import PhasePeak, measured_in
from advisor.watch.record_files import ATTEMPT
from advisor.watch.recording import RecordError, Recording, Series, read_record


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
    """All attempts of the run that this record is one of, the first first; () where it is no attempt of several.

    They lie in one folder, as `watch --retry` writes them.
    """
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
    """The attempts as one record, with the time between them; a gauge of one name is one series. Raises RecordError,
    OSError."""
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
