"""The values a setting may be given, best first. Named rules, referred to by `value` in remedies.yaml."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil

from msgspec.structs import replace

from advisor.diagnosis.fact import Facts
from advisor.knowledge.schema import Rule
from advisor.run.bound import Native
from advisor.run.build import BuiltRun
from advisor.run.run import KnobValue

MOST = 24
"""Candidates looked at for one setting."""


def _set(rule: Rule, native: Native, built: BuiltRun) -> Iterator[KnobValue]:
    """The one value `to`."""
    if native.value != rule["to"] and not _taken(native, rule["to"], built):
        yield rule["to"]


def _taken(native: Native, to: object, built: BuiltRun) -> bool:
    """Whether the value stands for a file that was not found: what is counted already is nothing to propose."""
    knob = built.run.knobs.get((native.fact.knob if native.fact is not None else None) or "")
    return built.run.unread is not None and knob is not None and not knob.key and knob.value == to


def _lower(rule: Rule, native: Native, built: BuiltRun) -> Iterator[KnobValue]:
    """Every lower value down to the floor, largest first, the floor last. `start` where there is no limit yet."""
    old = native.value
    if "start" in rule and (old is None or old == -1):  # not set, or the framework's word for "all at once"
        yield rule["start"]
        return
    if isinstance(old, bool) or not isinstance(old, (int, float)):
        return
    floor = _bound(rule.get("floor", 1), built)
    value = float(old)
    while (following := _below(value, rule["steps"])) < value and following > floor:
        value = following
        yield _like(old, value)
    if floor < value:
        yield _like(old, floor)


def _raise(rule: Rule, native: Native, built: BuiltRun) -> Iterator[KnobValue]:
    """Every higher value up to the ceiling, smallest first."""
    old = native.value if isinstance(native.value, (int, float)) and not isinstance(native.value, bool) else None
    if old is None:
        if "start" in rule:
            yield rule["start"]
        return
    ceiling = _bound(rule.get("ceiling", float("inf")), built)
    value = float(old)
    for _ in range(MOST):
        value = value * 2 if rule["steps"] == "double" else round(value + float(rule["steps"]), 4)
        if value > ceiling + 1e-9 or value <= old:
            return
        yield _like(old, value)


def _sequence_tokens(rule: Rule, native: Native, built: BuiltRun) -> Iterator[KnobValue]:
    """Room for `times` longest prompts and responses, halved down to one; never more than the budget now in force.

    A budget is per GPU, and GPUs that share a sequence add theirs up: `shared_over` names whose size counts.
    """
    whole = sequence_tokens(built)
    if whole is None:
        yield from _half_budget(native, built)
        return
    own = built.run.number(str(rule["shared_over"])) if "shared_over" in rule else None
    tokens = ceil(whole / max(1, int(own or 1) if "shared_over" in rule else built.run.topology.sequence_parallel))
    present = native.value if isinstance(native.value, int) and not isinstance(native.value, bool) else None
    times = int(rule.get("times", 1))
    while times >= 1:
        if present is None or times * tokens < present:
            yield times * tokens
        times //= 2


def _half_budget(native: Native, built: BuiltRun) -> Iterator[KnobValue]:
    """Where not all lengths are known: half the present budget, as long as it holds those that are."""
    present = native.value
    if isinstance(present, bool) or not isinstance(present, int):
        return
    known = [built.run.number(name) or 0 for name in ("data.prompt_tokens", "data.response_tokens")]
    if present // 2 >= max(1.0, sum(known)):
        yield present // 2


def _no_higher(rule: Rule, native: Native, built: BuiltRun) -> Iterator[KnobValue]:
    """The value `to`, where the present one is above it: of two passes the wider one decides."""
    old, to = native.value, rule["to"]
    if isinstance(old, (int, float)) and not isinstance(old, bool) and old > to:
        yield to


CANDIDATES: dict[str, Callable[[Rule, Native, BuiltRun], Iterator[KnobValue]]] = {
    "set": _set,
    "lower": _lower,
    "raise": _raise,
    "sequence_tokens": _sequence_tokens,
    "no_higher": _no_higher,
}


def candidates(rule: Rule, native: Native, built: BuiltRun) -> list[KnobValue]:
    """At most MOST values for `native`, the mildest first; [] where the rule has nothing to offer."""
    found: list[KnobValue] = []
    for value in CANDIDATES[str(rule["rule"])](rule, native, built):
        found.append(value)
        if len(found) >= MOST:
            break
    return found


def printed_now(rule: Rule, native: Native, facts: Facts) -> Native:
    """The native at the value that the log printed (the rule's fact `now`), where no file sets it."""
    fact = facts.get(str(rule.get("now", "")))
    if fact is None or native.setting is not None or isinstance(fact.value, bool):
        return native
    return replace(native, text=str(fact.value), value=fact.value)


def at_most(rule: Rule, values: list[KnobValue], facts: Facts) -> list[KnobValue]:
    """Without the values above what the rule's fact `at_most` shows to be possible."""
    fact = facts.get(str(rule.get("at_most", "")))
    if fact is None or isinstance(fact.value, (bool, str)):
        return values
    return [v for v in values if isinstance(v, (bool, str)) or v <= fact.value]


def sequence_tokens(built: BuiltRun) -> int | None:
    """Tokens of one longest prompt and response; None where a length is not known."""
    total = built.run.number("data.total_tokens")
    return None if total is None else int(total)


def _bound(bound: object, built: BuiltRun) -> float:
    if isinstance(bound, dict):
        return float(sequence_tokens(built) or 1)
    return float(bound) if isinstance(bound, (int, float)) else 1.0


def _below(value: float, steps: object) -> float:
    """The next lower value: half, or the next multiple of the step below; under one whole step it is halved."""
    if steps == "halve":
        return value // 2 if value >= 2 else -1.0
    step = float(steps) if isinstance(steps, (int, float)) else 1.0
    if step >= 1 and value <= step:
        return value // 2 if value >= 2 else -1.0
    down = (
        (round(value / step) - 1) * step if abs(value / step - round(value / step)) < 1e-6 else (value // step) * step
    )
    return round(down, 4)


def _like(old: float, value: float) -> KnobValue:
    return int(value) if isinstance(old, int) else round(value, 4)
