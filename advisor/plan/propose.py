"""One remedy on this run: which native keys would change, to which values, and what that saves; or why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.diagnosis.conditions import all_hold
from advisor.knowledge.schema import Case, Remedy, SettingFact
from advisor.memory.cells import Place
from advisor.memory.ledger import difference
from advisor.plan.candidates import candidates
from advisor.plan.fit import died_in
from advisor.plan.partners import Joined, forms
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
    kept: bool = False
    """Partners moved along, so that what the key alone would change in the results stays."""
    caveats: tuple[str, ...] = ()
    facts: tuple[SettingFact, ...] = ()
    """What the dialect says of the keys that change, the kept ones aside."""

    @property
    def same_results(self) -> bool:
        """No key that changes here moves the results."""
        return all(fact.results == "unchanged" for fact in self.facts)


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
    chosen, broken = _choose(remedy, native, situation, base, before)
    if chosen is None:
        return NotProposed(remedy.id, remedy.title, broken) if broken else None
    other: Place = "host" if situation.place == "gpu" else "gpu"
    return Proposal(
        remedy,
        chosen.overrides,
        {key: _old(before, key) for key in chosen.overrides},
        difference(before.ledger, chosen.outcome.ledger, situation.place),
        difference(before.ledger, chosen.outcome.ledger, other),
        chosen.fits,
        _basis(chosen),
        chosen.documented.text if chosen.documented is not None else "",
        (*remedy.caveats, *chosen.caveats, *(fact.caveat for fact in chosen.facts if fact.caveat)),
        tuple(c for c in situation.cases if c.id in {e.case for e in remedy.evidence if e.grade != "failed"}),
        chosen.facts,
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
        if overrides is None:
            broken = broken or _no_word(native)
            continue
        found, wrong = _allowed(forms(native, overrides, before.built.natives), native, situation, base)
        if found is None:
            broken = broken or f"{native.key} {native.text} → {value}: {wrong}"
            continue
        outcome = situation.outcome({**base, **found.overrides})
        if idle := no_effect(outcome.built, native.key):
            broken = broken or no_effect(before.built, native.key) or idle
            continue
        said = documented.get(str(value))
        facts = _facts(before, native, overrides, found)
        caveats = (*_along(native, value, overrides, remedy), *found.caveats)
        fits = situation.fits(outcome.ledger)
        tried.append(Chosen(value, dict(found.overrides), outcome, fits, said, found.kept, caveats, facts))
    if not tried:
        return None, broken
    return _best(tried, situation), broken


def _allowed(
    tried: Sequence[Joined], native: Native, situation: Situation, base: Overrides
) -> tuple[Joined | None, str]:
    """The first form that breaks no rule which was not broken before, and what the others broke."""
    said = "the settings that would have to move with it cannot follow"
    before = situation.outcome(base).built
    for joined in tried:
        mended = joined if joined.kept else replace(joined, overrides=_with_divisor(joined, native, situation, base))
        keys = list(mended.overrides)
        already = violations(before, keys)
        wrong = [v for v in violations(situation.outcome({**base, **mended.overrides}).built, keys) if v not in already]
        if not wrong:
            return mended, ""
        said = wrong[0]
    return None, said


def _no_word(native: Native) -> str:
    if str(native.text).endswith((".json", ".yaml", ".yml")):
        return f"{native.key} names a file, {native.text}: it has to be changed there"
    return f"{native.key} {native.text} stands for several settings at once, and no other value changes this one alone"


def _with_divisor(joined: Joined, native: Native, situation: Situation, base: Overrides) -> Mapping[str, str | None]:
    """The overrides with the one other key that must divide the new value lowered along, where that mends it.

    Lowered as little as the rule allows, unless a case of this very version ran with another value.
    """
    overrides = joined.overrides
    built = situation.outcome({**base, **overrides}).built
    if not violations(built, list(overrides)):
        return overrides
    for key in divisors_of(built, native.key):
        other = built.natives.values[key]
        if not isinstance(other.value, int) or isinstance(other.value, bool):
            continue
        reported = [int(text) for text in _documented(other, situation, same_version=True) if text.isdigit()]
        for value in [*reported, *range(other.value - 1, 1, -1)]:
            both = {**overrides, key: str(value)}
            if value < other.value and not violations(situation.outcome({**base, **both}).built, list(both)):
                return both
    return overrides


def _best(tried: list[Chosen], situation: Situation) -> Chosen:
    """The value a matching case ran with, where it fits or was confirmed; else the mildest that fits.

    Where partners can move along so that the results stay, only those count: the mildest that fits, else the last.
    """
    reported = sorted(
        (c for c in tried if c.documented is not None), key=lambda c: c.documented.rank if c.documented else 0
    )
    same = [chosen for chosen in tried if chosen.kept and chosen.same_results]
    if same:
        return next((chosen for chosen in same if chosen.fits), same[-1])
    for chosen in reported:
        if chosen.fits or (chosen.documented is not None and chosen.documented.confirmed) or chosen.fits is None:
            return chosen
    fitting = next((chosen for chosen in tried if chosen.fits), None)
    if fitting is not None or reported:
        return fitting or reported[0]
    quiet = [chosen for chosen in tried if chosen.same_results and chosen.fits is not None]
    # Not enough alone: what leaves the results alone goes as far as it helps, before anything else gives them up.
    return min(quiet, key=lambda chosen: _left_over(chosen, situation)) if quiet else tried[0]


def _left_over(chosen: Chosen, situation: Situation) -> int:
    """Bytes still needed where it died."""
    ledger = chosen.outcome.ledger
    found = ledger.phase(situation.place, died_in(ledger, situation.place, situation.phase))
    return found.expected if found is not None else 0


def _documented(native: Native, situation: Situation, same_version: bool = False) -> dict[str, Reported]:
    """Value → what matching cases report of it for this key, best match first.

    `same_version`: only cases whose library version is known to be the one here.
    """
    found: dict[str, Reported] = {}
    for case in situation.cases:
        versions = [name.removeprefix("version ") for name in case.situation if name.startswith("version ")]
        if same_version and not all(f"library.{library}" in situation.facts for library in versions):
            continue
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
        word = word if word is not None else _wider_word(native.fact, remedy.knob, value, native.text)
        if word is None:
            return None
        overrides: dict[str, str | None] = {native.key: _respelled(word, native)}
    else:
        overrides = {native.key: _spelled(native, value)}
    for knob, rule in remedy.also.items():
        other = before.built.natives.carrier(knob)
        if other is not None:
            for extra in candidates({"to": value, **rule}, other, before.built)[:1]:
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


def _facts(before: Outcome, native: Native, asked: Mapping[str, str | None], found: Joined) -> tuple[SettingFact, ...]:
    """What the dialect says of the keys that change; where a product is kept, not of those that keep it."""
    keys = [key for key in found.overrides if not found.kept or (key in asked and key != native.key)]
    known = [before.built.natives.values.get(key) for key in keys]
    return tuple(native.fact for native in known if native is not None and native.fact is not None)


def _wider_word(fact: SettingFact, knob: str, target: KnobValue, present: str | None) -> str | None:
    """A word that gives the knob a switch's value and moves the key's other switches only in the same direction.

    "zero3" has no word for an optimizer in host RAM alone: "zero3_offload" moves the weights there, too.
    """
    rules = {**fact.also, **({fact.knob: fact.becomes} if fact.knob is not None and fact.becomes else {})}
    if not isinstance(target, bool) or present is None or rules[knob]["rule"] != "words":
        return None
    others = [rule for name, rule in rules.items() if name != knob and rule["rule"] == "words"]
    for word, became in rules[knob]["words"].items():
        if became == target and all(_goes_along(_meant(r, present), _meant(r, str(word)), target) for r in others):
            return str(word)
    return None


def _goes_along(old: object, new: object, target: bool) -> bool:
    return old == new or (isinstance(old, bool) and new is target)


def _meant(rule: Mapping[str, object], word: str) -> object:
    words = rule.get("words")
    return words.get(word, rule.get("otherwise")) if isinstance(words, dict) else None


def _along(native: Native, value: KnobValue, overrides: Mapping[str, str | None], remedy: Remedy) -> tuple[str, ...]:
    """Says which other switches a word moves along with the one that is meant."""
    word, fact = overrides.get(native.key), native.fact
    if fact is None or remedy.knob is None or word is None or not _speaks_in_words(native, remedy.knob):
        return ()
    rules = {name: rule for name, rule in fact.also.items() if rule["rule"] == "words" and name != remedy.knob}
    moved = [n for n, rule in rules.items() if _meant(rule, word) != _meant(rule, native.text or "")]
    names = " and ".join(WEIGHTS.get(name, name) for name in moved)
    return (f"{word} {'also moves' if value else 'also brings back'} {names}",) if names else ()


WEIGHTS = {"actor.param_offload": "the weights", "actor.optimizer_offload": "the optimizer state"}
"""What the switches of a word mean, in words."""
