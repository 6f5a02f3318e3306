"""Fills the knobs of a run from its native values, and marks what was defaulted or assumed."""

from __future__ import annotations

from collections.abc import Container, Mapping

from msgspec.structs import replace

from advisor.language import mark, say
from advisor.machine.inventory import Machine
from advisor.run.bound import Tables
from advisor.run.conversion import Converted, conversions, to_knob
from advisor.run.hints import Hints
from advisor.run.natives import SAMPLES, EnvironmentPrefix, Native, Natives, RunScope, default_of, differing, gpus_of
from advisor.run.run import Knob, ModelShape, Topology
from advisor.run.shape import bits_in_name

_ENGINE_SIZE = "rollout.tensor_parallel"
TAKEN_AT_DEFAULT = frozenset({"rollout.memory_share", _ENGINE_SIZE})
"""Knobs that some value must be taken for: the framework's own default before the engine's."""
_ANY_SWITCH = frozenset({"algorithm.kl", "actor.gradient_checkpointing"})
"""Knobs with several switches of which one is enough."""
_LENGTHS = ("_tokens", "_model_len")
"""Ends of knobs that limit lengths; 0 and -1 stand for no limit in every framework."""
_TRAINED = ("actor.full_finetuning", "actor.lora_rank")


def fill_knobs(natives: Natives, topology: Topology, taken: frozenset[str], tables: Tables) -> dict[str, Knob]:
    """The knobs that something sets. `taken`: those for which the framework's default is assumed where nothing does.

    A knob is made once for the values that it is read from: a what-if moves few of them.
    """
    scope, chosen = RunScope(natives, topology), (natives.rolls_out, natives.algorithm, natives.program)
    outside = (*natives.launcher.items(), *natives.libraries.items())
    key = ("knobs", natives.era, taken, topology, chosen, outside)
    values, made = tables.once(
        key, lambda: (natives.values, {name: _knob(name, scope, taken) for name in natives.knobs()})
    )
    moved = differing(values, natives.values)
    if moved:
        read = tables.once(("keys of knobs", natives.era), lambda: _read_for_knobs(natives))
        made = {name: one if moved.isdisjoint(read[name]) else _knob(name, scope, taken) for name, one in made.items()}
    return {name: one for name, one in made.items() if one is not None}


def _read_for_knobs(natives: Natives) -> dict[str, tuple[str, ...]]:
    """Knob → every key of the table on which it may depend: those that carry it, and those that their rules name."""
    read: dict[str, tuple[str, ...]] = {}
    for name in natives.knobs():
        keys = natives.keys_of(name)
        rules = [conversions(fact)[name] for key in keys if (fact := natives.values[key].fact) is not None]
        named = [one for rule in rules if rule is not None for one in rule.names()]
        keys = (*keys, *named, *(natives.keys_of(SAMPLES) if "samples" in named else ()))
        facts = [one.fact for key in keys if (one := natives.values.get(key)) is not None]
        choosing = [fact.only_with for fact in facts if fact is not None and fact.only_with is not None]
        read[name] = tuple(dict.fromkeys((*keys, *(one for rule in choosing for one in rule.names()))))
    return read


def _knob(name: str, scope: RunScope, taken: Container[str]) -> Knob | None:
    """A knob by the key that carries it; None where nothing sets it."""
    natives = scope.natives
    carrier = _switched_on(natives, name) or natives.carrier(name)
    if carrier is None or carrier.fact is None:
        return None
    if carrier.value is None:
        if carrier.given:
            unresolved = say("the value could not be resolved")
            return Knob(name, None, carrier.source, carrier.key, unresolved, unread=carrier.text is None)
        usual = default_of(carrier.fact, natives.era) if name in taken else None
        if usual is None:
            return None
        became = to_knob(usual, conversions(carrier.fact)[name], scope)
        return Knob(name, became.value, "assumed", carrier.key, say("the framework's default; no launch shows it"))
    rule = carrier.fact.to_knob if name == carrier.fact.knob else carrier.fact.also[name]
    became = to_knob(carrier.value, rule, scope)
    if name.endswith(_LENGTHS) and isinstance(became.value, (int, float)) and became.value <= 0:
        became = Converted(None, say("no limit"))
    return Knob(
        name,
        became.value,
        carrier.source,
        carrier.key.removeprefix(EnvironmentPrefix),
        became.how,
        times_samples=became.times_samples,
    )


def _switched_on(natives: Natives, knob: str) -> Native | None:
    """A knob that any of several switches turns on (a KL term in the loss or in the reward): the one that does."""
    if knob not in _ANY_SWITCH:
        return None
    return next(
        (n for n in natives.carriers(knob) if n.value is True and n.fact is not None and n.fact.to_knob is None), None
    )


def engine_size(knobs: dict[str, Knob], topology: Topology, machine: Machine) -> tuple[dict[str, Knob], Topology, str]:
    """Knobs and topology by the GPUs of one rollout engine, and that the launch gives it more than there are, in words:
    a default that the machine cannot have is none of the run's.
    """
    size, cards = knobs.get(_ENGINE_SIZE), gpus_of(machine) * (machine.nodes or 1)
    if size is None or not isinstance(size.value, int) or topology.engine_elsewhere:
        return knobs, topology, ""
    if size.source == "assumed":
        if 0 < cards < size.value:
            return {name: knob for name, knob in knobs.items() if name != _ENGINE_SIZE}, topology, ""
        return knobs, replace(topology, tensor_parallel=size.value), ""
    have = topology.rollout_gpus if topology.known else cards
    if size.source == "default" or not 0 < have < size.value:
        return knobs, topology, ""
    told = mark("{key} {size} spreads one engine over {size} GPUs, and it has {count}: it cannot start so.")
    return knobs, topology, say(told, key=size.key, size=size.value, count=have)


def by_hint(hints: Hints, knobs: Mapping[str, Knob]) -> dict[str, Knob]:
    """What names alone say, where nothing else does."""
    known = any((one := knobs.get(key)) is not None and one.source not in ("default", "assumed") for key in _TRAINED)
    return {} if known else hints.knobs()


def quantised(name: str | None, model: ModelShape | None, knobs: Mapping[str, Knob]) -> dict[str, Knob]:
    """A base that is quantised by its checkpoint: it stays so under adapters, where it is not trained."""
    named, key = bits_in_name(name or ""), "actor.quantized_bits"
    bits = named or (model.stored_bits if model is not None else 0)
    told = say("by the model's name") if named else say("by the model's config.json")
    rank, full = (None if (one := knobs.get(f"actor.{end}")) is None else one.value
                  for end in ("lora_rank", "full_finetuning"))  # fmt: skip
    adapters = full is False or (full is None and bool(rank))
    known = (found := knobs.get(key)) is not None and found.value is not None
    return {key: Knob(key, bits, "derived", note=told)} if bits and adapters and not known else {}
