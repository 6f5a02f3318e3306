"""Finds what a run that fits by count may hold in truth: rows at their cap, or a setting that is not in force."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.schema import KnobFact
from advisor.language import say
from advisor.memory.cells import Ledger, PhaseSum
from advisor.memory.fit import rows_that_fill
from advisor.memory.predict import Prediction
from advisor.units import show_bytes
from advisor.words import Phase

FILLED = 0.9
"""Of a card; what is expected to take more is no contradiction to a crash (judgement)."""
BEYOND = 4
"""Times a card: nobody's run gets anywhere with so much (judgement)."""
_BUILT_IN = ("default", "derived")
"""What the framework sees to by itself, whatever the launch says."""


class Otherwise(Struct, frozen=True):
    """One way in which a run is too large for its card that its settings do not show."""

    says: str
    """A clause."""
    size: int
    """Bytes of one card in the fullest phase, were it so."""
    check: str = ""
    """How a user sees whether it is so; "" where the sentence says it."""

    @property
    def clause(self) -> str:
        """The way, its size and how to check it."""
        told = {"says": self.says, "size": show_bytes(self.size), "check": self.check}
        return say("{says}: {size} ({check})", **told) if self.check else say("{says}: {size}", **told)


def otherwise(seen: Prediction, phase: Phase, knobs: Sequence[KnobFact], ran: bool) -> tuple[Otherwise, ...]:
    """What would fill the card in `phase` ("unknown": in any), though the expected bytes are not. `ran`: steps were
    done before, so every setting was in force and only a longer row is left."""
    run, ledger = seen.run, seen.ledger
    room = ledger.gpu_capacity
    if room is None:
        return ()
    longest = Otherwise(say("every row as long as its cap"), _fullest(ledger, phase, at_cap=True))
    filling = [tokens for one in _phases(ledger, phase) if (tokens := rows_that_fill(one, room))]
    if run.unlimited_rows and filling:
        longest = Otherwise(say("rows of {tokens} tokens, which no setting limits", tokens=f"{min(filling):,}"), room)
    found: list[Otherwise] = []
    for fact in () if ran else knobs:
        knob = run.knobs.get(fact.id)
        doubt = fact.not_in_force
        if doubt is None or knob is None or knob.source in _BUILT_IN or not knob.value:
            continue
        less = {name: replace(run.knobs[name], value=value) for name, value in doubt.knobs.items() if name in run.knobs}
        off = replace(run, knobs={**run.knobs, **less})
        found.append(Otherwise(doubt.says, _fullest(seen.ledger_of(off), phase), doubt.check))
    ways = (longest, *sorted(found, key=lambda one: -one.size))
    return tuple(one for one in ways if room * FILLED < one.size < room * BEYOND)


def _phases(ledger: Ledger, phase: Phase) -> Sequence[PhaseSum]:
    """The phase; all of the card where none of that name is counted."""
    here = ledger.phase("gpu", phase)
    return [here] if here is not None else ledger.sums("gpu")


def _fullest(ledger: Ledger, phase: Phase, *, at_cap: bool = False) -> int:
    """Bytes of the phase, of the fullest where none of that name is counted."""
    return max((one.by_data[1] if at_cap else one.expected for one in _phases(ledger, phase)), default=0)
