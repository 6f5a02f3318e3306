"""Predicts what a run will hold and whether it fits: the one way to a ledger, for every face and every question.

In this order: the run is bound with its overrides; bad library versions add what they leak; the ledger is computed;
what the log read replaces what was predicted; peaks of a record do the same; what the crash proves beyond that is
added; Ray's threshold lowers the host's wall. What was measured was measured on the run of the log, and moves along.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from copy import copy
from functools import cached_property
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.language import say, sentences
from advisor.machine.inventory import Machine
from advisor.memory.batches import AT_CAP, LONGEST_ROW, row_lengths
from advisor.memory.calibrate import Correction, corrected, corrections, is_doubtful, needed_on_gpu, overcount
from advisor.memory.cells import ENGINE, Ledger, PhaseSum, Place
from advisor.memory.fit import Died, Fit, Walls, fit_of, unfit
from advisor.memory.inputs import unread_parts
from advisor.memory.ledger import build_ledger
from advisor.memory.readings import Peak, Replaced, printed_on_host, replaced_by, with_peaks, with_readings
from advisor.memory.squeeze import Squeeze, squeeze_of
from advisor.memory.trainer import has_engine
from advisor.run.build import BuiltRun, RunInputs, build_run
from advisor.run.run import Knob, Run, Unread
from advisor.run.topology import gpus_missing
from advisor.units import show_bytes
from advisor.words import Full, Phase

Overrides = Mapping[str, str | None]
"""Native key (`$NAME` for a variable) → new text; None removes."""
RAY_THRESHOLD = 0.95
"""Ray's default kill threshold (docs: out-of-memory prevention)."""
_PredictionKey = tuple[frozenset[tuple[str, str | None]], bool, tuple[tuple[str, object], ...]]


class MeasuredEvidence(Struct, frozen=True):
    """What log and record measured of the run as they saw it."""

    readings: tuple[Replaced, ...] = ()
    """Quantities of the ledger that the log printed."""
    peaks: tuple[Peak, ...] = ()
    """Phases whose peak a record measured."""
    corrections: tuple[Correction, ...] = ()
    """What the crash proves beyond the prediction."""
    doubts: tuple[str, ...] = ()
    """What in it contradicts the settings."""


class Prediction:
    """A run with some overrides: the run as bound, its ledger, and how that fits. Computed once, when asked."""

    def __init__(self, built: BuiltRun, ledger: Ledger, predictor: Predictor, changed: bool = True) -> None:
        self.built = built
        self.ledger = ledger
        self._predictor = predictor
        self._changed = changed
        self._unfit: dict[Place, list[Phase] | None] = {}

    @property
    def run(self) -> Run:
        """The run alone."""
        return self.built.run

    @property
    def walls(self) -> Walls:
        """What it is held against: the run that died without what a change has to take beyond the formulas' error."""
        walls = self._predictor.walls
        return walls if self._changed else replace(walls, margin=self._predictor.asked_margin)

    @cached_property
    def fit(self) -> Fit:
        """Whether it fits; what every face shows."""
        walls, machine = self.walls, self._predictor.machine
        ran = walls.died is not None and walls.died.by_log
        return fit_of(self.ledger, walls, self.run, None if ran else gpus_missing(self.run.topology, machine))

    @cached_property
    def squeeze(self) -> Squeeze | None:
        """That it fits neither with offload nor without; None where it fits, or one of them does."""
        if self.fit.verdict != "does_not_fit":
            return None
        return squeeze_of(self.run, self.ledger_of, self.walls)

    def ledger_of(self, run: Run) -> Ledger:
        """The ledger of another form of the run, with what was measured."""
        return self._predictor.ledger_of(run, self.built)

    def unfit(self, place: Place) -> list[Phase] | None:
        """Phases of a place that do not fit; None where it cannot be computed."""
        if place not in self._unfit:
            self._unfit[place] = unfit(self.ledger, place, self.walls)
        return self._unfit[place]

    @property
    def enough(self) -> bool | None:
        """Whether nothing that can be computed is too full; None where the place that ran out cannot be computed."""
        here: Place = (died.place or "gpu") if (died := self._predictor.died) is not None else "gpu"
        other: Place = "host" if here == "gpu" else "gpu"
        if unread_parts(self.run):  # the sums lack a part, and more than they say may be there
            return False if self.fit.verdict == "does_not_fit" else None
        found = self.unfit(here)
        return None if found is None else not found and not self.unfit(other)


UNSIZED_MARGIN = 0.15
"""What the formulas may be off by (docs/accuracy.md): a change that takes less proves nothing of a run that died."""


class Predictor:
    """Predicts one run on one machine. Remembers what it was asked: a plan asks the same many times over.

    `leaks`: the knobs that bad library versions turn on in a form of the run. `peaks`: those of a record that speak of
    this ledger. `limit`: what was full; a full share proves nothing of the card, a full job nothing of the node.
    `other_limit`: the job that died may have had another one. `earlier`: the settings that the run of the log had and
    this one has no more: what was measured counts for that run, and moves along from there.
    `doubt`: a sentence on that. `said`: the memory that ran out, where only the user says so.
    """

    def __init__(
        self,
        inputs: RunInputs,
        crash: Crash,
        margin: float,
        *,
        leaks: Callable[[Run], Mapping[str, Knob]] | None = None,
        peaks: Callable[[Ledger, Run], tuple[Peak, ...]] | None = None,
        limit: Full = "card",
        other_limit: bool = False,
        earlier: Overrides | None = None,
        doubt: str = "",
        said: Place | None = None,
    ) -> None:
        self.inputs = inputs
        self.crash = crash
        self.asked_margin = margin
        self.limit = limit
        self._other_limit = other_limit
        self.died: Died | None = None
        """Set once the diagnosis is made, before anybody asks what fits."""
        self._leaks = leaks
        self._peaks = peaks
        self.earlier = earlier or {}
        self._doubt = doubt
        self._said = said
        self.of_logits = False
        """What was asked for is logits of this run, by its size."""
        self._built: dict[_PredictionKey, BuiltRun] = {}
        self._known: dict[_PredictionKey, Prediction] = {}
        self.proposed: dict[Hashable, tuple[object, Any]] = {}
        """What a plan has proposed on these predictions (see plan/propose.py)."""

    @property
    def margin(self) -> float:
        """Fraction of every place that a change has to leave free: more after a crash that printed no size."""
        unsized = self.died is not None and any(one.note is not None for one in self.measured.corrections)
        return max(self.asked_margin, UNSIZED_MARGIN) if unsized else self.asked_margin

    @property
    def machine(self) -> Machine:
        """What the run is predicted on."""
        return self.inputs.machine

    def predict(
        self, overrides: Overrides | None = None, fixed: bool = False, knobs: Mapping[str, Knob] | None = None
    ) -> Prediction:
        """The run with these overrides and knobs on top. `fixed`: without what bad versions leak."""
        asked = _question(overrides, fixed, knobs)
        if asked not in self._known:
            built = self.built(overrides, fixed, knobs)
            changed = bool(overrides or knobs or fixed)
            self._known[asked] = Prediction(built, self.ledger_of(built.run, built), self, changed)
        return self._known[asked]

    def ledger_of(self, run: Run, built: BuiltRun) -> Ledger:
        """The ledger of a run, with what was measured; `built`: what it was bound from."""
        ledger = self._with_measured(build_ledger(run, self.machine, self.crash))
        ledger = _with_ray_wall(ledger, built, self.crash)  # which counts what others hold, too
        limit, taken = ledger.host_limit, self.machine.host.taken_bytes
        return ledger if limit is None or not taken else replace(ledger, host_limit=max(1, limit - taken))

    def built(
        self, overrides: Overrides | None = None, fixed: bool = False, knobs: Mapping[str, Knob] | None = None
    ) -> BuiltRun:
        """The run alone: enough for what a framework allows."""
        asked = _question(overrides, fixed, knobs)
        if asked not in self._built:
            merged = {**self.inputs.overrides, **(overrides or {})}
            told = {**self._at_caps, **self.inputs.knobs, **(knobs or {})}
            built = build_run(replace(self.inputs, overrides=merged, knobs=told))
            leaked = self._leaks(built.run) if self._leaks is not None and not fixed else {}
            if leaked:
                built = build_run(replace(self.inputs, overrides=merged, knobs={**told, **leaked}))
            self._built[asked] = built
        return self._built[asked]

    @cached_property
    def _at_caps(self) -> Mapping[str, Knob]:
        """Rows as long as their cap, where a card ran out that rows of usual length leave with room; where the crash
        printed its sizes, if they come nearer to what was needed."""
        ran_out = self.crash.memory == "gpu" if self.crash.verdict == "oom" else self._said == "gpu"
        fields = self.crash.evidence[0].fields if self.crash.verdict == "oom" and self.crash.evidence else {}
        needed = needed_on_gpu(fields)
        if not ran_out or self.limit != "card":
            return {}
        merged = {**self.inputs.overrides, **self.earlier}
        run = build_run(replace(self.inputs, overrides=merged)).run
        if run.unlimited_rows or run.value(LONGEST_ROW) is not None or row_lengths(run) is not None:
            return {}
        ledger = build_ledger(run, self.machine, self.crash)
        died = ledger.phase("gpu", self.crash.phase)
        phases, room = [died] if died is not None else ledger.sums("gpu"), ledger.gpu_capacity
        if needed is not None:
            others = fields.get("other_process_bytes")
            return _nearer_at_cap(died, round(needed.value), others if isinstance(others, int) else 0) if died else {}
        fits = room is not None and all(one.expected <= room for one in phases)
        if not fits or all(one.by_data[1] <= one.expected for one in phases):
            return {}
        return {LONGEST_ROW: Knob(LONGEST_ROW, AT_CAP, "assumed", note=say("it ran out: rows as long as their cap"))}

    @cached_property
    def measured(self) -> MeasuredEvidence:
        """What log and record measured, by the run as they saw it."""
        run = self.built(self.earlier).run
        predicted = build_ledger(run, self.machine, self.crash)
        readings = replaced_by(predicted, self.crash)
        read = with_readings(predicted, readings)
        peaks = self._peaks(read, run) if self._peaks is not None else printed_on_host(read, self.crash)
        raw = with_peaks(read, peaks)
        # at how much it was ended, no limit of now tells
        nowhere = self.limit == "job" and (self.machine.host.limit_bytes is None or self._other_limit)
        nowhere = nowhere and not (self.crash.evidence and "node_used_bytes" in self.crash.evidence[0].fields)
        if self.limit == "share" or nowhere:
            return MeasuredEvidence(readings, peaks)
        placed = self.crash  # in the fullest of the phases that its frames leave, where they leave several: the least
        among = [here for phase in self.crash.phase_among if (here := raw.phase("gpu", phase)) is not None]
        if self.crash.phase == "unknown" and among:
            placed = replace(self.crash, phase=max(among, key=lambda each: each.expected).phase)
        alone = not has_engine(run) and run.mechanics.processes_per_gpu <= 1
        found = corrections(raw, placed, self._said, self.of_logits, alone)
        if not self._seen(run):  # nothing was said of the settings that could be wrong
            found = tuple(replace(one, doubt="") for one in found)
        elif run.unlimited_pictures:  # the sums count usual ones: larger ones are what is not explained
            found = tuple(replace(one, doubt="") if one.place == "gpu" else one for one in found)
        leaks = self._leaks is not None and self._leaks(run)  # what leaks is there only after some time
        over = None if leaks else overcount(raw, placed, self._seen(run))
        if over is None:
            return MeasuredEvidence(readings, peaks, found)
        return MeasuredEvidence(readings, (*peaks, over.peak), found, (over.doubt,) if over.doubt else ())

    def _seen(self, run: Run) -> bool:
        """Whether any setting of the run is known: a ledger of nothing but defaults says little of it."""
        return bool(run.settings or self.crash.settings or self.inputs.sized)

    @cached_property
    def walls(self) -> Walls:
        """What ledgers are held against."""
        shared = self.predict().run.topology.colocated
        lived = self.predict(self.earlier).ledger if self.died is not None else None
        if lived is not None and self._other_limit:
            lived = replace(lived, host_limit=None)
        dark = tuple(one for one in self.measured.corrections if one.unexplained and one.phase != "unknown")
        seen = self._seen(self.predict().run)
        return Walls(self.margin, shared, self.died, lived, dark if lived is not None else (), seen)

    def without_latent_faults(self) -> Predictor:
        """The same without faults that only a change would trigger: those are answered by a version step beside it."""
        if self._leaks is None or self._leaks(self.built(fixed=True).run):
            return self
        return self._again(leaks=None)

    def on(self, machine: Machine) -> Predictor:
        """The same run on another machine: what was measured moves along, but nothing was lived through there."""
        crash = replace(self.crash, gpu_total_bytes=None, gpu_names=())
        return self._again(inputs=replace(self.inputs, machine=machine), crash=crash, died=None)

    def lifted(self, host_limit: int) -> Predictor:
        """The same run and crash where the job may use `host_limit` bytes of a node; itself where that is 0."""
        if not host_limit:
            return self
        host = dataclasses.replace(self.machine.host, limit_bytes=host_limit)
        return self._again(inputs=replace(self.inputs, machine=dataclasses.replace(self.machine, host=host)))

    def of_model(self, name: str) -> Predictor:
        """The same launch with another model on this machine: nothing that a log measured counts for it."""
        other = self._again(inputs=replace(self.inputs, model_name=name), died=None)
        other.measured = MeasuredEvidence()
        return other

    def leaks(self, overrides: Overrides) -> bool:
        """Whether a bad library version holds memory in that form of the run, which the sums do not know."""
        return self._leaks is not None and bool(self._leaks(self.built(overrides).run))

    def told(
        self,
        crash: Crash,
        knobs: Mapping[str, Knob],
        of_logits: bool = False,
        doubt: str = "",
        unread: Unread | None = None,
    ) -> Predictor:
        """The same of a crash of which more was found out, and of a run whose `knobs` that tells, where nobody gave
        them; nothing is measured yet. `of_logits`: what was asked for is logits of this run. `doubt`: a sentence.
        `unread`: what the missing file most likely says."""
        other = copy(self)
        other.crash, other.of_logits = crash, self.of_logits or of_logits
        other._doubt = sentences((self._doubt, doubt))
        seen = {**self.inputs.observed, **knobs}
        other.inputs = replace(self.inputs, observed=seen, unread=unread or self.inputs.unread)
        other._built, other._known, other.proposed = {}, {}, {}
        for computed in ("measured", "walls", "_at_caps"):
            other.__dict__.pop(computed, None)
        return other

    def _again(self, **changes: object) -> Predictor:
        other = copy(self)
        other.measured = self.measured
        other._built, other._known, other.proposed = {}, {}, {}
        other.__dict__.pop("walls", None)
        for name, value in changes.items():
            setattr(other, "_leaks" if name == "leaks" else name, value)
        return other

    def _with_measured(self, ledger: Ledger) -> Ledger:
        if self._doubt:
            ledger = replace(ledger, basis="estimated", doubts=(*ledger.doubts, self._doubt))
        found = self.measured
        ledger = replace(ledger, doubts=(*ledger.doubts, *found.doubts)) if found.doubts else ledger
        read = with_peaks(with_readings(ledger, found.readings), found.peaks)
        return corrected(read, found.corrections)


def _nearer_at_cap(died: PhaseSum, needed: int, others: int) -> dict[str, Knob]:
    """Rows as long as their cap, where what was needed is doubtfully much for usual ones and nearer to that. `others`:
    what other processes held of it, of which an engine's part is counted."""
    usual, longest = died.expected, died.by_data[1]
    needed -= max(0, others - died.of(*ENGINE))
    if not is_doubtful(needed - usual, needed, died) or abs(needed - longest) >= needed - usual:
        return {}
    told = {"needed": show_bytes(needed), "usual": show_bytes(usual), "longest": show_bytes(longest)}
    why = say(
        "{needed} were needed: {usual} with rows of usual length, {longest} with rows as long as their cap", **told
    )
    return {LONGEST_ROW: Knob(LONGEST_ROW, AT_CAP, "assumed", note=why)}


def _question(overrides: Overrides | None, fixed: bool, knobs: Mapping[str, Knob] | None) -> _PredictionKey:
    told = tuple((name, knob.value) for name, knob in knobs.items()) if knobs else ()
    return frozenset(overrides.items() if overrides else ()), fixed, told


def _with_ray_wall(ledger: Ledger, built: BuiltRun, crash: Crash) -> Ledger:
    """Where Ray runs the job, its threshold (printed, or as a change sets it) is the wall, not the end of the RAM."""
    printed = printed_threshold(crash)
    if ledger.host_limit is None or not (printed or built.natives.carriers("host.ray_memory_threshold")):
        return ledger
    if not printed and built.run.number("host.ray_memory_refresh") == 0:  # Ray's monitor is off
        return ledger
    threshold = built.run.number("host.ray_memory_threshold") or printed or RAY_THRESHOLD
    return replace(ledger, host_limit=int(ledger.host_limit * threshold))


def printed_threshold(crash: Crash) -> float | None:
    """The part of the RAM from which Ray killed, by its message; else the part in use then, which is no lower."""
    fields = crash.evidence[0].fields if crash.verdict == "oom" and crash.evidence else {}
    printed = (fields.get(name) for name in ("threshold", "fraction"))
    threshold, in_use = (float(x) if isinstance(x, (int, float)) and 0 < x <= 1 else None for x in printed)
    return threshold or (min(in_use, RAY_THRESHOLD) if in_use else None)
