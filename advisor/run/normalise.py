"""How a framework turns a native value into the knob's unit. Named rules, referred to by `becomes` in the dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from advisor.knowledge.schema import Rule, SettingFact
from advisor.language import say
from advisor.run.bound import Natives
from advisor.run.run import KnobValue, Topology


class Became(Struct, frozen=True):
    """A knob's value and the arithmetic that gave it, in words."""

    value: KnobValue | None
    how: str = ""
    times_samples: bool = False
    """Prompts became sequences."""


class Around(Struct, frozen=True):
    """What a rule may look at beside the value itself."""

    natives: Natives
    topology: Topology

    @property
    def samples(self) -> int:
        """Samples per prompt; 1 where the run does not say."""
        carrier = self.natives.carrier("rollout.samples_per_prompt")
        value = carrier.value if carrier is not None else None
        return int(value) if isinstance(value, (int, float)) and value else 1


def _as_is(value: KnobValue, rule: Rule, around: Around) -> Became:
    return Became(value)


def _divide_by_dp(value: KnobValue, rule: Rule, around: Around) -> Became:
    """value // dp: a global count becomes one per GPU."""
    dp = around.topology.data_parallel
    became = int(value) // dp
    how = say("{value} // {ranks} data-parallel ranks = {became}", value=value, ranks=dp, became=became)
    return Became(became, how)


def _divide_then_times_n(value: KnobValue, rule: Rule, around: Around) -> Became:
    """(value // dp) * n: the forks of January 2025 count prompts and multiply by the samples."""
    dp, n = around.topology.data_parallel, around.samples
    became = (int(value) // dp) * n
    how = say(
        "({value} // {ranks} data-parallel ranks) * {samples} samples = {became}",
        value=value,
        ranks=dp,
        samples=n,
        became=became,
    )
    return Became(became, how, times_samples=True)


def _times_n_then_divide(value: KnobValue, rule: Rule, around: Around) -> Became:
    """(value * n) // dp: prompts become sequences, then one GPU's share."""
    dp, n = around.topology.data_parallel, around.samples
    became = int(value) * n // dp
    how = say(
        "{value} * {samples} samples // {ranks} data-parallel ranks = {became}",
        value=value,
        samples=n,
        ranks=dp,
        became=became,
    )
    return Became(became, how, times_samples=True)


def _times(value: KnobValue, rule: Rule, around: Around) -> Became:
    """value * the value of another key."""
    other = around.natives.number(str(rule.get("key", "")))
    if other is None:
        return Became(value)
    return Became(int(float(value) * other), f"{value} * {other:g} ({rule['key']})")


def _words(value: KnobValue, rule: Rule, around: Around) -> Became:
    """A word of the framework becomes the knob's value: {words: {zero3: 3}}; unknown words become `otherwise`."""
    return Became(_word(rule, str(value)))


def _negated(value: KnobValue, rule: Rule, around: Around) -> Became:
    """A switch that means the opposite of the knob."""
    return Became(not value if isinstance(value, bool) else None)


def _by_era(value: KnobValue, rule: Rule, around: Around) -> Became:
    """Another rule for each era: {eras: {ID: rule, "*": rule}}."""
    eras = rule["eras"]
    chosen = eras.get(around.natives.era, eras.get("*"))
    return becomes(value, chosen, around)


def _reset(value: KnobValue, rule: Rule, around: Around) -> Became:
    """A value the framework overrules: {from: 0.9, to: 0.4, when: KEY} makes 0.4 of 0.9 and more while KEY is on."""
    if around.natives.value(str(rule["when"])) is not True or float(value) < float(rule["from"]):
        return Became(value)
    how = say("{value:g} becomes {to:g} with {key}", value=value, to=rule["to"], key=rule["when"])
    return Became(rule["to"], how)


def _when_on(value: KnobValue, rule: Rule, around: Around) -> Became:
    """The value itself while the switch `key` is on, else nothing."""
    return Became(value if around.natives.value(str(rule["key"])) is True else None)


BECOMES: dict[str, Callable[[KnobValue, Rule, Around], Became]] = {
    "as_is": _as_is,
    "divide_by_dp": _divide_by_dp,
    "divide_then_times_n": _divide_then_times_n,
    "times_n_then_divide": _times_n_then_divide,
    "times": _times,
    "words": _words,
    "negated": _negated,
    "by_era": _by_era,
    "reset": _reset,
    "when_on": _when_on,
}


def unbecome(fact: SettingFact, knob: str, target: KnobValue, natives: Natives, key: str) -> str | None:
    """The framework's own word under which `knob` takes the value `target` and the other knobs of the key stay put.

    For keys that speak in words or negations; None where no word does it.
    """
    rules: dict[str, Rule | None] = {**fact.also, **({fact.knob: fact.becomes} if fact.knob is not None else {})}
    rule = rules[knob]
    if rule is None or rule["rule"] not in ("words", "negated"):
        return str(target)
    if rule["rule"] == "negated":
        return str(not target).lower() if isinstance(target, bool) else None
    present = natives.values[key].text or ""
    others = [r for name, r in rules.items() if name != knob and r is not None and r["rule"] == "words"]
    for word, became in rule["words"].items():
        if became == target and all(_word(r, str(word)) == _word(r, present) for r in others):
            return str(word)
    return None


def _word(rule: Rule, word: str) -> KnobValue | None:
    words: Mapping[str, KnobValue | None] = rule.get("words", {})
    otherwise: KnobValue | None = rule.get("otherwise")
    return words.get(word.lower(), words.get(word, otherwise))


def becomes(value: KnobValue, rule: Rule | None, around: Around) -> Became:
    """Apply a dialect's `becomes`. A value that is not a number is kept as it is by the arithmetic rules."""
    if rule is None:
        return Became(value)
    arithmetic = str(rule["rule"]) not in ("as_is", "words", "negated", "by_era")
    if arithmetic and (isinstance(value, bool) or not isinstance(value, (int, float))):
        return Became(value)
    return BECOMES[str(rule["rule"])](value, rule, around)
