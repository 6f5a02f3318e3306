"""Divisibility, bounds and no-ops, checked before a value is proposed. Named rules, referred to by `must` and `no_effect_when`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from advisor.knowledge.schema import Rule
from advisor.run.build import BuiltRun


@dataclass(frozen=True, slots=True)
class Place:
    """A built run and the key whose value is under scrutiny."""

    built: BuiltRun
    key: str

    def number(self, name: str) -> float | None:
        """A native key's number, or one of the counts of the topology ("gpus", "dp", "processes", …)."""
        topology = self.built.run.topology
        counts = {
            "gpus": topology.actor_gpus,
            "actor_gpus": topology.actor_gpus,
            "processes": topology.actor_gpus,
            "dp": topology.data_parallel,
            "nodes": topology.nodes,
            "gpus_per_node": topology.gpus_per_node,
            "tensor_parallel": topology.tensor_parallel,
        }
        if name in counts:
            return counts[name]
        return self.built.natives.number(name)


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
    return str(rule.get("says") or f"{' x '.join(map(str, rule['value_of']))} must be a multiple of {' x '.join(map(str, rule['by']))}")


def _at_least(rule: Rule, place: Place) -> str:
    """value >= sum(keys) (or >= `value`)."""
    number = place.number(place.key)
    floor = _numbers(place, rule.get("keys", []))
    if number is None or floor is None or number >= sum(floor) + float(rule.get("value", 0)):
        return ""
    return str(rule.get("says") or f"{place.key} must be at least {sum(floor) + float(rule.get('value', 0)):g}")


def _at_most_key(rule: Rule, place: Place) -> str:
    """value <= another key."""
    number, ceiling = place.number(place.key), place.number(str(rule["key"]))
    if number is None or ceiling is None or number <= ceiling:
        return ""
    return str(rule.get("says") or f"{place.key} must not exceed {rule['key']} ({ceiling:g})")


def _at_least_key(rule: Rule, place: Place) -> str:
    """value >= another key."""
    number, floor = place.number(place.key), place.number(str(rule["key"]))
    if number is None or floor is None or number >= floor:
        return ""
    return str(rule.get("says") or f"{place.key} must be at least {rule['key']} ({floor:g})")


def _fixed(rule: Rule, place: Place) -> str:
    """Pinned by the framework itself."""
    found = place.built.natives.value(place.key)
    return "" if found is None or found == rule["value"] else str(rule.get("says") or f"{place.key} is pinned to {rule['value']}")


MUST: dict[str, Callable[[Rule, Place], str]] = {
    "divides": _divides,
    "at_least": _at_least,
    "at_most_key": _at_most_key,
    "at_least_key": _at_least_key,
    "fixed": _fixed,
}


def violations(built: BuiltRun, keys: Sequence[str]) -> list[str]:
    """Sentences for every rule that the values of `keys`, and the dialect as a whole, break."""
    framework = built.natives.framework
    if framework is None:
        return []
    rules = [(key, rule) for key in keys for rule in _rules_of(built, key)]
    rules += [(str(rule.get("key", "")), rule) for rule in framework.must if _in_era(rule, built.run.era)]
    broken = [check(rule, Place(built, key)) for key, rule in rules if (check := MUST.get(str(rule["rule"]))) is not None]
    return list(dict.fromkeys(said for said in broken if said))


def _rules_of(built: BuiltRun, key: str) -> Sequence[Rule]:
    known = built.natives.values.get(key)
    return [r for r in known.fact.must if _in_era(r, built.run.era)] if known is not None and known.fact is not None else ()


def _in_era(rule: Rule, era: str) -> bool:
    eras = rule.get("eras")
    return not eras or era in eras


# --- no-ops ------------------------------------------------------------------------------------------------------


def _always(rule: Rule, place: Place) -> str:
    return str(rule.get("because", "this version ignores it"))


def _key_is(rule: Rule, place: Place) -> str:
    """Ignored while another key has that value."""
    found = place.built.natives.value(str(rule["key"]))
    if found is None or str(found).lower() != str(rule["value"]).lower():
        return ""
    return str(rule.get("because") or f"ignored while {rule['key']} is {rule['value']}")


def _key_is_not(rule: Rule, place: Place) -> str:
    """Ignored unless another key has that value."""
    found = place.built.natives.value(str(rule["key"]))
    if found is not None and str(found).lower() == str(rule["value"]).lower():
        return ""
    return str(rule.get("because") or f"has no effect unless {rule['key']} is {rule['value']}")


def _zero3(rule: Rule, place: Place) -> str:
    return str(rule.get("because")) if place.built.run.number("actor.zero_stage") == 3 else ""


def _not_zero3(rule: Rule, place: Place) -> str:
    stage = place.built.run.number("actor.zero_stage")
    return str(rule.get("because")) if stage is not None and stage != 3 else ""


def _at_least_batch_per_gpu(rule: Rule, place: Place) -> str:
    """A micro-batch that is not below the sequences one GPU holds anyway does not bind."""
    run = place.built.run
    known = place.built.natives.values.get(place.key)
    knob = known.fact.knob if known is not None and known.fact is not None else None
    micro, held = run.number(knob or ""), run.number("actor.sequences_per_gpu")
    if micro is None or held is None or micro < held:
        return ""
    how = run.knobs[knob].note if knob in run.knobs else ""
    return (
        f"{place.key} allows {micro:g} sequences per GPU pass ({how or 'as given'}), and one GPU holds only {held:g} of a step: "
        "it is not what binds"
    )


NO_EFFECT: dict[str, Callable[[Rule, Place], str]] = {
    "always": _always,
    "key_is": _key_is,
    "key_is_not": _key_is_not,
    "zero3": _zero3,
    "not_zero3": _not_zero3,
    "at_least_batch_per_gpu": _at_least_batch_per_gpu,
}


def no_effect(built: BuiltRun, key: str) -> str:
    """Why changing this key would do nothing here, in one clause; "" where it does something."""
    known = built.natives.values.get(key)
    rule = known.fact.no_effect_when if known is not None and known.fact is not None else None
    if rule is None:
        return ""
    eras = rule.get("eras")
    if eras and built.run.era not in eras:
        return ""
    check = NO_EFFECT.get(str(rule["rule"]))
    return check(rule, Place(built, key)) if check is not None else ""
