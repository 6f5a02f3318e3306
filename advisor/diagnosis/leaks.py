"""Knobs that a bad library version turns on (gathered weights not released), known before the ledger is made."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.crash.evidence import Crash
from advisor.diagnosis.advise import concerns
from advisor.diagnosis.facts import Known, gather_facts
from advisor.knowledge.schema import Advisory
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger
from advisor.run.run import Knob, Run

_NO_LEDGER = Ledger(None, None, (), ())


def held_knobs(advisories: Iterable[Advisory], run: Run, machine: Machine, crash: Crash) -> dict[str, Knob]:
    """Knob → value for every advisory that applies, whatever phase died (the phase is not asked)."""
    facts = gather_facts(Known(crash, run, machine, _NO_LEDGER))
    found = concerns([a for a in advisories if a.sets], facts, ignoring=frozenset({"phase"}))
    return {
        name: Knob(name, value, "derived", note=f"{concern.advisory.library} {concern.version}")
        for concern in found
        if concern.applies
        for name, value in concern.advisory.sets.items()
    }
