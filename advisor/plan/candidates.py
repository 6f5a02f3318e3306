"""Lists the values a setting may be given, best first, by the `value` of a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from advisor.diagnosis.fact import Facts
from advisor.knowledge.schema import NewValue
from advisor.plan.situation import TOTAL
from advisor.rules.expression import Expression
from advisor.rules.tree import Constant, Sum, as_number
from advisor.rules.tree import walk as walk_tree
from advisor.run.bound import default_here
from advisor.run.build import BuiltRun
from advisor.run.constraints import scope_of
from advisor.run.natives import Native, RunScope
from advisor.run.run import KnobValue

MOST = 24
"""Candidates looked at for one setting."""
LENGTHS = ("data.prompt_tokens", "data.response_tokens", TOTAL)
ROUNDING = 4
"""Digits of a share."""


def candidates(rule: NewValue, native: Native, built: BuiltRun, new: KnobValue | None = None) -> list[KnobValue]:
    """At most MOST values for `native`, the mildest first; [] where there is none to offer.

    `new`: the value that the remedy gives its own setting, for those that move along with it.
    """
    return list(islice(_offered(rule, native, built, new), MOST))


def _offered(rule: NewValue, native: Native, built: BuiltRun, new: KnobValue | None) -> Iterator[KnobValue]:
    scope = scope_of(built).with_own(value=native.value, new=new, **_unseen(built))
    if rule.to is not None:
        if native.value != rule.to and not _taken(native, rule.to, built):
            yield rule.to
    elif rule.start is not None and native.value in (None, -1):  # the framework's word for "all at once"
        default = None if native.fact is None else as_number(default_here(native.fact, built.natives))
        begins = _in_unit(as_number(rule.start), native, built)
        lower = default is not None and begins is not None and 0 < default <= begins and native.value is None
        if lower and rule.next is not None:
            yield from _row(rule, rule.next, default, scope.with_own(value=default), native, built)
        else:
            yield rule.start if begins is None else _like(rule.start, begins)
    elif rule.next is not None:
        yield from _row(rule, rule.next, native.value, scope, native, built)
    present = as_number(native.value)
    for one in rule.tries:
        value = as_number(one.of(scope))
        if value is not None and (present is None or value < present):
            yield value


def _in_unit(number: float | None, native: Native, built: BuiltRun) -> float | None:
    """A number of the knob in the unit of the key, where that counts in another (tokens of a picture, not pixels)."""
    rule = native.fact.from_knob if native.fact is not None else None
    if number is None or rule is None or not any(isinstance(node, Sum) for node in walk_tree(rule.tree)):
        return number
    return as_number(rule.of(RunScope(built.natives).with_own(value=int(number))))


def _unseen(built: BuiltRun) -> dict[str, None]:
    """Lengths that only have their defaults, where the launch was not seen whole: as good as not known."""
    knobs = {} if built.run.seen_whole else built.run.knobs
    found = {name for name in LENGTHS if name in knobs and knobs[name].source in ("default", "assumed")}
    derived = TOTAL in knobs and knobs[TOTAL].source == "derived" and found
    return dict.fromkeys((*found, TOTAL) if derived else found)


def _row(
    rule: NewValue, following: Expression, old: KnobValue | None, scope: RunScope, native: Native, built: BuiltRun
) -> Iterator[KnobValue]:
    """Down to the floor, which comes last, or up to the ceiling."""
    value = as_number(old)
    ends = (None if end is None else as_number(end.of(scope)) for end in (rule.floor, rule.ceiling))
    floor, ceiling = (_in_unit(end, native, built) for end in ends)
    if value is None or old is None:
        return
    for _ in range(MOST):
        made = as_number(following.of(scope.with_own(value=value)))
        made = None if made is None else round(made, ROUNDING)
        if made is None or (made <= (floor or 0) if floor is not None else made > (ceiling or made) or made <= value):
            break
        if floor is not None and made >= value:
            break
        value = made
        yield _like(old, value)
    if floor is not None and floor < value:
        yield _like(old, floor)


def _taken(native: Native, to: object, built: BuiltRun) -> bool:
    """Whether the value stands for a file that was not found: what is counted already is nothing to propose."""
    knob = built.run.knobs.get((native.fact.knob if native.fact is not None else None) or "")
    return built.run.unread is not None and knob is not None and not knob.key and knob.value == to


def least(rule: NewValue) -> int | None:
    """The floor that a row of values has whatever the run is; None where it has none."""
    fixed = rule.floor.tree if rule.floor is not None else None
    return fixed.value if isinstance(fixed, Constant) and type(fixed.value) is int else None


def printed_now(rule: NewValue, native: Native, facts: Facts) -> Native:
    """The native at the value that the log printed (the fact `now`), where no file sets it."""
    fact = facts.get(rule.now)
    if fact is None or native.setting is not None or isinstance(fact.value, bool):
        return native
    return replace(native, text=str(fact.value), value=fact.value, source="log")


def at_most(rule: NewValue, values: list[KnobValue], facts: Facts, present: KnobValue | None = None) -> list[KnobValue]:
    """Without the values above what the fact `at_most` shows to be possible, or at or below the fact `above`.

    `present`: the value in force where nothing is counted; those are left out, too, that fall by less than what the
    log shows to be missing, if any falls so far.
    """
    possible, missing, now = _number_of(facts, rule.at_most), _number_of(facts, rule.falls_by), as_number(present)
    if (least := _number_of(facts, rule.above)) is not None:
        values = [v for v in values if isinstance(v, (bool, str)) or v > least]
    if possible is not None:
        values = [v for v in values if isinstance(v, (bool, str)) or v <= possible]
    if missing is not None and now is not None:
        enough = [v for v in values if isinstance(v, (bool, str)) or v <= now - missing]
        return enough or values[-1:]
    return values


def _number_of(facts: Facts, name: str) -> float | None:
    fact = facts.get(name)
    return None if fact is None else as_number(fact.value)


def within_context(knob: str | None, values: list[KnobValue], built: BuiltRun) -> list[KnobValue]:
    """Without lengths above the longest row that the model takes: there they cut nothing."""
    longest = built.run.model.context if built.run.model is not None else 0
    if not longest or knob not in (*LENGTHS, "rollout.max_model_len"):
        return values
    return [v for v in values if isinstance(v, (bool, str)) or v <= longest]


def _like(old: KnobValue, value: float) -> KnobValue:
    return int(value) if isinstance(old, int) else round(value, ROUNDING)
