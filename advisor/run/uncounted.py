"""Finds settings of a launch that move GPU memory and that nothing of what is computed depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec.structs import asdict

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework, SettingFact
from advisor.rules.expression import Expression
from advisor.run.natives import Natives, default_of


def uncounted(framework: Framework | None, natives: Natives) -> tuple[str, ...]:
    """Keys that the launch sets to something else than their default and that have no effect on the ledger."""
    if framework is None:
        return ()
    idle = without_effect(framework)
    found = set()
    for key in natives.values.keys() & idle:
        native = natives.values[key]
        if native.fact is None or not native.given or not natives.reads(native.fact):
            continue
        if native.value not in (None, False, 0, default_of(native.fact, natives.era)):
            found.add(key)
    return tuple(key for key in natives.values if key in found) if found else ()


@lru_cache(maxsize=32)
def _counted_knobs() -> frozenset[str]:
    return frozenset(knob.id for knob in load_knowledge().knobs if knob.counted)


_idle: dict[tuple[str, str], frozenset[str]] = {}
"""Name and source of a dialect → its settings without effect: expressions cannot be hashed."""


def without_effect(framework: Framework) -> frozenset[str]:
    """Settings that say that they move GPU memory, carry no knob that is counted, and that no expression speaks of."""
    known = (framework.framework, framework.source)
    if known not in _idle:
        spoken_of = {name.removeprefix("$") for name in _names(framework)}
        settings = {**framework.settings, **framework.environment}
        _idle[known] = frozenset(
            key for key, fact in settings.items() if _moves_gpu(fact) and not _has_knob(fact) and key not in spoken_of
        )
    return _idle[known]


def _moves_gpu(fact: SettingFact) -> bool:
    return any(what.startswith("gpu") for what in fact.moves.values())


def _has_knob(fact: SettingFact) -> bool:
    carried = {*(() if fact.knob is None else (fact.knob,)), *fact.also}
    return not carried.isdisjoint(_counted_knobs())


def _names(framework: Framework) -> Iterator[str]:
    """Every setting that topology, mechanics, algorithm, or the value of another one depends on."""
    facts: list[Expression | None] = [one.when for one in framework.mechanics_when]
    if framework.topology is not None:
        stated = asdict(framework.topology)
        facts += [*stated.pop("let").values(), *(one for one in stated.values() if isinstance(one, Expression))]
        yield from framework.topology.counted_by
    for fact in framework.settings.values():
        facts += [fact.to_knob, fact.only_with, *fact.also.values(), *(one.when for one in fact.default_when)]
        yield from _referred(fact.default)
    algorithm = framework.algorithm
    facts += [*algorithm.by_settings.values(), *algorithm.narrowed.values()]
    yield from (algorithm.key,) if isinstance(algorithm.key, str) else algorithm.key
    for expression in facts:
        if isinstance(expression, Expression):
            yield from expression.names()


def _referred(default: object) -> Iterator[str]:
    """The keys of defaults like "${gradient_accumulation_steps}"."""
    for text in default.values() if isinstance(default, Mapping) else (default,):
        if isinstance(text, str) and text.startswith("${"):
            yield text[2:-1]
