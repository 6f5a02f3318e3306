"""What a set of new values would mean: the run bound again, and its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.diagnosis.advise import Concern
from advisor.diagnosis.facts import Facts
from advisor.diagnosis.leaks import faults, held_knobs
from advisor.knowledge.schema import Advisory, Case, Knowledge
from advisor.machine.inventory import Machine
from advisor.memory.calibrate import Correction, corrected
from advisor.memory.cells import Ledger, Place
from advisor.memory.ledger import build_ledger
from advisor.memory.peaks import Peak, with_peaks
from advisor.memory.readings import Replaced, with_readings
from advisor.plan.fit import died_in, unfit
from advisor.run.build import BuiltRun, RunInputs, build_run
from advisor.run.run import Knob
from advisor.words import Phase

Overrides = Mapping[str, str | None]
"""Native key (`$NAME` for a variable) → new text; None removes."""
RAY_THRESHOLD = 0.95
"""Ray's default kill threshold (docs: out-of-memory prevention)."""


class Outcome(Struct, frozen=True):
    """The run and the ledger that a set of overrides gives."""

    built: BuiltRun
    ledger: Ledger


class Situation(Struct, frozen=True):
    """What the plan is made for."""

    inputs: RunInputs
    machine: Machine
    crash: Crash
    knowledge: Knowledge
    facts: Facts
    cause: str
    phase: Phase
    place: Place
    """The place that ran out."""
    corrections: tuple[Correction, ...]
    advisories: tuple[Advisory, ...]
    """Advisories of this run that have safe versions."""
    cases: tuple[Case, ...]
    """Documented cases that match, best first."""
    margin: float
    leak_assumed: bool = False
    """The user says that a library here is one of the versions that leak."""
    limit: Literal["card", "share"] = "card"
    """What was full (see Signature.limit): no ledger of the card counts a share."""
    barred: frozenset[str] = frozenset()
    """Remedies that no file can carry here: shown, never switched on."""
    readings: tuple[Replaced, ...] = ()
    """Quantities of the ledger that the log measured."""
    peaks: tuple[Peak, ...] = ()
    """Phases whose peak a record measured."""
    faults_sleep: bool = False
    """Leave out what bad versions hold (see `asleep`)."""
    known: dict[tuple[frozenset[tuple[str, str | None]], bool], Outcome] = field(default_factory=dict)
    """Outcomes already computed: the same question is asked many times over."""
    bound: dict[tuple[frozenset[tuple[str, str | None]], bool], BuiltRun] = field(default_factory=dict)
    """Runs already bound."""

    def outcome(self, overrides: Overrides, mended: bool = False) -> Outcome:
        """Bind and predict with these overrides on top of the run. `mended`: without what bad versions leak."""
        wanted = (frozenset(overrides.items()), mended)
        if wanted not in self.known:
            self.known[wanted] = self._compute(overrides, mended)
        return self.known[wanted]

    def _compute(self, overrides: Overrides, mended: bool) -> Outcome:
        built = self.built(overrides, mended)
        predicted = with_readings(build_ledger(built.run, self.machine, self.crash), self.readings)
        ledger = corrected(with_peaks(predicted, self.peaks), self.corrections)
        return Outcome(built, _with_host_limit(ledger, built))

    def built(self, overrides: Overrides, mended: bool = False) -> BuiltRun:
        """The run alone with these overrides: enough for what a framework allows."""
        wanted = (frozenset(overrides.items()), mended)
        if wanted not in self.bound:
            merged = {**self.inputs.overrides, **overrides}
            built = build_run(replace(self.inputs, overrides=merged, knobs={}))
            leaks = {} if mended else self._leaks(built)
            if leaks:
                built = build_run(replace(self.inputs, overrides=merged, knobs=leaks))
            self.bound[wanted] = built
        return self.bound[wanted]

    def asleep(self) -> Situation:
        """The same without faults that only a change would wake: those are answered by a version step beside it."""
        return self if self.inputs.knobs else replace(self, faults_sleep=True, known={}, bound={})

    def woken(self, overrides: Overrides) -> tuple[Advisory, ...]:
        """Faults of installed versions that these overrides wake and the run as it stands does not have."""
        if self.inputs.knobs or not self._concerned():
            return ()
        built = build_run(replace(self.inputs, overrides={**self.inputs.overrides, **overrides}, knobs={}))
        return tuple(concern.advisory for concern in self._faults(built) if concern.advisory.safe)

    def _leaks(self, built: BuiltRun) -> Mapping[str, Knob]:
        """What bad versions hold in this form of the run: a change of sharding may be what wakes the fault."""
        if self.faults_sleep or not self._concerned():
            return {}
        return held_knobs(self._concerned(), built.run, self.machine, self.crash, self.leak_assumed)

    def _faults(self, built: BuiltRun) -> tuple[Concern, ...]:
        return faults(self._concerned(), built.run, self.machine, self.crash, self.leak_assumed)

    def _concerned(self) -> list[Advisory]:
        """Advisories that can hold here at all: those of libraries whose version is known."""
        named = {*self.machine.libraries, *self.crash.libraries}
        return [a for a in self.knowledge.advisories if a.sets and (self.leak_assumed or a.library in named)]

    def unfit(self, ledger: Ledger, place: Place) -> list[Phase] | None:
        """Phases of a place that do not fit with the margin; None where it cannot be computed."""
        run, before = self.outcome({}).built.run, self.outcome({}).ledger
        died = died_in(before, place, self.phase, self.shared) if place == self.place else None
        first_step = run.mechanics.lazy_optimizer and self.crash.steps_done == 0
        return unfit(before, ledger, place, died, self.margin, first_step, self.shared)

    @property
    def shared(self) -> bool:
        """Whether the rollout engine uses the trainer's cards."""
        return self.outcome({}).built.run.topology.colocated

    def fits(self, ledger: Ledger) -> bool | None:
        """Whether every phase fits on GPU and host; None where the place that died cannot be computed."""
        here = self.unfit(ledger, self.place)
        return None if here is None else not here and not self.unfit(ledger, "host" if self.place == "gpu" else "gpu")


def _with_host_limit(ledger: Ledger, built: BuiltRun) -> Ledger:
    """Where Ray runs the job, its threshold is the wall, not the end of the RAM."""
    if ledger.host_limit is None or not built.natives.carriers("host.ray_memory_threshold"):
        return ledger
    threshold = built.run.number("host.ray_memory_threshold") or RAY_THRESHOLD
    return replace(ledger, host_limit=int(ledger.host_limit * threshold))
