"""Measures a run by its record: the peak of every phase and its owners, what grows, and what would be full first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.language import say, spoken
from advisor.watch.gauges import SHM, STORE, shown_name
from advisor.watch.growth import LEAST, Growth, growth_of
from advisor.watch.record_files import LONGEST, SAMPLES, STEP_COUNTERS
from advisor.watch.recording import Recording, Series, read_record
from advisor.words import Phase

PeakPlace = Literal["gpu", "host"]
_SECOND = 1.5
"""Seconds between two samples, at most, where a gauge moves."""
_COUNTERS = (*STEP_COUNTERS, "epoch")
"""What is counted, the most trusted first."""
_NO_STEP = ("unknown", "model_load", "rollout_init", "checkpoint", "validation")
"""Phases that not every step has."""
_FELL_BACK = 0.5
"""Of the highest count: below it another run began."""
_MOST_OWNERS = 8
_NEGLIGIBLE = 0.02
"""Of what is held: so little need not be told of."""


class Held(Struct, frozen=True):
    """What one owner held at a peak."""

    owner: str
    bytes: int
    processes: int = 1


class PhasePeak(Struct, frozen=True):
    """The most that was in use in one phase, on the fullest card or on the host."""

    place: PeakPlace
    phase: Phase
    bytes: int
    gauge: str
    at: float
    """Seconds since the record began."""
    capacity: int | None
    owners: tuple[Held, ...] = ()
    visits: int = 1
    """How often the phase was seen from its begin to its end."""


class Grown(Struct, frozen=True):
    """How one gauge (or owner) went from step to step in one phase."""

    gauge: str
    phase: Phase
    growth: Growth
    capacity: int | None = None


class Forecast(Struct, frozen=True):
    """What would be full first at the rate seen."""

    gauge: str
    phase: Phase
    steps: tuple[float, float]
    """At the fast and at the slow end of the slope."""
    seconds_per_step: float


class Measured(Struct, frozen=True):
    """A record, understood."""

    folder: Path
    length: float
    """Seconds."""
    steps: int
    peaks: tuple[PhasePeak, ...]
    grown: tuple[Grown, ...]
    """Those that leak, fastest (by share of what they may hold) first."""
    level: tuple[str, ...]
    """Gauges of which enough was seen to say that they do not grow."""
    first: Forecast | None = None
    alerts: tuple[str, ...] = ()
    oom_kills: int = 0
    node_kills: int | None = None
    """What the kernel killed for want of memory on the whole node; None: not known."""
    last_phase: Phase = "unknown"
    """In which the record ends."""
    last_phase_at: float = 0.0
    """Seconds since the record began when that phase did."""
    last_step: int | None = None
    """The last step as the output counts them, those before a resumption with it."""
    answers: Growth | None = None
    """How the longest answer went from step to step, in tokens; None where the output does not show it."""

    def peak(self, place: PeakPlace, phase: Phase) -> PhasePeak | None:
        return next((one for one in self.peaks if one.place == place and one.phase == phase), None)


class _StepSlice(Struct, frozen=True):
    """Time in one phase of one step."""

    begin: float
    end: float
    step: int
    phase: Phase


def measured_in(folder: Path) -> Measured:
    """What the record in a folder says. Raises RecordError, OSError."""
    return _read(folder)[1]


def recording_in(folder: Path) -> Recording:
    """The record itself; read once as long as it stays as it is. Raises RecordError, OSError."""
    return _read(folder)[0]


def _read(folder: Path) -> tuple[Recording, Measured]:
    path = folder / SAMPLES
    return _read_once(folder, path.stat().st_mtime_ns if path.exists() else 0, spoken())


@lru_cache(maxsize=4)
def _read_once(folder: Path, _: int, language: str) -> tuple[Recording, Measured]:
    recording = read_record(folder)
    return recording, measure_recording(recording)


def measure_recording(recording: Recording) -> Measured:
    """From a record to what it means."""
    borders = step_times(recording)
    slices = list(_step_slices(recording, borders))
    found = [
        Grown(shown_name(one.gauge.name), phase, growth_of(sizes), one.gauge.total)
        for one in (*_binding(recording), *recording.of_kind("gpu"))
        for phase, sizes in _per_step(one, slices).items()
    ]
    found += _owners_grown(recording, slices)
    leaks = [one for one in found if one.growth.leaks]
    leaks.sort(key=lambda one: -one.growth.per_step / (one.capacity or max(one.growth.level, 1.0)))
    leaking = {one.gauge for one in leaks}
    level = {one.gauge for one in found if one.growth.is_known and one.gauge not in leaking}
    told = (say("{gauge} after {at:.0f} s", gauge=shown_name(one.gauge), at=one.at) for one in recording.alerts)
    last_phase_at, last_phase = recording.phases[-1] if recording.phases else (0.0, "unknown")
    return Measured(
        recording.folder,
        recording.length,
        max(0, len(borders) - 1),
        tuple(_peaks(recording, slices)),
        tuple(leaks),
        tuple(sorted(level)),
        _forecast(leaks, borders),
        tuple(told),
        recording.oom_kills,
        recording.killed_meanwhile,
        last_phase,
        last_phase_at,
        next((int(recording.steps[name][-1][1]) for name in STEP_COUNTERS if recording.steps.get(name)), None),
        _answers(recording, borders),
    )


def _answers(recording: Recording, borders: Sequence[float]) -> Growth | None:
    """What the output shows of the longest answers, a value a step: the last one before the next step begins."""
    marks = recording.steps.get(LONGEST, [])
    times = [at for at, _ in marks]
    ends = [bisect_right(times, end) for end in (*borders[1:], recording.length)]
    values = [marks[place - 1][1] for place in ends if place]
    return growth_of(values) if values else None


def with_phase(crash: Crash, measured: Measured | None) -> Crash:
    """The crash, in the phase that the record ends in where the logs show none."""
    if measured is None or crash.phase != "unknown" or measured.last_phase == "unknown" or not crash.evidence:
        return crash
    because = say(
        "the record: the output was in it from second {begin:.0f} to the end at {end:.0f}",
        begin=measured.last_phase_at,
        end=measured.length,
    )
    first = replace(crash.evidence[0], phase=measured.last_phase)
    return replace(crash, phase=measured.last_phase, phase_because=because, evidence=(first, *crash.evidence[1:]))


# --- steps and phases ----------------------------------------------------------------------------------------------


def step_times(recording: Recording) -> list[float]:
    """When each step began, by the best counter that the output shows; by returns of the first phase without one."""
    counted = [times for name in _COUNTERS for times in [_rises(recording.steps.get(name, []))] if len(times) >= 3]
    if counted:
        return next((times for times in counted if len(times) >= LEAST), max(counted, key=len))
    returns: dict[Phase, list[float]] = {}
    for at, phase in recording.phases:
        if phase not in _NO_STEP:
            returns.setdefault(phase, []).append(at)
    return max(returns.values(), key=len, default=[])


def _rises(counts: Sequence[tuple[float, float]]) -> list[float]:
    """Times at which a count rose; where it fell back, another run began and only that one counts."""
    times: list[float] = []
    highest = last = -1.0
    for at, count in counts:
        if count < last and count < highest * _FELL_BACK:
            times, highest = [], -1.0
        if count > highest:
            highest = count
            times.append(at)
        last = count
    return times


def _step_slices(recording: Recording, borders: Sequence[float]) -> Iterator[_StepSlice]:
    """The record cut at every step and phase."""
    phases: list[tuple[float, Phase]] = [(0.0, "unknown"), *recording.phases]
    cuts = sorted({0.0, *(at for at, _ in phases), *borders, recording.length + 0.1})
    starts = [at for at, _ in phases]
    for begin, end in pairwise(cuts):
        phase = phases[bisect_right(starts, begin) - 1][1]
        yield _StepSlice(begin, end, bisect_right(borders, begin), phase)


# --- series --------------------------------------------------------------------------------------------------------


def _binding(recording: Recording) -> list[Series]:
    """The host memory that ends the run: its limit where there is one, else the node's RAM."""
    limited = [one for one in recording.of_kind("limit") if one.gauge.total]
    return limited or recording.of_kind("host")


def value_at(series: Series, at: float) -> int | None:
    """Bytes at a moment; None where nothing was known."""
    place = bisect_right(series.times, at) - 1
    return series.sizes[place] if place >= 0 and series.sizes[place] >= 0 else None


def _highest(series: Series, begin: float, end: float) -> tuple[int, float] | None:
    """The most between two moments, and when. What was held at the first moment counts unless the next sample follows
    at once: each sample is the highest of its second, so that the last of one phase would else be told of the next."""
    following = bisect_right(series.times, begin)
    last = bisect_right(series.times, end - 1e-9)
    at_once = following < last and series.times[following] <= begin + _SECOND
    carried = following > 0 and (series.times[following - 1] == begin or not at_once)
    first = following - 1 if carried else following
    best: tuple[int, float] | None = None
    for place in range(first, last):
        size = series.sizes[place]
        if size >= 0 and (best is None or size > best[0]):
            best = size, max(begin, series.times[place])
    return best


def _per_step(series: Series, slices: Sequence[_StepSlice]) -> dict[Phase, list[float]]:
    """Phase → the most in each step, in order."""
    found: dict[Phase, dict[int, int]] = {}
    for step_slice in slices:
        peak = _highest(series, step_slice.begin, step_slice.end)
        if peak is not None and step_slice.step > 0:
            steps = found.setdefault(step_slice.phase, {})
            steps[step_slice.step] = max(steps.get(step_slice.step, 0), peak[0])
    return {phase: [float(size) for _, size in sorted(steps.items())] for phase, steps in found.items()}


def _owners_grown(recording: Recording, slices: Sequence[_StepSlice]) -> Iterator[Grown]:
    """Roles whose processes together grow, whatever the phase."""
    for kind, where in (("rss", "RAM"), ("gpu_process", "GPU")):
        steps: dict[str, dict[int, int]] = {}
        for step_slice in slices:
            held: dict[str, int] = {}
            for one in recording.of_kind(kind):
                size = value_at(one, (step_slice.begin + step_slice.end) / 2)
                if size is not None:
                    held[one.gauge.name] = held.get(one.gauge.name, 0) + size
            for name, size in held.items() if step_slice.step > 0 else ():
                mine = steps.setdefault(name, {})
                mine[step_slice.step] = max(mine.get(step_slice.step, 0), size)
        for name, values in steps.items():
            owner = say("{name} ({where})", name=shown_name(name), where=where)
            yield Grown(owner, "unknown", growth_of([float(size) for _, size in sorted(values.items())]))


# --- peaks ---------------------------------------------------------------------------------------------------------


def _peaks(recording: Recording, slices: Sequence[_StepSlice]) -> Iterator[PhasePeak]:
    places: dict[PeakPlace, list[Series]] = {"gpu": recording.of_kind("gpu"), "host": _binding(recording)}
    for place, many in places.items():
        best: dict[Phase, tuple[int, float, Series]] = {}
        for one in many:
            for step_slice in slices:
                peak = _highest(one, step_slice.begin, step_slice.end)
                if peak is not None and peak[0] > best.get(step_slice.phase, (-1,))[0]:
                    best[step_slice.phase] = (*peak, one)
        went_well = recording.end is not None and recording.end.get("code") == 0
        whole = recording.phases if went_well else recording.phases[:-1]  # else the last one was cut off
        for phase, (size, at, one) in best.items():
            owners, visits = _owners(recording, one, at, size), sum(each == phase for _, each in whole)
            yield PhasePeak(place, phase, size, shown_name(one.gauge.name), at, one.gauge.total, owners, visits)


def _owners(recording: Recording, full: Series, at: float, size: int) -> tuple[Held, ...]:
    """Who held it then: processes by role, shared memory, and the rest that nobody is known for."""
    held: dict[str, list[int]] = {}
    if full.gauge.kind == "gpu":
        of_card = [one for one in recording.of_kind("gpu_process") if one.gauge.gpu == full.gauge.gpu]
    else:
        of_card = recording.of_kind("rss")
        store, space = (
            max((value_at(one, at) or 0 for one in recording.of_kind(kind)), default=0) for kind in ("store", "shm")
        )
        for name, shared in ((shown_name(STORE), store), (SHM, space - max(store, 0))):
            if shared > 0:
                held[name] = [shared]
    for one in of_card:
        if value := value_at(one, at):
            held.setdefault(shown_name(one.gauge.name), []).append(value)
    rows = sorted((Held(name, sum(sizes), len(sizes)) for name, sizes in held.items()), key=lambda one: -one.bytes)
    rest = size - sum(one.bytes for one in rows)
    others = (Held(say("everything else"), rest, 0),) if rest > size * _NEGLIGIBLE else ()
    return (*rows[:_MOST_OWNERS], *others)


def _forecast(leaks: Sequence[Grown], borders: Sequence[float]) -> Forecast | None:
    """The gauge and phase that reach their capacity first."""
    told = [(left, one) for one in leaks if one.capacity and (left := one.growth.steps_left(one.capacity))]
    if not told or len(borders) < 2:
        return None
    steps, one = min(told, key=lambda pair: pair[0][0])
    return Forecast(one.gauge, one.phase, steps, (borders[-1] - borders[0]) / (len(borders) - 1))
