"""Settings that would do nothing here, and why. Named rules, referred to by `no_effect_when`."""

from __future__ import annotations

from collections.abc import Callable

from advisor.knowledge.schema import Rule
from advisor.language import say
from advisor.run.build import BuiltRun
from advisor.run.constraints import Place


def _always(rule: Rule, place: Place) -> str:
    return str(rule.get("because") or say("this version ignores it"))


def _key_is(rule: Rule, place: Place) -> str:
    """Ignored while another key has that value."""
    found = place.built.natives.value(str(rule["key"]))
    if found is None or str(found).lower() != str(rule["value"]).lower():
        return ""
    return str(rule.get("because") or say("ignored while {key} is {value}", key=rule["key"], value=rule["value"]))


def _key_is_not(rule: Rule, place: Place) -> str:
    """Ignored unless another key has that value."""
    found = place.built.natives.value(str(rule["key"]))
    if found is not None and str(found).lower() == str(rule["value"]).lower():
        return ""
    return str(
        rule.get("because") or say("has no effect unless {key} is {value}", key=rule["key"], value=rule["value"])
    )


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
    found = run.knobs.get(knob or "")
    return say(
        "{key} allows {micro:g} sequences per GPU pass ({how}), and one GPU holds only {held:g} of a step: it is not "
        "what binds",
        key=place.key,
        micro=micro,
        how=found.note if found is not None and found.note else say("as given"),
        held=held,
    )


def _any_of(rule: Rule, place: Place) -> str:
    """The first of several reasons that holds."""
    reasons = (NO_EFFECT[str(part["rule"])](part, place) for part in rule["rules"])
    return next((reason for reason in reasons if reason), "")


NO_EFFECT: dict[str, Callable[[Rule, Place], str]] = {
    "always": _always,
    "key_is": _key_is,
    "key_is_not": _key_is_not,
    "zero3": _zero3,
    "not_zero3": _not_zero3,
    "at_least_batch_per_gpu": _at_least_batch_per_gpu,
    "any_of": _any_of,
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
    return NO_EFFECT[str(rule["rule"])](rule, Place(built, key))
