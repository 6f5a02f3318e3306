"""Finds the keys that must move together with another one, by the `with_it` of its dialect."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from advisor.knowledge.schema import Partners
from advisor.rules.expression import Expression
from advisor.rules.tree import RuleValue, as_number
from advisor.run.bound import default_here
from advisor.run.natives import ChosenScope, Native, Natives, RunScope
from advisor.run.run import Knob
from advisor.run.values import parse_value

NO_KNOBS: Mapping[str, Knob] = {}


class Joined(Struct, frozen=True):
    """The overrides with the partners' own, in one of the forms that the dialect allows."""

    overrides: Mapping[str, str | None]
    kept: bool = False
    """A product is kept (batch times accumulation): what the key alone would change in the results stays."""
    caveats: tuple[str, ...] = ()


def forms(
    native: Native, overrides: Mapping[str, str | None], natives: Natives, knobs: Mapping[str, Knob] = NO_KNOBS
) -> list[Joined]:
    """The ways to make this change, best first; [] where the dialect demands a partner that cannot follow."""
    found = [Joined(overrides)]
    if native.fact is None or not native.fact.with_it:
        return found
    text = overrides.get(native.key)
    new = None if text is None else parse_value(text, native.fact.type)
    scope = ChosenScope(natives, knobs=knobs, own={"old": native.value, "new": new})
    for rule in native.fact.with_it:
        if not rule.eras or natives.era in rule.eras:
            found = [form for joined in found for form in _with(rule, joined, scope)]
    return found


def _with(rule: Partners, joined: Joined, scope: RunScope) -> list[Joined]:
    """The change with these partners, and without them where they need not follow."""
    old, new = scope.value("old"), scope.value("new")
    counts = as_number(old) and as_number(new) and old != new
    if (rule.keeps_product and not counts) or (rule.when is not None and rule.when.holds(scope) is not True):
        return [joined]
    alone = [] if rule.required else [joined]
    moved = {key: _moved(value, scope) for key, value in rule.sets.items()}
    for key, value in rule.given.items():
        if not rule.keeps_product:
            if (text := _moved(value, scope)) is not None:
                moved[key] = text
        elif scope.given(key) is not None:
            moved[key] = _moved(value, scope)
    if None in moved.values():
        return alone
    caveats = (*joined.caveats, *([rule.says] if rule.says else []))
    moved = {key: text for key, text in moved.items() if not _stands(key, text, scope.natives)}
    with_them = Joined({**joined.overrides, **moved}, joined.kept or rule.keeps_product, caveats)
    return [with_them, *(alone if rule.keeps_product else [])]


def _stands(key: str, text: str | None, natives: Natives) -> bool:
    """Whether the partner has that value already, by the launch or by the framework's default."""
    known = natives.values.get(key)
    if known is None or known.fact is None or text is None:
        return False
    now = known.text
    if now is None and not known.given and (default := default_here(known.fact, natives)) is not None:
        now = str(default)
    return now is not None and parse_value(now, known.fact.type) == parse_value(text, known.fact.type)


def _moved(rule: Expression, scope: RunScope) -> str | None:
    """A partner's new value as text; None where it is neither a word nor a whole number from 1 on."""
    value: RuleValue | None = rule.of(scope)
    if isinstance(value, bool):
        return str(value).lower()
    number = as_number(value)
    if number is None:
        return value if isinstance(value, str) else None
    if number < 1 or number != int(number):
        return None
    return str(number) if isinstance(number, int) else str(int(number))
