"""Tells what a framework does by default: the bits in which it loads the weights, and whether adapters are trained."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.knowledge import load_knowledge
from advisor.rules.tree import RuleValue
from advisor.run.natives import default_of
from advisor.run.run import Run

_BITS = "actor.quantized_bits"


class OneValue:
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
    found = (bits for bits in _defaults(run, _BITS) if isinstance(bits, int) and bits)
    return next(found, None)


def adapters_by_default(run: Run) -> bool:
    """Whether a run none of whose settings was seen trains adapters, unless one of them says otherwise."""
    return any(full is False for full in _defaults(run, "actor.full_finetuning"))


def _defaults(run: Run, knob: str) -> Iterator[RuleValue]:
    """What the framework's settings make of a knob at their defaults, where none was seen."""
    framework = next((one for one in load_knowledge().frameworks if one.framework == run.framework), None)
    for fact in framework.settings.values() if framework is not None and not run.settings else ():
        if fact.knob == knob and (default := default_of(fact, run.era)) is not None:
            value = default if fact.to_knob is None else fact.to_knob.of(OneValue(default))
            if value is not None:
                yield value
