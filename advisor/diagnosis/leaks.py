"""Knobs that a bad library version turns on (gathered weights not released), known before the ledger is made."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.crash.evidence import Crash
from advisor.diagnosis.advise import Concern, concerns
from advisor.diagnosis.facts import Known, gather_facts
from advisor.knowledge.schema import Advisory
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger
from advisor.run.run import Knob, Run

_NO_LEDGER = Ledger(None, None, (), ())


def held_knobs(
    advisories: Iterable[Advisory], run: Run, machine: Machine, crash: Crash, assumed: bool = False
) -> dict[str, Knob]:
    """Knob → value for every advisory that applies, whatever phase died (the phase is not asked).

    `assumed`: the user says that the library is one of the bad versions, so those that may apply do.
    """
    return {
        name: Knob(name, value, "derived", note=f"{concern.advisory.library} {concern.version}")
        for concern in faults(advisories, run, machine, crash, assumed)
        for name, value in concern.advisory.sets.items()
    }


def faults(
    advisories: Iterable[Advisory], run: Run, machine: Machine, crash: Crash, assumed: bool = False
) -> tuple[Concern, ...]:
    """Advisories that speak of exactly this run and turn a knob on; see `held_knobs`."""
    facts = gather_facts(Known(crash, run, machine, _NO_LEDGER))
    found = concerns([a for a in advisories if a.sets], facts, ignoring=frozenset({"phase"}))
    return tuple(concern for concern in found if concern.applies or (assumed and concern.possible))
