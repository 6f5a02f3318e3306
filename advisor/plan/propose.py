"""One remedy on this run: which native keys would change, to which values, and what that saves; or why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.diagnosis.conditions import all_hold
from advisor.knowledge.schema import Case, Remedy, SettingFact
from advisor.memory.cells import Place
from advisor.memory.ledger import difference
from advisor.plan.candidates import candidates
from advisor.plan.plan import NotProposed
from advisor.plan.what_if import Outcome, Overrides, Situation
from advisor.run.bound import EnvironmentPrefix, Native
from advisor.run.constraints import divisors_of, violations
from advisor.run.noops import no_effect
from advisor.run.normalise import unbecome
from advisor.run.run import KnobValue
from advisor.run.values import parse_value, spell
from advisor.words import Basis, Phase, Results


@dataclass(frozen=True, slots=True)
class Proposal:
    """A remedy with its native changes (key → new text, None removes) on top of what was chosen before."""

    remedy: Remedy
    overrides: Mapping[str, str | None]
    old: Mapping[str, str | None]
    saves: Mapping[Phase, int]
    other_saves: Mapping[Phase, int]
    fits: bool | None
    basis: Basis
    documented: str = ""
    caveats: tuple[str, ...] = ()
    cases: tuple[Case, ...] = field(default=())
    facts: tuple[SettingFact, ...] = field(default=())
    """What the dialect says of the keys that change."""
    lifts_limit: bool = False
    """It saves nothing but moves the wall."""
    confirmed: bool = False
    """A documented case confirms this very value."""

    @property
    def results(self) -> Results:
        """Changed where the remedy or one of the dialect's own facts says so."""
        changed = self.remedy.results == "changed" or any(fact.results == "changed" for fact in self.facts)
        return "changed" if changed else "unchanged"

    def relieves(self, phases: Sequence[Phase]) -> bool:
        """Whether it saves anything in one of the phases."""
        return any(self.saves.get(phase, 0) > 0 for phase in phases)


@dataclass(frozen=True, slots=True)
class Reported:
    """What a documented case says of one value. `rank`: the best of its list is 0."""

    text: str
    rank: int
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """One candidate value with what it leads to."""

    value: KnobValue
    overrides: dict[str, str | None]
    outcome: Outcome
    fits: bool | None
    documented: Reported | None = None


def propose(remedy: Remedy, situation: Situation, base: Overrides) -> Proposal | NotProposed | None:
    """The remedy applied on top of `base`; why not; or None where this framework simply has no such lever."""
    against = _against(remedy, situation)
    if against:
        return NotProposed(remedy.id, remedy.title, against)
    if all_hold(remedy.applies_when, situation.facts) is None:
        return None
    before = situation.outcome(base)
    native = _carrier(remedy, before)
    if native is None:
        return None
    idle = "" if remedy.also else no_effect(before.built, native.key)
    if idle:
        return NotProposed(remedy.id, remedy.title, idle)
    chosen, broken = _choose(remedy, native, situation, base, before)
    if chosen is None:
        return NotProposed(remedy.id, remedy.title, broken) if broken else None
    other: Place = "host" if situation.place == "gpu" else "gpu"
    facts = _facts(before, chosen)
    return Proposal(
        remedy,
        chosen.overrides,
        {key: _old(before, key) for key in chosen.overrides},
        difference(before.ledger, chosen.outcome.ledger, situation.place),
        difference(before.ledger, chosen.outcome.ledger, other),
        chosen.fits,
        _basis(chosen),
        chosen.documented.text if chosen.documented is not None else "",
        (*remedy.caveats, *(fact.caveat for fact in facts if fact.caveat)),
        tuple(c for c in situation.cases if c.id in {e.case for e in remedy.evidence}),
        facts,
        (chosen.outcome.ledger.host_limit or 0) > (before.ledger.host_limit or 0),
        chosen.documented is not None and chosen.documented.confirmed,
    )


def _against(remedy: Remedy, situation: Situation) -> str:
    """Why the remedy would harm here; "" where it does not."""
    if situation.cause in remedy.never_for or situation.crash.signature in remedy.never_for:
        return "it would make this crash worse"
    return ""


def _carrier(remedy: Remedy, before: Outcome) -> Native | None:
    """The native key to change; an environment remedy brings its own variable where no dialect carries the knob."""
    native = before.built.natives.carrier(remedy.knob) if remedy.knob is not None else None
    if native is None and remedy.environment:
        key = EnvironmentPrefix + remedy.environment
        return before.built.natives.values.get(key) or Native(key, None, None, "default")
    if native is None or not _speaks_in_words(native, remedy.knob):
        return native
    return replace(native, value=before.built.run.value(remedy.knob or ""))


def _speaks_in_words(native: Native, knob: str | None) -> bool:
    """Whether the key's text is a word or a negation that stands for the knob's value."""
    if native.fact is None or knob is None:
        return False
    rule = native.fact.becomes if native.fact.knob == knob else native.fact.also.get(knob)
    return rule is not None and rule["rule"] in ("words", "negated")


def _choose(
    remedy: Remedy, native: Native, situation: Situation, base: Overrides, before: Outcome
) -> tuple[Chosen | None, str]:
    """The value to propose (see `_best`), and the rule that forbade others, where one did."""
    assert remedy.value is not None
    documented = _documented(native, situation)
    tried: list[Chosen] = []
    broken = ""
    for value in _with_documented(candidates(remedy.value, native, before.built), documented, native):
        overrides = _overrides(remedy, native, value, before)
        overrides = overrides and _with_divisor(overrides, native, situation, base)
        if overrides is None:
            broken = broken or f"{native.key} has no word for it that leaves the rest of what it carries alone"
            continue
        outcome = situation.outcome({**base, **overrides})
        wrong = violations(outcome.built, list(overrides))
        already = violations(before.built, list(overrides))
        new = [sentence for sentence in wrong if sentence not in already]
        if new:
            broken = broken or f"{native.key} {native.text} → {value}: {new[0]}"
            continue
        fits = situation.fits(outcome.ledger)
        tried.append(Chosen(value, overrides, outcome, fits, documented.get(str(value))))
    if not tried:
        return None, broken
    return _best(tried), broken


def _with_divisor(
    overrides: dict[str, str | None], native: Native, situation: Situation, base: Overrides
) -> dict[str, str | None]:
    """The overrides with the one other key that must divide the new value lowered along, where that mends it."""
    built = situation.outcome({**base, **overrides}).built
    if not violations(built, list(overrides)):
        return overrides
    for key in divisors_of(built, native.key):
        other = built.natives.values[key]
        if not isinstance(other.value, int) or isinstance(other.value, bool):
            continue
        reported = [int(text) for text in _documented(other, situation) if text.isdigit()]
        for value in [*reported, *range(other.value - 1, 1, -1)]:
            both = {**overrides, key: str(value)}
            if value < other.value and not violations(situation.outcome({**base, **both}).built, list(both)):
                return both
    return overrides


def _best(tried: list[Chosen]) -> Chosen:
    """The value a matching case ran with, where it fits or was confirmed; else the mildest that fits; else one step."""
    reported = sorted(
        (c for c in tried if c.documented is not None), key=lambda c: c.documented.rank if c.documented else 0
    )
    for chosen in reported:
        if chosen.fits or (chosen.documented is not None and chosen.documented.confirmed) or chosen.fits is None:
            return chosen
    return next((chosen for chosen in tried if chosen.fits), reported[0] if reported else tried[0])


def _documented(native: Native, situation: Situation) -> dict[str, Reported]:
    """Value → what matching cases report of it for this key, best match first."""
    found: dict[str, Reported] = {}
    for case in situation.cases:
        for value in case.values.get(native.key.removeprefix(EnvironmentPrefix), []):
            text = f"{case.id} ({case.grade})"
            found.setdefault(str(value), Reported(text, len(found), case.grade == "confirmed"))
    return found


def _with_documented(values: list[KnobValue], documented: Mapping[str, Reported], native: Native) -> list[KnobValue]:
    """Candidates with the documented values sorted in among them, in the same direction."""
    old = native.value
    if not values or isinstance(values[0], (bool, str)) or isinstance(old, bool) or not isinstance(old, (int, float)):
        return values
    lower = float(values[0]) < float(old)
    extra = [float(text) for text in documented if _is_number(text)]
    extra = [v for v in extra if (v < old) == lower and v != old]
    if not extra:
        return values
    merged = {
        float(v): v
        for v in [*(int(e) if isinstance(old, int) else e for e in extra), *values]
        if not isinstance(v, (bool, str))
    }
    return [merged[v] for v in sorted(merged, reverse=lower)]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _overrides(remedy: Remedy, native: Native, value: KnobValue, before: Outcome) -> dict[str, str | None] | None:
    """Native key → new text for the remedy's knob and those along with it; None where the key has no word for it."""
    if native.fact is not None and remedy.knob is not None and _speaks_in_words(native, remedy.knob):
        word = unbecome(native.fact, remedy.knob, value, before.built.natives, native.key)
        if word is None:
            return None
        overrides: dict[str, str | None] = {native.key: _respelled(word, native)}
    else:
        overrides = {native.key: _spelled(native, value)}
    for knob, rule in remedy.also.items():
        other = before.built.natives.carrier(knob)
        if other is not None:
            for extra in candidates(rule, other, before.built)[:1]:
                overrides[other.key] = _spelled(other, extra)
    return overrides


def _respelled(word: str, native: Native) -> str | None:
    """A word of the framework in the spelling that the file already uses; None removes a flag."""
    assert native.fact is not None
    parsed = parse_value(word, native.fact.type)
    return _spelled(native, parsed) if isinstance(parsed, bool) else word


def _spelled(native: Native, value: KnobValue) -> str | None:
    if native.fact is not None and native.fact.type == "flag":
        return "true" if value else None
    return spell(value, native.fact, native.text) if native.fact is not None else str(value)


def _old(before: Outcome, key: str) -> str | None:
    known = before.built.natives.values.get(key)
    return known.text if known is not None else None


def _basis(chosen: Chosen) -> Basis:
    if chosen.documented is not None and not chosen.fits:
        return "documented"
    if chosen.outcome.ledger.missing:
        return "estimated"
    return chosen.outcome.ledger.basis


def _facts(before: Outcome, chosen: Chosen) -> tuple[SettingFact, ...]:
    known = [before.built.natives.values.get(key) for key in chosen.overrides]
    return tuple(native.fact for native in known if native is not None and native.fact is not None)
