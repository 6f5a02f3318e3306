"""Checks the advisories: does a library version of this run leak, assert or clash in this situation?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from advisor.crash.evidence import Crash
from advisor.diagnosis.diagnosis import Advice
from advisor.diagnosis.fact import Fact, Facts, all_hold, contradicted, value_of
from advisor.diagnosis.facts import DiagnosisInputs, gather_facts
from advisor.knowledge.schema import Advisory
from advisor.language import Sayings, clauses, listed, say
from advisor.machine.inventory import Machine
from advisor.memory.cells import Ledger
from advisor.rules.functions import version_in
from advisor.run.run import Knob, Run

WORDS: Sayings[str] = Sayings(
    {
        "zero3": "how the states are sharded",
        "gradient_checkpointing": "whether activations are recomputed",
        "images": "whether prompts have images",
        "experts": "whether the model has experts",
        "knob.rollout.samples_per_prompt": "samples per prompt",
        "framework": "the framework",
    }
)
"""What a condition asks of the run, in words."""
_WHERE = frozenset({"phase", "memory"})
"""Facts of the crash itself: an advisory that asks for none speaks of a fault that it need not have."""


class Concern(Struct, frozen=True):
    """An advisory that nothing known here contradicts. `version` None: the library's version is not known."""

    advisory: Advisory
    version: str | None
    sure: bool
    """All that it asks of the run is known to hold."""

    @property
    def bad(self) -> bool:
        """The installed version is known to be a bad one."""
        return self.version is not None and version_in(self.advisory.versions, self.version)

    @property
    def applies(self) -> bool:
        """The version is a bad one and the situation is the one it speaks of."""
        return self.bad and self.sure

    @property
    def asks_for_a_step(self) -> bool:
        """Another version may be the way out: it explains a cause, or is in force and speaks of where this run died."""
        if self.advisory.cause:
            return self.applies or self.possible
        return self.applies and any(_WHERE.intersection(rule.names()) for rule in self.advisory.when)

    @property
    def possible(self) -> bool:
        """Either the version or the situation is only not known to be otherwise, not both."""
        return (self.version is None and self.sure) or (self.bad and not self.sure)


ENGINE_LIBRARIES = frozenset({"vllm", "sglang"})


def concerns(
    advisories: Iterable[Advisory], facts: Facts, ignoring: frozenset[str] = frozenset()
) -> tuple[Concern, ...]:
    """Advisories that no fact contradicts; facts named in `ignoring` are not asked about. A run that generates nothing
    has no engine."""
    found: list[Concern] = []
    generates = value_of(facts, "rolls_out")
    without = ENGINE_LIBRARIES if generates is False else frozenset()
    for advisory in advisories:
        if advisory.library in without:
            continue
        rules = [rule for rule in advisory.when if not ignoring.intersection(rule.names())]
        if any(contradicted(rule, facts) for rule in rules):
            continue
        fact = value_of(facts, f"library.{advisory.library}")
        sure = all_hold(rules, facts) is not None
        found.append(Concern(advisory, str(fact) if fact is not None else None, sure))
    return tuple(found)


def suspects(found: Iterable[Concern]) -> tuple[Concern, ...]:
    """Those with a cause that nobody can dismiss: their version or their situation is not known here."""
    return tuple(c for c in found if c.advisory.cause is not None and (c.version is None or (c.bad and not c.sure)))


def suspicion(concern: Concern, facts: Facts) -> str:
    """What is not known of it: "… : not known here: deepspeed's version, how the states are sharded"."""
    asked = dict.fromkeys(name for rule in concern.advisory.when for name in rule.names())
    open_ = [say("the version of {library}", library=concern.advisory.library)] if concern.version is None else []
    open_ += [WORDS[name] for name in WORDS if name in asked and name not in facts]
    return say("{title}; not known here: {what}.", title=concern.advisory.title, what=listed(open_))


def concern_facts(found: Iterable[Concern]) -> dict[str, Fact]:
    """Facts for the tree: which causes an advisory proves, and whether all that could be checked were."""
    facts: dict[str, Fact] = {}
    blamed = [concern for concern in found if concern.advisory.cause is not None]
    for concern in blamed:
        if concern.applies:
            because = say("{library} {version} is one of {versions}", **_told(concern))
            facts[f"advisory.cause.{concern.advisory.cause}"] = Fact(True, "machine", because)
    if not suspects(blamed):
        clean = [c for c in blamed if c.version is not None and not c.bad]
        told = clauses(say("{library} {version} is not one of {versions}", **_told(concern)) for concern in clean)
        because = told or say("no known regression has this sharding and phase")
        facts["advisory.checked"] = Fact(True, "machine" if clean else "script", because)
        for concern in clean:
            facts.setdefault(f"advisory.clear.{concern.advisory.cause}", Fact(True, "machine", because))
    return facts


def _told(concern: Concern) -> dict[str, str | None]:
    advisory = concern.advisory
    return {"library": advisory.library, "version": concern.version, "versions": advisory.versions}


def advice_of(found: Iterable[Concern]) -> tuple[Advice, ...]:
    """The advisories that apply, for the faces."""
    return tuple(
        Advice(a.id, a.library, concern.version or "", a.title, " ".join(a.says.split()), a.source)
        for concern in found
        if concern.applies and (a := concern.advisory)
    )


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
