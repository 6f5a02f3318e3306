"""Lists the values one remedy may give its setting on this run, each with what it leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import log

from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge.schema import Remedy, SettingFact
from advisor.language import Sayings, mark, say
from advisor.memory.predict import Overrides, Prediction
from advisor.plan.candidates import (
    LENGTHS,
    Joined,
    Reported,
    at_most,
    candidates,
    documented_values,
    forms,
    least,
    no_room_for_engine,
    of_framework,
    printed_now,
    with_documented,
    within_context,
)
from advisor.plan.situation import Situation
from advisor.rules.expression import Expression
from advisor.rules.tree import as_number
from advisor.run.bound import default_here
from advisor.run.build import BuiltRun
from advisor.run.constraints import divisors_of, newly_broken, newly_in_doubt, no_effect, violations
from advisor.run.conversion import conversions, from_knob, meaning, speaks_in_words, words_of
from advisor.run.natives import EnvironmentPrefix, Native, Natives, default_of, fact_in
from advisor.run.run import KnobValue
from advisor.run.values import parse_value, spell

_SOME_LENGTH = 1024
"""Tokens, to see whether a key carries a length in this kind of run."""
_REFUSED = mark("{key} {old} → {new}: {why}")


class Option(Struct, frozen=True):
    """One candidate value with what it leads to."""

    value: KnobValue
    overrides: dict[str, str | None]
    outcome: Prediction
    fits: bool | None
    """Alone, in every phase, on GPU and host; None where it cannot be computed."""
    distance: float = 1.0
    """How far the value moves; only comparable within one kind of change."""
    documented: Reported | None = None
    kept: bool = False
    """Partners moved along, so that what the key alone would change in the results stays."""
    caveats: tuple[str, ...] = ()
    facts: tuple[SettingFact, ...] = ()
    """What the dialect says of the keys that change, the kept ones aside."""
    present: Native | None = None
    """The setting as it stands: as read, as the log printed it, or "assumed" because no launch shows it."""

    @property
    def same_results(self) -> bool:
        """No key that changes here moves the results."""
        return all(fact.results == "unchanged" for fact in self.facts)


def _carrier(remedy: Remedy, before: BuiltRun) -> Native | None:
    """The native key to change; an environment remedy brings its own variable where no dialect carries the knob."""
    native = before.natives.carrier(remedy.knob) if remedy.knob is not None else None
    native = native if native is None else _in_its_file(native, remedy.knob or "", before.natives)
    if native is None and remedy.environment:
        key = EnvironmentPrefix + remedy.environment
        return before.natives.values.get(key) or Native(key, None, None, "default")
    if native is None or not _speaks_in_words(native, remedy.knob):
        return native
    return replace(native, value=before.run.value(remedy.knob or ""))


def _in_its_file(native: Native, knob: str, natives: Natives) -> Native:
    """The key inside of the file that a setting names, where that is the user's own and not one the framework ships."""
    file = native.text or ""
    shipped = () if native.fact is None else {word.rpartition("/")[2] for word in native.fact.words}
    if not _is_file(file) or native.fact is None or file.rpartition("/")[2] in shipped:
        return native
    return next((one for one in natives.carriers(knob) if ":" in one.key), native)


def _is_file(text: str) -> bool:
    return text.endswith((".json", ".yaml", ".yml"))


def _unseen(situation: Situation) -> bool:
    """What the launch leaves out is not known: only a log speaks of the run, or a part or a file of it is missing."""
    return not situation.now.run.seen_whole


def unseen_number(remedy: Remedy, situation: Situation) -> bool:
    """Whether it lowers what a launch not seen whole leaves open, so that only the direction can be told: a length
    without a usual default, a budget of tokens without one, what by default is as low as it goes where no setting was
    seen, and what a config that was not found, or a variable that nobody set, says.
    """
    knob, natives = remedy.knob or "", situation.now.built.natives
    carrier = natives.carrier(knob)
    if carrier is not None and carrier.setting is not None and not carrier.setting.resolved:
        return remedy.value is not None and remedy.value.next is not None and remedy.value.floor is not None
    if not _unseen(situation) or carrier is None or carrier.given or carrier.fact is None:
        return False
    if knob.endswith(".tokens_per_gpu"):
        return carrier.value is None and not _stated_off("actor.dynamic_batch", natives)
    if _in_missing_file(situation) and carrier.value is None:
        return remedy.value is not None and remedy.value.next is not None and remedy.value.floor is not None
    if knob not in LENGTHS:
        return _lowest_by_default(remedy, carrier.fact, natives) and not situation.now.run.settings
    if _usual_length(carrier, situation):
        return False
    rule = conversions(carrier.fact).get(knob)
    return rule is None or meaning(rule, str(_SOME_LENGTH), carrier.fact, natives) is not None


def _in_missing_file(situation: Situation) -> bool:
    """Whether a config that was not found sets what the launch does not, more likely than not."""
    return bool(situation.now.run.missing_files) and situation.predictor.inputs.launch is not None


def _lowest_by_default(remedy: Remedy, fact: SettingFact, natives: Natives) -> bool:
    floor, default = least(remedy.value) if remedy.value is not None else None, as_number(default_here(fact, natives))
    return floor is not None and default is not None and default <= floor and remedy.results == "unchanged"


def _stated_off(knob: str, natives: Natives) -> bool:
    """Whether the launch itself switches something off."""
    switch = natives.carrier(knob)
    return switch is not None and switch.given and switch.value is False


def by_default(remedy: Remedy, situation: Situation) -> bool:
    """Whether the framework's default is what the remedy would set, in a launch that shows nothing of it."""
    natives = situation.now.built.natives
    native = natives.carrier(remedy.knob) if remedy.knob is not None else None
    if native is None or native.fact is None or native.given or remedy.value is None or not _unseen(situation):
        return False
    default, told = default_here(native.fact, natives), situation.predictor.inputs.recognised
    eras = told.framework.eras if told.framework is not None and told.era_told_by == "nothing" else ()
    having = [era.id for era in eras if fact_in(native.fact, era.id) is not None]
    if remedy.id in situation.led or len({default_of(native.fact, era) for era in having}) > 1:
        return False  # the failing line says otherwise, or another version, and nobody knows which one runs
    rule = conversions(native.fact).get(remedy.knob or "")
    text = None if default is None else str(default)
    means = parse_value(text or "", native.fact.type) if rule is None else meaning(rule, text, native.fact, natives)
    parts = means.split(",") if isinstance(means, str) else [means]  # of the allocator's settings one is asked for
    return remedy.value.to is not None and default is not None and remedy.value.to in (means, *parts)


def _usual_length(native: Native, situation: Situation) -> bool:
    """Whether runs keep the framework's length, where it has one: those that generate their answers set their own."""
    run, natives = situation.now.run, situation.now.built.natives
    default = default_here(native.fact, natives) if native.fact is not None else None
    return run.recipe.answers != "generated" and isinstance(default, int) and default > 0


def _assumed(native: Native, remedy: Remedy, situation: Situation) -> Native:
    """The key at the framework's default, where no launch shows it. Switches only where the default already is the aim:
    one that is on by itself needs no switching on.
    """
    to, fact = remedy.value.to if remedy.value is not None else None, native.fact
    if fact is None or native.given or native.value is not None or not _unseen(situation):
        return native
    if remedy.knob in LENGTHS and not _usual_length(native, situation):
        return native
    if _in_missing_file(situation):
        return native
    if fact.type == "flag" and to is False:
        return replace(native, text="true", value=True, source="assumed")  # what is to be left out can only be there
    default = default_here(fact, situation.now.built.natives)
    number = isinstance(default, (int, float)) and not isinstance(default, bool)
    if to is not None and by_default(remedy, situation):
        return replace(native, text=str(default), value=to, source="assumed")
    if _speaks_in_words(native, remedy.knob) or not number:
        return native
    return replace(native, text=str(default), value=parse_value(str(default), fact.type), source="assumed")


def _least(remedy: Remedy, native: Native, situation: Situation) -> list[KnobValue]:
    """Where nobody knows the present value: the least one, which cannot be above it."""
    floor = least(remedy.value) if remedy.value is not None else None
    unknown = native.value is None and native.fact is not None and not native.given and _unseen(situation)
    quiet = unknown and remedy.results == "unchanged"  # no shortest answer is asked for on no knowledge at all
    if quiet and native.fact is not None and situation.now.run.settings:
        quiet = not _lowest_by_default(remedy, native.fact, situation.now.built.natives)
    return [floor] if quiet and floor is not None else []


def _said_of_unknown(native: Native, situation: Situation) -> tuple[str, ...]:
    """That nobody knows the present value of a number, where that is so."""
    unknown = native.value is None and not native.given and _unseen(situation)
    lower = unknown and native.fact is not None and native.fact.type == "int"
    return (say("what {key} is now is not known; anything below it helps", key=native.key),) if lower else ()


def _speaks_in_words(native: Native, knob: str | None) -> bool:
    """Whether the key's text is a word or a negation that stands for the knob's value."""
    if native.fact is None or knob is None:
        return False
    return speaks_in_words(conversions(native.fact).get(knob))


def _at_its_least(remedy: Remedy, native: Native, built: BuiltRun) -> bool:
    """Whether each rank has the least already, whatever number the key has: one of all ranks is divided by them."""
    floor = least(remedy.value) if remedy.value is not None else None
    divided = native.fact is not None and conversions(native.fact).get(remedy.knob or "") is not None
    now = as_number(built.run.value(remedy.knob or "")) if remedy.knob is not None else None
    sure = native.given and divided and not built.run.topology.assumed
    return sure and floor is not None and now is not None and now <= floor


def options(remedy: Remedy, situation: Situation, base: Overrides) -> tuple[list[Option], str] | None:
    """Allowed values on top of `base`, the mildest first, and the rule that forbade others, where one did.

    None where this framework has no such lever. Where partners can move along so that the results stay, only those
    forms count. A value counts as reported where a matching case names it.
    """
    before = situation.predictor.predict(base)
    seen = _carrier(remedy, before.built)
    if seen is None or remedy.value is None or unseen_number(remedy, situation):
        return None
    if _at_its_least(remedy, seen, before.built):
        return [], ""
    native = _assumed(printed_now(remedy.value, seen, situation.facts), remedy, situation)
    said = _said_of_unknown(native, situation) if remedy.value.next is not None else ()
    documented = documented_values(native, situation)
    if not documented and remedy.value.low is not None and before.enough is None:
        documented = of_framework(native, situation)
    tried: list[Option] = []
    broken = ""
    found_values = candidates(remedy.value, native, before.built) or _least(remedy, native, situation)
    present = native.value if situation.uncounted or before.enough is None else None
    found_values = at_most(remedy.value, with_documented(found_values, documented, native), situation.facts, present)
    for value in within_context(remedy.knob, found_values, before.built):
        made = _tried(value, native, remedy, situation, base, documented)
        if isinstance(made, str):
            broken = broken or made
        else:
            tried.append(replace(made, caveats=(*said, *made.caveats)))
    kept = [option for option in tried if option.kept and option.same_results]
    return kept or tried, broken


def option_with(text: str, remedy: Remedy, situation: Situation, base: Overrides) -> Option | str:
    """The remedy with a number that the user wrote, on top of `base`; or why it cannot be that."""
    seen = _carrier(remedy, situation.predictor.built(base))
    if seen is None or remedy.value is None:
        return say("it has no value that could be chosen")
    native = _assumed(printed_now(remedy.value, seen, situation.facts), remedy, situation)
    kind = native.fact.type if native.fact is not None else "float" if "." in text else "int"
    value = parse_value(text, kind) if kind in ("int", "float") else None
    if value is None:
        whole = say("{key} takes a whole number", key=native.key)
        return whole if kind == "int" else say("{key} takes a number", key=native.key)
    return _tried(value, native, remedy, situation, base, documented_values(native, situation)) or say(
        "{key} cannot be written so", key=native.key
    )


def _tried(
    value: KnobValue,
    native: Native,
    remedy: Remedy,
    situation: Situation,
    base: Overrides,
    documented: Mapping[str, Reported],
) -> Option | str:
    """One value with what it leads to; or which rule forbids it, "" where the key has no such word at all."""
    before = situation.predictor.predict(base)
    overrides = _overrides(remedy, native, value, before.built)
    if overrides is None:
        return _no_word(native, remedy.knob or "", value, before.built.natives)
    found, wrong = _allowed(forms(native, overrides, before.built.natives, before.run.knobs), native, situation, base)
    if found is None:
        return say(_REFUSED, key=native.key, old=native.text, new=value, why=wrong)
    changed = {**base, **found.overrides}
    if idle := no_effect(situation.predictor.built(changed), native.key):
        return no_effect(before.built, native.key) or idle
    if stuck := no_room_for_engine(remedy, value, before, situation.predictor.predict(changed)):
        return say(_REFUSED, key=native.key, old=native.text, new=value, why=stuck)
    made = _option(value, found, overrides, native, remedy, situation, base, documented)
    doubts = newly_in_doubt(before.built, situation.predictor.built(changed), found.overrides)
    unseen = (say("the launch was not seen whole: {rule}", rule=doubt) for doubt in doubts)
    return replace(made, present=native, caveats=(*made.caveats, *unseen))


def _option(
    value: KnobValue,
    found: Joined,
    overrides: Mapping[str, str | None],
    native: Native,
    remedy: Remedy,
    situation: Situation,
    base: Overrides,
    documented: Mapping[str, Reported],
) -> Option:
    outcome = situation.predictor.predict({**base, **found.overrides})
    return Option(
        value,
        dict(found.overrides),
        outcome,
        None if situation.uncounted else outcome.enough,
        _distance(native.value, value),
        documented.get(str(value)),
        found.kept,
        (*_along(native, value, overrides, remedy, situation.predictor.built(base).natives), *found.caveats),
        _facts(situation.predictor.built(base), native, overrides, found),
    )


def _distance(old: object, new: object) -> float:
    """How far a value moves: the logarithm of the ratio; 1 for a switch, and where there was no number before."""
    numbers = [float(v) for v in (old, new) if isinstance(v, (int, float)) and not isinstance(v, bool)]
    return abs(log(numbers[1] / numbers[0])) if len(numbers) == 2 and min(numbers) > 0 else 1.0


def _allowed(
    tried: Sequence[Joined], native: Native, situation: Situation, base: Overrides
) -> tuple[Joined | None, str]:
    """The first form that breaks no rule which was not broken before, and what the others broke."""
    said = say("the settings that would have to move with it cannot follow")
    before = situation.predictor.built(base)
    for joined in tried:
        fixed = joined if joined.kept else replace(joined, overrides=_with_divisor(joined, native, situation, base))
        wrong = newly_broken(before, situation.predictor.built({**base, **fixed.overrides}), fixed.overrides)
        if not wrong:
            return fixed, ""
        said = wrong[0]
    return None, said


def _no_word(native: Native, knob: str, value: KnobValue, natives: Natives) -> str:
    """Why the key has no word for the value; "" where it never carries it in this run: that is no lever at all."""
    if _is_file(native.text or ""):
        return say("{key} names a file, {file}: it has to be changed there", key=native.key, file=native.text)
    rule = conversions(native.fact).get(knob) if native.fact is not None else None
    if rule is None or native.fact is None or native.text is None:
        return ""
    if all(meaning(rule, word, native.fact, natives) != value for word in words_of(rule, native.fact)):
        return ""
    return say(
        "{key} {value} stands for several settings at once, and no other value changes this one alone",
        key=native.key,
        value=native.text,
    )


def _with_divisor(joined: Joined, native: Native, situation: Situation, base: Overrides) -> Mapping[str, str | None]:
    """The overrides with the one other key that must divide the new value lowered along, where that mends it.

    Lowered as little as the rule allows, unless a case of this very version ran with another value.
    """
    overrides, before = joined.overrides, situation.predictor.built(base)
    built = situation.predictor.built({**base, **overrides})
    if not violations(built, list(overrides), before):
        return overrides
    for key in divisors_of(built, native.key):
        other = built.natives.values[key]
        if not isinstance(other.value, int) or isinstance(other.value, bool):
            continue
        reported = [int(text) for text in documented_values(other, situation, same_version=True) if text.isdigit()]
        for value in [*reported, *range(other.value - 1, 1, -1)]:
            both = {**overrides, key: str(value)}
            tried = situation.predictor.built({**base, **both})
            if value < other.value and not violations(tried, list(both), before):
                return both
    return overrides


def _overrides(remedy: Remedy, native: Native, value: KnobValue, before: BuiltRun) -> dict[str, str | None] | None:
    """Native key → new text for the remedy's knob and those along with it; None where the key has no word for it."""
    if native.fact is not None and remedy.knob is not None and _speaks_in_words(native, remedy.knob):
        wanted = _of_the_key(remedy, native, value, before)
        word = _word_for(native.fact, wanted, before.natives) if len(wanted) > 1 else None
        word = word or from_knob(native.fact, remedy.knob, value, before.natives, native.key)
        word = word if word is not None else _wider_word(native, remedy.knob, value, before.natives)
        if word is None:
            return None
        overrides: dict[str, str | None] = {native.key: _respelled(word, native)}
    else:
        overrides = {native.key: _spelled(native, value)}
    for knob, rule in remedy.also.items():
        other = before.natives.carrier(knob)
        if other is not None and other.key != native.key:
            for extra in candidates(rule, other, before, value)[:1]:
                in_words = other.fact is not None and _speaks_in_words(other, knob)
                word = from_knob(other.fact, knob, extra, before.natives, other.key) if in_words else None  # type: ignore[arg-type]
                overrides[other.key] = _respelled(word, other) if word is not None else _spelled(other, extra)
    return overrides


def _of_the_key(remedy: Remedy, native: Native, value: KnobValue, before: BuiltRun) -> dict[str, KnobValue]:
    """Knob → value of all that the remedy moves by this one key."""
    carriers = {knob: before.natives.carrier(knob) for knob in remedy.also}
    along = {knob for knob, other in carriers.items() if other is not None and other.key == native.key}
    moved = {knob: candidates(remedy.also[knob], native, before, value)[:1] for knob in along}
    return {remedy.knob or "": value, **{knob: found[0] for knob, found in moved.items() if found}}


def _word_for(fact: SettingFact, wanted: Mapping[str, KnobValue], natives: Natives) -> str | None:
    """The first word of the key that gives every knob the wanted value."""
    rules = {knob: rule for knob, rule in conversions(fact).items() if knob in wanted and rule is not None}
    words = (word for rule in rules.values() for word in words_of(rule, fact))
    return next((w for w in words if all(meaning(r, w, fact, natives) == wanted[k] for k, r in rules.items())), None)


def _respelled(word: str, native: Native) -> str | None:
    """A word of the framework in the spelling that the file already uses; None removes a flag."""
    assert native.fact is not None
    parsed = parse_value(word, native.fact.type)
    return _spelled(native, parsed) if isinstance(parsed, bool) else word


def _spelled(native: Native, value: KnobValue) -> str | None:
    if native.fact is not None and native.fact.type == "flag":
        return "true" if value else None
    return spell(value, native.fact, native.text) if native.fact is not None else str(value)


def _facts(before: BuiltRun, native: Native, asked: Mapping[str, str | None], found: Joined) -> tuple[SettingFact, ...]:
    """What the dialect says of the keys that change; where a product is kept, not of those that keep it."""
    keys = [key for key in found.overrides if not found.kept or (key in asked and key != native.key)]
    known = [before.natives.values.get(key) for key in keys]
    return tuple(native.fact for native in known if native is not None and native.fact is not None)


def _wider_word(native: Native, knob: str, target: KnobValue, natives: Natives) -> str | None:
    """A word that gives the knob a switch's value and moves the key's other switches only in the same direction.

    "zero3" has no word for an optimizer in host RAM alone: "zero3_offload" moves the weights there, too.
    """
    fact = native.fact
    rule = None if fact is None else conversions(fact).get(knob)
    if fact is None or rule is None or not isinstance(target, bool) or native.text is None:
        return None
    for word in words_of(rule, fact):
        if meaning(rule, word, fact, natives) == target and all(
            _goes_along(meaning(r, native.text, fact, natives), meaning(r, word, fact, natives), target)
            for r in _other_words(fact, knob).values()
        ):
            return word
    return None


def _other_words(fact: SettingFact, knob: str) -> dict[str, Expression]:
    """Knob → what a word of the key means for it, for the other knobs that the key chooses by words."""
    rules = conversions(fact)
    return {name: r for name, r in rules.items() if name != knob and r is not None and speaks_in_words(r)}


def _goes_along(old: object, new: object, target: bool) -> bool:
    return old == new or (isinstance(old, bool) and new is target)


def moved_along(native: Native, overrides: Mapping[str, str | None], remedy: Remedy, natives: Natives) -> list[str]:
    """The other knobs that a word moves along with the one that is meant."""
    word, fact = overrides.get(native.key), native.fact
    if fact is None or remedy.knob is None or word is None or not _speaks_in_words(native, remedy.knob):
        return []
    rules = {name: rule for name, rule in _other_words(fact, remedy.knob).items() if name != fact.knob}
    return [
        n for n, r in rules.items() if meaning(r, word, fact, natives) != meaning(r, native.text or "", fact, natives)
    ]


def _along(
    native: Native, value: KnobValue, overrides: Mapping[str, str | None], remedy: Remedy, natives: Natives
) -> tuple[str, ...]:
    """Says which other switches a word moves along with the one that is meant."""
    word, fact = overrides.get(native.key), native.fact
    if fact is None or remedy.knob is None or word is None or not _speaks_in_words(native, remedy.knob):
        return ()
    moved = moved_along(native, overrides, remedy, natives)
    if not moved:
        return ()
    titles = (WEIGHTS.get(name, name) for name in moved)
    names = reduce(lambda one, other: say("{one} and {other}", one=one, other=other), titles)
    return (say("{word} also moves {names}" if value else "{word} also brings back {names}", word=word, names=names),)


WEIGHTS = Sayings({"actor.param_offload": "the weights", "actor.optimizer_offload": "the optimizer state"})
"""What the switches of a word mean, in words."""
