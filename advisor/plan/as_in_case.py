"""Turns what a documented case changed into a step, where all that is known of it here agrees."""

from __future__ import annotations

from collections.abc import Container, Sequence

from advisor.diagnosis.cases import MECHANISM, open_words, situation_words
from advisor.knowledge.schema import Case, SettingFact
from advisor.language import listed, say
from advisor.memory.cells import Place
from advisor.memory.ledger import difference
from advisor.plan.candidates import reported_by
from advisor.plan.plan import PlanStep
from advisor.plan.propose import present
from advisor.plan.situation import Situation
from advisor.plan.steps import change_of
from advisor.regex import regex
from advisor.rules.tree import as_number
from advisor.run.constraints import newly_broken, no_effect
from advisor.run.natives import Native, in_era
from advisor.run.values import parse_value, spell
from advisor.run.version_notes import other_name

AS_IN = "as-in-"
"""Before a case's id: the step that does what it did."""
HELPED = ("confirmed", "plausible")
"""Grades of cases in which something helped, or the maintainers say so, the surest first."""
_SIZE = regex(r"(?<![\w.])(\d+(?:\.\d+)?)[bB](?![a-zA-Z\d])")
SIZE_CLASS = 2.5
"""Models that differ by more are not of one size class: 7B and 14B are, 3B and 14B are not (judgement)."""
_TRIVIAL = frozenset({"framework", "memory", "gpu", "gpus"})
"""What thousands of runs share: a case that agrees in these alone is another one."""


def case_steps(situation: Situation, chosen: Container[str] = ()) -> list[PlanStep]:
    """What matching cases changed, under the keys of this launch, but for `chosen`: what is switched on moves these."""
    known = sorted((case for case in situation.cases if case.grade in HELPED), key=lambda c: HELPED.index(c.grade))
    made = (_applied(case, situation, chosen) for case in known)
    return [step for step in made if step is not None][:1]


def beside(case: Sequence[PlanStep], steps: Sequence[PlanStep]) -> tuple[list[PlanStep], list[str]]:
    """The steps with those of cases, and which of all lead because a case shows it, the run's own first.

    What is switched on anyway is no second step, and a step that does the same leads in place of the case's; what a
    case's step contains is left out.
    """
    chosen = frozenset(value for one in steps if one.selected for value in _values(one))
    ours = [one for one in case if not _values(one) <= chosen]
    same = [next((step for step in steps if _values(own) <= _values(step)), own) for own in ours]
    made = [own for own in same if own not in steps]
    kept = [one for one in steps if one.selected or not any(_values(one) <= _values(own) for own in made)]
    return [*made, *kept], [one.id for one in sorted(same, key=lambda one: one in made)]


def _values(step: PlanStep) -> frozenset[tuple[str, str | None]]:
    """What it sets; of a step that sets nothing something that no other has."""
    return frozenset((change.key, change.new) for change in step.changes) or frozenset({(step.id, None)})


def _applied(case: Case, situation: Situation, chosen: Container[str]) -> PlanStep | None:
    """The case's settings that would be news here; None where there are none, or the framework refuses them."""
    before = situation.now.built
    unknown = open_words(case, situation.facts, before.run)
    if (
        not set(case.situation) - _TRIVIAL - set(unknown)
        or MECHANISM & set(unknown)
        or _of_another_size(case, situation)
    ):
        return None
    overrides: dict[str, str | None] = {}
    facts: list[SettingFact] = []
    for key, values in case.values.items():
        native = _here(key, situation)
        if native is None or native.fact is None or native.key in chosen:
            continue
        news = (text for value in values if (text := _news(native, value, situation)) is not None)
        text = next(news, None)
        if text is not None:
            overrides[native.key] = text or None
            facts.append(native.fact)
    if case.situation.get("phase") != situation.phase and not any(_acts(fact, situation) for fact in facts):
        return None
    after = situation.predictor.predict(overrides)
    idle = any(no_effect(after.built, key) for key in overrides)
    if not overrides or idle or newly_broken(before, after.built, overrides):
        return None
    ledger = situation.now.ledger
    stands = {key: present(before.natives.values[key], situation.now.run) for key in overrides}
    other: Place = "gpu" if situation.place == "host" else "host"
    return PlanStep(
        id=AS_IN + case.id,
        title=say("Set {keys} as a reported run did", keys=listed(overrides)),
        kind="setting",
        tier="slower",
        changes=tuple(change_of(stands[key], new, situation) for key, new in overrides.items()),
        results="changed" if any(fact.results == "changed" for fact in facts) else "unchanged",
        basis="documented",
        saves={phase: size for phase, size in difference(ledger, after.ledger, situation.place).items() if size},
        place=situation.place,
        why=" ".join(case.mechanism.split()),
        costs=say("see the case"),
        caveats=_unknown_here(unknown, case),
        sources=(case.source,),
        documented=reported_by(case),
        group=AS_IN + case.id,
        host_saves={phase: size for phase, size in difference(ledger, after.ledger, other).items() if size},
    )


def _of_another_size(case: Case, situation: Situation) -> bool:
    """Whether the case sets numbers for a model that is not known to be of the size class of the one here: what fits
    72B says nothing of 3B. A switch is one for models of any size."""
    model = situation.now.run.model
    if not any(as_number(value) is not None for values in case.values.values() for value in values):
        return False
    words = " ".join((case.title, str(case.situation.get("model", "")), str(case.reported)))
    sizes = {float(size) * 1e9 for size in _SIZE.findall(words)}
    if not sizes:
        return False
    return model is None or not any(1 / SIZE_CLASS <= size / model.parameters <= SIZE_CLASS for size in sizes)


def _here(key: str, situation: Situation) -> Native | None:
    """The setting as this version calls it; None where it has none, or the backend does not read it."""
    natives = situation.now.built.natives
    assert natives.framework is not None
    found = natives.values.get(key)
    if found is None or found.fact is None:
        found = natives.values.get(other_name(natives.framework, key, natives.era))
    if found is None or found.fact is None or not in_era(found.fact, natives.era) or not natives.reads(found.fact):
        return None
    return found


def _acts(fact: SettingFact, situation: Situation) -> bool:
    """Whether the setting moves the memory that ran out, in the phase that ran out where that is known."""
    phase, place = situation.phase, situation.place
    moved = [sign for name, sign in fact.moves.items() if phase == "unknown" or name in (phase, "all")]
    return bool({place, f"{place}-"} & {*moved})


def _news(native: Native, value: object, situation: Situation) -> str | None:
    """A case's value as the setting spells it, "" to remove a flag; None where it is in force or would ask for more."""
    assert native.fact is not None
    wanted = parse_value(str(value), native.fact.type)
    if wanted is None or wanted == native.value:
        return None
    signs = set(native.fact.moves.values())
    rises, falls = situation.place in signs, f"{situation.place}-" in signs
    if native.fact.type == "flag":
        off = native.value is None or native.value is False
        return None if off == (wanted is False) else "true" if wanted else ""
    old, new = as_number(native.value), as_number(wanted)
    if isinstance(wanted, bool):  # a switch that nobody saw stands the other way, or the step is none
        old, new = int(not wanted), int(wanted)
    if (
        old is not None
        and new is not None
        and ((rises and not falls and new > old) or (falls and not rises and new < old))
    ):
        return None
    return spell(wanted, native.fact, native.text)


def _unknown_here(unknown: Sequence[str], case: Case) -> tuple[str, ...]:
    """What the case says of its run and nobody knows of this one."""
    if not unknown:
        return ()
    told = listed(situation_words(name, case.situation[name]) for name in unknown)
    return (say("the case had {facts}: whether this run has, is not known", facts=told),)
