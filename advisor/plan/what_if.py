"""What a set of new values would mean: the run bound again, and its ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from advisor.crash.evidence import Crash
from advisor.diagnosis.facts import Facts
from advisor.knowledge.schema import Advisory, Case, Knowledge
from advisor.machine.inventory import Machine
from advisor.memory.calibrate import Correction, corrected
from advisor.memory.cells import Ledger, Place
from advisor.memory.ledger import build_ledger
from advisor.plan.fit import died_in, unfit
from advisor.run.build import BuiltRun, RunInputs, build_run
from advisor.words import Phase

Overrides = Mapping[str, str | None]
"""Native key (`$NAME` for a variable) → new text; None removes."""
RAY_THRESHOLD = 0.95
"""Ray's default kill threshold (docs: out-of-memory prevention)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run and the ledger that a set of overrides gives."""

    built: BuiltRun
    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Situation:
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
    known: dict[tuple[frozenset[tuple[str, str | None]], bool], Outcome] = field(
        default_factory=dict, repr=False, compare=False
    )
    """Outcomes already computed: the same question is asked many times over."""

    def outcome(self, overrides: Overrides, mended: bool = False) -> Outcome:
        """Bind and predict with these overrides on top of the run. `mended`: without what bad versions leak."""
        wanted = (frozenset(overrides.items()), mended)
        if wanted not in self.known:
            self.known[wanted] = self._compute(overrides, mended)
        return self.known[wanted]

    def _compute(self, overrides: Overrides, mended: bool) -> Outcome:
        merged = {**self.inputs.overrides, **overrides}
        knobs = {} if mended else self.inputs.knobs
        built = build_run(replace(self.inputs, overrides=merged, knobs=knobs))
        ledger = corrected(build_ledger(built.run, self.machine, self.crash), self.corrections)
        return Outcome(built, _with_host_limit(ledger, built))

    def unfit(self, ledger: Ledger, place: Place) -> list[Phase] | None:
        """Phases of a place that do not fit with the margin; None where it cannot be computed."""
        before = self.outcome({}).ledger
        return unfit(
            before, ledger, place, died_in(before, place, self.phase) if place == self.place else None, self.margin
        )

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
