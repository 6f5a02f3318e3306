"""Counts the bits in which a framework loads the weights by default."""

from __future__ import annotations

from advisor.knowledge import load_knowledge
from advisor.rules.tree import RuleValue
from advisor.run.natives import default_of
from advisor.run.run import Run

_BITS = "actor.quantized_bits"


class _Alone:
    """A scope in which `value` alone is known."""

    def __init__(self, known: RuleValue) -> None:
        self.known = known

    def value(self, name: str) -> RuleValue | None:
        """The value; None of any other name."""
        return self.known if name == "value" else None

    given = value


def default_bits(run: Run) -> int | None:
    """The bits of a run none of whose settings was seen: unsloth packs into 4. None where it is not packed, or not
    known.
    """
    framework = next((one for one in load_knowledge().frameworks if one.framework == run.framework), None)
    if framework is None or run.settings:
        return None
    for fact in framework.settings.values():
        if fact.knob == _BITS and fact.to_knob is not None and (default := default_of(fact, run.era)) is not None:
            bits = fact.to_knob.of(_Alone(default))
            if isinstance(bits, int) and bits:
                return bits
    return None
