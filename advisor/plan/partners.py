"""Keys that must move together with another one, by the dialect's `with_it`. Named rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from advisor.knowledge.schema import Rule
from advisor.run.bound import Native, Natives
from advisor.run.values import parse_value


class Joined(Struct, frozen=True):
    """The overrides with the partners' own, in one of the forms that the dialect allows."""

    overrides: Mapping[str, str | None]
    kept: bool = False
    """A product is kept (batch times accumulation): what the key alone would change in the results stays."""
    caveats: tuple[str, ...] = ()


class Step(Struct, frozen=True):
    """The move under scrutiny: a key, its old and its new value."""

    key: str
    old: object
    new: object


def forms(native: Native, overrides: Mapping[str, str | None], natives: Natives) -> list[Joined]:
    """The ways to make this change, best first; [] where the dialect demands a partner that cannot follow."""
    if native.fact is None or not native.fact.with_it:
        return [Joined(overrides)]
    text = overrides.get(native.key)
    new = None if text is None else parse_value(text, native.fact.type)
    found = [Joined(overrides)]
    for rule in native.fact.with_it:
        if not rule.get("eras") or natives.era in rule["eras"]:
            step = Step(native.key, native.value, new)
            found = [form for joined in found for form in WITH_IT[str(rule["rule"])](rule, step, joined, natives)]
    return found


def _keeps_product(rule: Rule, step: Step, joined: Joined, natives: Natives) -> list[Joined]:
    """The `keys`, and those of `given` that are set, move by the inverse factor; `required`: only so."""
    alone = [] if rule.get("required") else [joined]
    old, new = _number(step.old), _number(step.new)
    if not old or not new or old == new:
        return [joined]
    more: dict[str, str | None] = {}
    for key in [*rule.get("keys", []), *(k for k in rule.get("given", []) if natives.given(k))]:
        present = natives.number(str(key))
        value = None if present is None else present * old / new
        if value is None or value < 1 or value != int(value):
            return alone
        more[str(key)] = str(int(value))
    caveats = (str(rule["says"]),) if rule.get("says") else ()
    kept = Joined({**joined.overrides, **more}, True, (*joined.caveats, *caveats))
    return [kept, *alone]


def _same_difference(rule: Rule, step: Step, joined: Joined, natives: Natives) -> list[Joined]:
    """The `keys` that are set move by as much as this one: a packed row by what the responses lose."""
    old, new = _number(step.old), _number(step.new)
    if old is None or new is None:
        return [joined]
    present = {str(key): number for key in rule["keys"] if (number := natives.number(str(key))) is not None}
    moved = {key: str(int(number + new - old)) for key, number in present.items() if number + new - old >= 1}
    return [Joined({**joined.overrides, **moved}, joined.kept, joined.caveats)]


def _needs(rule: Rule, step: Step, joined: Joined, natives: Natives) -> list[Joined]:
    """While the new value is `when`, `key` must be one of `one_of`; it is set to `to` where it is not."""
    if step.new != rule["when"] or natives.value(str(rule["key"])) in rule["one_of"]:
        return [joined]
    return [Joined({**joined.overrides, str(rule["key"]): str(rule["to"])}, joined.kept, joined.caveats)]


WITH_IT: dict[str, Callable[[Rule, Step, Joined, Natives], list[Joined]]] = {
    "keeps_product": _keeps_product,
    "same_difference": _same_difference,
    "needs": _needs,
}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
