"""Checks what a framework demands of its settings, and says which settings would do nothing here and why."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Constraint
from advisor.knowledge.vocabulary import COUNTS
from advisor.language import say
from advisor.rules.expression import Expression
from advisor.rules.tree import Call, Compare, Constant, Name, Not, Sum, as_number, joined, walk
from advisor.run.build import BuiltRun
from advisor.run.natives import SAMPLES, RunScope, differing

Stands = tuple[str, int]
"""Where a constraint is written: its key ("" for the dialect's own) or its knob, and which one of them."""


def violations(built: BuiltRun, keys: Sequence[str], like: BuiltRun | None = None) -> list[str]:
    """Sentences for every constraint that the values of `keys`, and the dialect as a whole, break. `like`: another form
    of the run, of which that is known."""
    every = _all_broken(built, like)
    return list(dict.fromkeys(said for key in (*keys, "", *_of_knobs()) for (at, _), said, _ in every if at == key))


def newly_broken(before: BuiltRun, after: BuiltRun, changed: Container[str] = ()) -> list[str]:
    """Sentences for every constraint that holds before and not after, those of `changed` keys first. A rule about two
    keys is written down at one of them, and a count of the topology moves with keys of its own."""
    return _newly(before, after, changed, unseen=False)


def newly_stopped(before: BuiltRun, after: BuiltRun, changed: Container[str] = ()) -> list[str]:
    """The same of constraints of keys that the launch gives itself, and that divide by one that it gives; and of heads
    that libraries split evenly. (Layers and experts are split unevenly by some.)"""
    values = after.natives.values
    given = {key for key, one in values.items() if one.given}
    rules = {at: dict(_rules_of(after, at)) for (at, _), _, _ in _all_broken(after) if at in given or at in _of_knobs()}
    counts = {
        (at, n)
        for at, each in rules.items()
        for n, rule in each.items()
        if (_divides_by_one_of(rule, given, values) if at in given else _remainder(rule.holds) is None)
    }
    return _newly(before, after, changed, unseen=False, of=counts)


def _divides_by_one_of(rule: Constraint, given: Container[str], natives: Container[str]) -> bool:
    """Whether a constraint's divisor, where it has one, names a given key: a default may be one of other trainings."""
    divided = _remainder(rule.holds)
    names = [node.name for node in walk(divided.right) if isinstance(node, Name)] if divided is not None else []
    keys = [name for name in names if name in natives]
    return not keys or any(name in given for name in keys)


def newly_in_doubt(before: BuiltRun, after: BuiltRun, changed: Container[str] = ()) -> list[str]:
    """The same of constraints that break only if settings which nobody saw are at their defaults."""
    return _newly(before, after, changed, unseen=True)


def _newly(
    before: BuiltRun, after: BuiltRun, changed: Container[str], unseen: bool, of: Container[Stands] | None = None
) -> list[str]:
    already = {stands for stands, _, _ in _all_broken(before)}
    every = _all_broken(after, before)
    found = [
        (stands, said)
        for stands, said, by in every
        if stands not in already and by is unseen and (of is None or stands in of)
    ]
    found.sort(key=lambda one: one[0][0] not in changed)
    return list(dict.fromkeys(said for _, said in found))


def _all_broken(built: BuiltRun, like: BuiltRun | None = None) -> list[tuple[Stands, str, bool]]:
    """Every constraint of this era that the values in force break, and whether one of them is a default not seen.
    `like`: another form of the run; a constraint of which no name moved stands as it does there."""
    if built.broken is None:
        moved = None if like is None else _moved(like, built)
        known = {} if like is None else {one[0]: one for one in _all_broken(like)}
        built.broken = []
        keyed = [key for key, one in built.natives.values.items() if one.fact is not None and one.fact.must]
        for key in (*keyed, "", *(knob for knob in _of_knobs() if knob in built.run.knobs)):
            for n, rule in _rules_of(built, key):
                stands = (key, n)
                if moved is not None and moved.isdisjoint(_names(key, rule, built)):
                    built.broken += [known[stands]] if stands in known else []
                elif said := broken(key, rule, built):
                    built.broken.append((stands, said, _on_unseen(rule, built)))
    return built.broken


def _names(key: str, rule: Constraint, built: BuiltRun) -> list[str]:
    """All that a constraint of a key rests on: what it names, the key, its knob, and what chooses who reads it."""
    known = built.natives.values.get(key)
    fact = known.fact if known is not None else None
    chosen_by = fact.only_with.names() if fact is not None and fact.only_with is not None else ()
    return [*rule.holds.names(), key, (fact.knob or "") if fact is not None else "", *chosen_by]


def _moved(before: BuiltRun, after: BuiltRun) -> set[str] | None:
    """Names with another value in another form of the run; None where more than settings, knobs and counts differ."""
    if _around(before) != _around(after):
        return None
    old, new = before.natives, after.natives
    moved = differing(old.values, new.values) | differing(before.run.knobs, after.run.knobs)
    if old.carrier(SAMPLES) is not new.carrier(SAMPLES):
        moved.add("samples")
    return moved if before.run.topology == after.run.topology else moved | COUNTS.keys()


def _around(built: BuiltRun) -> tuple[object, ...]:
    natives = built.natives
    return natives.program, natives.rolls_out, natives.launcher, natives.libraries, built.run.model, built.run.algorithm


def _on_unseen(rule: Constraint, built: BuiltRun) -> bool:
    """Whether it speaks of what nobody saw: a count of cards, or in a launch not seen whole a setting's default. A
    total that comes to nothing on each of the cards which the machine has is none such."""
    topology = built.run.topology
    if not topology.known and not COUNTS.keys().isdisjoint(rule.holds.names()):
        return not (topology.assumed and _is_floor(rule.holds))
    if built.run.seen_whole:
        return False
    natives, knobs = built.natives.values, built.run.knobs
    return any(
        not natives[name].given if name in natives else name in knobs and knobs[name].source in ("default", "assumed")
        for name in rule.holds.names()
    )


def _is_floor(rule: Expression) -> bool:
    tree = rule.tree
    return isinstance(tree, Compare) and tree.left == Name("value") and tree.sign == ">="


def _rules_of(built: BuiltRun, key: str) -> Iterator[tuple[int, Constraint]]:
    """The constraints of a key in this era, or of the dialect (""); none for a key that the backend does not read."""
    if key in _of_knobs():
        rules = _of_knobs()[key]
    elif not key:
        rules = built.natives.framework.must if built.natives.framework is not None else ()
    else:
        known = built.natives.values.get(key)
        fact = known.fact if known is not None else None
        rules = () if fact is None or not fact.must or not built.natives.reads(fact) else fact.must
    yield from ((n, rule) for n, rule in enumerate(rules) if not rule.eras or built.run.era in rule.eras)


@lru_cache(maxsize=1)
def _of_knobs() -> Mapping[str, tuple[Constraint, ...]]:
    """What libraries below all frameworks demand of a knob, whatever key carries it."""
    return {knob.id: knob.must for knob in load_knowledge().knobs if knob.must}


def divisors_of(built: BuiltRun, key: str) -> list[str]:
    """Other native keys that must divide the value of `key`, by constraints of the form `… % (…) == 0`."""
    divided = [found for _, rule in _rules_of(built, key) if (found := _remainder(rule.holds)) is not None]
    named = [node.name for one in divided for node in walk(one.right) if isinstance(node, Name)]
    return [name for name in named if name != key and name in built.natives.values]


def _remainder(rule: Expression) -> Sum | None:
    """`a % b` of `a % b == 0`; None where it is no such constraint."""
    tree = rule.tree
    divides = isinstance(tree, Compare) and tree.sign == "==" and tree.right == Constant(0)
    return tree.left if divides and isinstance(tree.left, Sum) and tree.left.sign == "%" else None  # type: ignore[union-attr]


def scope_of(built: BuiltRun, key: str = "") -> RunScope:
    """What expressions about this run, and about one of its keys, know."""
    run, native = built.run, built.natives.values.get(key)
    scope = RunScope(built.natives, run.topology, run.knobs, run.model, algorithm=run.algorithm)
    if native is None:
        return scope
    knob = None if native.fact is None or native.fact.knob is None else run.value(native.fact.knob)
    return scope.with_own(value=native.value, knob=knob)


def broken(key: str, rule: Constraint, built: BuiltRun) -> str:
    """The sentence of a constraint that does not hold; "" where it does, or nobody knows."""
    if rule.holds.holds(scope_of(built, key)) is not False:
        return ""
    said = rule.says or _in_words(rule.holds, key, scope_of(built, key))
    model = built.run.model
    if model is None or not any(isinstance(n, Call) and n.function == "heads_divide" for n in walk(rule.holds.tree)):
        return said
    return say(
        "{says} ({model} has {heads} attention heads and {kv_heads} key-value heads)",
        says=said,
        model=model.name,
        heads=model.heads,
        kv_heads=model.kv_heads,
    )


def _in_words(rule: Expression, key: str, scope: RunScope) -> str:
    """What a constraint without a sentence of its own demands."""
    tree = joined("or", rule.tree)[0]
    if (divided := _remainder(rule)) is not None:
        return say("{product} must be a multiple of {divisor}", product=divided.left, divisor=divided.right)
    if isinstance(tree, Compare) and tree.left == Name("value") and tree.sign in ("<=", ">="):
        bound = as_number(tree.right.of(scope)) or 0
        if isinstance(tree.right, Name):
            told = {"key": key, "other": tree.right.name}
            if tree.sign == "<=":
                return say("{key} must not exceed {other} ({ceiling:g})", **told, ceiling=bound)
            return say("{key} must be at least {other} ({floor:g})", **told, floor=bound)
        if tree.sign == ">=":
            return say("{key} must be at least {least:g}", key=key, least=bound)
    return say("{rule} must hold", rule=str(rule).replace("value", key or "value"))


def no_effect(built: BuiltRun, key: str) -> str:
    """Why changing this key would do nothing here, in one clause; "" where it does something."""
    known = built.natives.values.get(key)
    for idle in known.fact.no_effect_when if known is not None and known.fact is not None else ():
        if idle.eras and built.run.era not in idle.eras:
            continue
        scope = scope_of(built, key)
        if idle.when is None or idle.when.holds(scope) is True:
            return idle.because or _why_idle(idle.when, key, scope, built)
    return ""


def _why_idle(when: Expression | None, key: str, scope: RunScope, built: BuiltRun) -> str:
    """A reason without a sentence of its own, by the form of its expression."""
    if when is None:
        return say("this version ignores it")
    if "actor.sequences_per_gpu" in when.names():
        known = built.natives.values[key].fact
        knob = built.run.knobs.get(known.knob or "") if known is not None else None
        return say(
            "{key} allows {micro:g} sequences per GPU pass ({how}), and one GPU holds only {held:g} of a step: it is "
            "not what binds",
            key=key,
            micro=scope.value("knob"),
            how=knob.note if knob is not None and knob.note else say("as given"),
            held=scope.value("actor.sequences_per_gpu"),
        )
    tree = when.tree
    other = tree.part if isinstance(tree, Not) else tree
    name = when.names()[0] if when.names() else str(when)
    if isinstance(other, Call):
        wanted = other.arguments[0]
        value = wanted.right if isinstance(wanted, Compare) else Constant(True)
        return say("has no effect unless {key} is {value}", key=name, value=value.of(scope))
    return say("ignored while {key} is {value}", key=name, value=scope.value(name))
