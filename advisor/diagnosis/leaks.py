"""Finds bad library versions that hold memory (gathered weights not released), before a ledger is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.crash.evidence import Crash
from advisor.diagnosis.advise import Concern, concerns
from advisor.diagnosis.facts import DiagnosisInputs, gather_facts
from advisor.knowledge.schema import Advisory
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger
from advisor.rules.functions import version_in
from advisor.run.run import Knob, Run

_NO_LEDGER = Ledger(None, None, (), ())


class Faults:
    """Advisories that turn a knob on, asked about one form of the run after another.

    `assumed`: the user says that the library is one of the bad versions, so those that may apply do.
    """

    def __init__(self, advisories: Iterable[Advisory], machine: Machine, crash: Crash, assumed: bool = False) -> None:
        named = (machine.libraries, crash.libraries)
        bad = (a for a in advisories if a.sets and (assumed or any(_is_bad(a, given) for given in named)))
        self.assumed, self._advisories = assumed, tuple(bad)
        self._machine, self._crash = machine, crash

    def of(self, run: Run) -> tuple[Concern, ...]:
        """Advisories that speak of exactly this run, whatever phase died (the phase is not asked)."""
        if not self._advisories:
            return ()
        facts = gather_facts(DiagnosisInputs(self._crash, run, self._machine, _NO_LEDGER))
        found = concerns(self._advisories, facts, ignoring=frozenset({"phase"}))
        return tuple(concern for concern in found if concern.applies or (self.assumed and concern.possible))

    def knobs(self, run: Run) -> dict[str, Knob]:
        """Knob → value for every advisory that applies."""
        return {
            name: Knob(name, value, "derived", note=f"{concern.advisory.library} {concern.version}")
            for concern in self.of(run)
            for name, value in concern.advisory.sets.items()
        }


def _is_bad(advisory: Advisory, libraries: Mapping[str, str]) -> bool:
    version = libraries.get(advisory.library)
    return version is not None and version_in(advisory.versions, version)
