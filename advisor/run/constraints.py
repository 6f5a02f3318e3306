"""Divisibility and bounds, checked before a value is proposed. Named rules, referred to by `must` in the dialects."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from math import prod

from msgspec import Struct

from advisor.knowledge.schema import Rule
from advisor.language import say
from advisor.run.build import BuiltRun
from advisor.run.normalise import Around, becomes

_COUNTS = {
    "gpus": "actor_gpus",
    "actor_gpus": "actor_gpus",
    "processes": "actor_gpus",
    "dp": "data_parallel",
    "nodes": "nodes",
    "gpus_per_node": "gpus_per_node",
    "tensor_parallel": "tensor_parallel",
}
"""A rule's word → the count of the topology."""


class Place(Struct, frozen=True):
    """A built run and the key whose value is under scrutiny."""

    built: BuiltRun
    key: str

    def number(self, name: str) -> float | None:
        """A native key's number, or one of the counts of the topology ("gpus", "dp", "processes", …)."""
        if name not in _COUNTS:
            return self.built.natives.number(name)
        count: int = getattr(self.built.run.topology, _COUNTS[name])
        return count


def _numbers(place: Place, names: Sequence[str]) -> list[float] | None:
    """All numbers, None where one is not known: the rule then says nothing."""
    found = [place.number(str(name)) for name in names]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) else None


def _divides(rule: Rule, place: Place) -> str:
    """product(value_of) % product(by) == 0."""
    of, by = _numbers(place, rule["value_of"]), _numbers(place, rule["by"])
    if of is None or by is None or prod(by) == 0 or prod(of) % prod(by) == 0:
        return ""
    factors = {"product": _product(rule["value_of"]), "divisor": _product(rule["by"])}
    return str(rule.get("says") or say("{product} must be a multiple of {divisor}", **factors))


def _product(keys: Sequence[object]) -> str:
    return " x ".join(map(str, keys))


def _all_of(keys: Iterable[object]) -> str:
    return say(" and ").join(map(str, keys))


def _at_least(rule: Rule, place: Place) -> str:
    """value (x the key `times`) >= sum(keys) + `value`."""
    number, factor = place.number(place.key), place.number(str(rule["times"])) if "times" in rule else 1.0
    floor = _numbers(place, rule.get("keys", []))
    if number is None or factor is None or floor is None:
        return ""
    least = sum(floor) + float(rule.get("value", 0))
    if number * factor >= least:
        return ""
    return str(rule.get("says") or say("{key} must be at least {least:g}", key=place.key, least=least))


def _at_most_key(rule: Rule, place: Place) -> str:
    """value <= another key."""
    number, ceiling = place.number(place.key), place.number(str(rule["key"]))
    if number is None or ceiling is None or number <= ceiling:
        return ""
    told = {"key": place.key, "other": rule["key"], "ceiling": ceiling}
    return str(rule.get("says") or say("{key} must not exceed {other} ({ceiling:g})", **told))


def _at_least_key(rule: Rule, place: Place) -> str:
    """value >= another key."""
    number, floor = place.number(place.key), place.number(str(rule["key"]))
    if number is None or floor is None or number >= floor:
        return ""
    told = {"key": place.key, "other": rule["key"], "floor": floor}
    return str(rule.get("says") or say("{key} must be at least {other} ({floor:g})", **told))


def _fixed(rule: Rule, place: Place) -> str:
    """Pinned by the framework itself."""
    found = place.built.natives.value(place.key)
    if found is None or found == rule["value"]:
        return ""
    return str(rule.get("says") or say("{key} is pinned to {value}", key=place.key, value=rule["value"]))


def _fixed_while(rule: Rule, place: Place) -> str:
    """Pinned to a value while another key has the value `is`."""
    other, found = place.built.natives.value(str(rule["key"])), place.built.natives.value(place.key)
    if other != rule["is"] or found is None or found == rule["value"]:
        return ""
    told = {"key": place.key, "value": rule["value"], "other": rule["key"], "other_value": rule["is"]}
    return str(rule.get("says") or say("{key} is pinned to {value} while {other} is {other_value}", **told))


def _equal(rule: Rule, place: Place) -> str:
    """All keys (or products "a*b") are equal, while the boolean key `when` is on."""
    natives = place.built.natives
    if "when" in rule and natives.value(str(rule["when"])) is not True:
        return ""
    found = [_numbers(place, str(name).split("*")) for name in rule["keys"]]
    known = [prod(numbers) for numbers in found if numbers is not None]
    if len(set(known)) <= 1:
        return ""
    return str(rule.get("says") or say("{keys} must be equal", keys=_all_of(rule["keys"])))


def _excludes_key(rule: Rule, place: Place) -> str:
    """Refused together with another key."""
    natives = place.built.natives
    if natives.value(place.key) is None or natives.value(str(rule["key"])) is None:
        return ""
    return str(rule.get("says") or say("{keys} cannot both be set", keys=_all_of([place.key, rule["key"]])))


def _not_together(rule: Rule, place: Place) -> str:
    """The terms {key, is: value} or {key, above: number} of `all` must not hold all at once."""
    if not all(_holds(term, place.built) for term in rule["all"]):
        return ""
    return str(rule.get("says") or say("{keys} exclude each other", keys=_all_of(term["key"] for term in rule["all"])))


def _holds(term: Rule, built: BuiltRun) -> bool:
    natives, key = built.natives, str(term["key"])
    if "above" in term:
        number = natives.number(key)
        return number is not None and number > float(term["above"])
    return bool(natives.value(key) == term["is"])


def _must_not_hold(rule: Rule, place: Place) -> str:
    """The value must not contain a text."""
    known = place.built.natives.values.get(place.key)
    held = known is not None and known.text is not None and str(rule["text"]) in known.text
    if not held:
        return ""
    return str(rule.get("says") or say("{key} must not hold {text}", key=place.key, text=rule["text"]))


def _normalised(term: Rule, place: Place) -> float | None:
    """A native value after the framework's own arithmetic: {key: K, becomes: RULE}; None where it is not known."""
    value = place.built.natives.value(str(term["key"]))
    if value is None or isinstance(value, (bool, str)):
        return None
    became = becomes(value, {"rule": str(term["becomes"])}, Around(place.built.natives, place.built.run.topology))
    return float(became.value) if isinstance(became.value, (int, float)) else None


def _normalised_divides(rule: Rule, place: Place) -> str:
    """normalised(value_of) % normalised(by) == 0, and neither became zero."""
    of, by = _normalised(rule["value_of"], place), _normalised(rule["by"], place)
    if of is None or by is None or (by and of % by == 0):
        return ""
    told = {"key": rule["value_of"]["key"], "divisor": rule["by"]["key"]}
    return str(rule.get("says") or say("{key} must be a multiple of {divisor} per GPU", **told))


def _normalised_equal(rule: Rule, place: Place) -> str:
    """normalised(value_of) == normalised(to), while the key itself has the value `when`."""
    if "when" in rule and place.built.natives.value(place.key) != rule["when"]:
        return ""
    of, to = _normalised(rule["value_of"], place), _normalised(rule["to"], place)
    if of is None or to is None or of == to:
        return ""
    keys = _all_of([rule["value_of"]["key"], rule["to"]["key"]])
    return str(rule.get("says") or say("{keys} must be equal per GPU", keys=keys))


def _heads_divide(rule: Rule, place: Place) -> str:
    """Attention heads % value == 0; key-value heads are split evenly, or each copied evenly (`copies: false`: not so).

    Known shapes only.
    """
    number, shape = place.number(place.key), place.built.run.model
    if number is None or number < 1 or shape is None or shape.basis == "estimated":
        return ""
    size = int(number)
    copied = rule.get("copies") is not False and size % max(1, shape.kv_heads) == 0
    even = shape.kv_heads < 1 or shape.kv_heads % size == 0 or copied
    if shape.heads % size == 0 and even:
        return ""
    return say(
        "{says} ({model} has {heads} attention heads and {kv_heads} key-value heads)",
        says=rule.get("says") or say("{key} must divide the attention heads", key=place.key),
        model=shape.name,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
    )


def _text_only(rule: Rule, place: Place) -> str:
    """Pinned to a value for vision-language models."""
    shape, found = place.built.run.model, place.built.natives.value(place.key)
    if shape is None or not shape.vision_parameters or found is None or found == rule["value"]:
        return ""
    told = {"key": place.key, "value": rule["value"]}
    return str(rule.get("says") or say("{key} must be {value} for vision-language models", **told))


MUST: dict[str, Callable[[Rule, Place], str]] = {
    "divides": _divides,
    "at_least": _at_least,
    "at_most_key": _at_most_key,
    "at_least_key": _at_least_key,
    "fixed": _fixed,
    "fixed_while": _fixed_while,
    "equal": _equal,
    "excludes_key": _excludes_key,
    "not_together": _not_together,
    "must_not_hold": _must_not_hold,
    "normalised_divides": _normalised_divides,
    "normalised_equal": _normalised_equal,
    "heads_divide": _heads_divide,
    "text_only": _text_only,
}


def violations(built: BuiltRun, keys: Sequence[str]) -> list[str]:
    """Sentences for every rule that the values of `keys`, and the dialect as a whole, break."""
    rules = [(key, rule) for key in keys for rule in _rules_of(built, key)]
    broken = [_said(key, rule, built) for key, rule in (*rules, *_of_dialect(built))]
    return list(dict.fromkeys(said for said in broken if said))


def newly_broken(before: BuiltRun, after: BuiltRun, changed: Container[str] = ()) -> list[str]:
    """Sentences for every rule of the framework that holds before and not after, those of `changed` keys first.

    A rule about two keys is written down at one of them, and a count of the topology moves with keys of its own.
    """
    already = {rule for rule, _ in _all_broken(before)}
    broken = [(rule, said) for rule, said in _all_broken(after) if rule not in already]
    broken.sort(key=lambda one: one[0][0] not in changed)
    return list(dict.fromkeys(said for _, said in broken))


def _all_broken(built: BuiltRun) -> list[tuple[tuple[str, int], str]]:
    """(where the rule stands, what it says) of every rule of this era that the values in force break."""
    if not built.broken:
        built.broken.append(_checked(built))
    return built.broken[0]


def _checked(built: BuiltRun) -> list[tuple[tuple[str, int], str]]:
    rules = [((key, n), rule) for key in built.natives.values for n, rule in enumerate(_rules_of(built, key))]
    rules += [(("", n), rule) for n, (_, rule) in enumerate(_of_dialect(built))]
    said = [((key, n), _said(key or str(rule.get("key", "")), rule, built)) for (key, n), rule in rules]
    return [(place, sentence) for place, sentence in said if sentence]


def _of_dialect(built: BuiltRun) -> list[tuple[str, Rule]]:
    framework = built.natives.framework
    rules = framework.must if framework is not None else ()
    return [(str(rule.get("key", "")), rule) for rule in rules if _in_era(rule, built.run.era)]


def _said(key: str, rule: Rule, built: BuiltRun) -> str:
    return "" if _excused(rule, built) else MUST[str(rule["rule"])](rule, Place(built, key))


def divisors_of(built: BuiltRun, key: str) -> list[str]:
    """Other native keys that must divide the value of `key`, by the dialect's rules."""
    named = [str(name) for rule in _rules_of(built, key) if rule["rule"] == "divides" for name in rule["by"]]
    return [name for name in named if name != key and name in built.natives.values]


def _rules_of(built: BuiltRun, key: str) -> Sequence[Rule]:
    """The rules of a key in this era; none for a key that the launch's backend does not read."""
    known = built.natives.values.get(key)
    fact = known.fact if known is not None else None
    if fact is None or not fact.must or not built.natives.reads(fact):
        return ()
    return [rule for rule in fact.must if _in_era(rule, built.run.era)]


def _excused(rule: Rule, built: BuiltRun) -> bool:
    """`unless: {key, value}`: the framework skips the check while another key has that value."""
    unless = rule.get("unless")
    return isinstance(unless, dict) and built.natives.value(str(unless["key"])) == unless["value"]


def _in_era(rule: Rule, era: str) -> bool:
    eras = rule.get("eras")
    return not eras or era in eras
