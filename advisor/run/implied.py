"""Infers what no launch says: a backend by a traceback's frames; what a run file implies of command and topology."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.knowledge.schema import Framework
from advisor.rules.tree import Call, Compare, Name, Not, joined
from advisor.run.natives import in_era, native
from advisor.run.run import Knob, Topology


def shown_by_frames(framework: Framework | None, frames: Iterable[str]) -> dict[str, str]:
    """The settings that frames of the log ("path/file.py:function") prove, as the log would print them."""
    seen = tuple(frames)
    return {
        key: str(value)
        for rule in (framework.shown_by_frames if framework is not None else ())
        if any(re.search(rule.frame, frame) for frame in seen)
        for key, value in rule.sets.items()
    }


class Implied(Struct, frozen=True):
    """A command ("megatron *"), and settings that choose a backend."""

    program: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


def implied_by(framework: Framework, era: str, keys: Iterable[str], knobs: Iterable[str]) -> Implied:
    """The command or backend that alone reads one of these keys, or alone carries one of these knobs in this era."""
    facts = [fact for key in keys if (fact := framework.settings.get(key)) is not None]
    for knob in knobs:
        carriers = [f for f in framework.settings.values() if knob in (f.knob, *f.also) and in_era(f, era)]
        if carriers and all(fact.only_with for fact in carriers):
            facts.append(carriers[0])
    program = ""
    settings: dict[str, str] = {}
    for part in (part for fact in facts if fact.only_with is not None for part in joined("and", fact.only_with.tree)):
        if isinstance(part, Call) and part.function == "like" and part.arguments[0] == Name("program"):
            program = program or str(part.arguments[1]).strip('"')
        elif isinstance(part, Name):
            settings.setdefault(part.name, "True")
        elif isinstance(part, Not) and isinstance(part.part, Name):
            settings.setdefault(part.part.name, "False")
        elif isinstance(part, Compare) and part.sign == "==" and isinstance(part.left, Name):
            settings.setdefault(part.left.name, str(part.right).strip('"'))
    return Implied(program, settings)


def backend_by_keys(framework: Framework, era: str, stated: Iterable[str]) -> dict[str, str]:
    """The switches that alone let a launch's keys be read, where its base config was not seen: who sets
    `megatron_cfg.x` trains with Megatron. What the launch states itself, or keys of two backends dispute, is left out.
    """
    keys = {native(key) for key in stated}
    found: dict[str, set[str]] = {}
    for key in sorted(keys):
        for name, text in implied_by(framework, era, [key], ()).settings.items():
            found.setdefault(name, set()).add(text)
    known = framework.settings.keys() - keys
    return {name: texts.pop() for name, texts in found.items() if name in known and len(texts) == 1}


def stated_topology(topology: Topology, knobs: Mapping[str, Knob]) -> Topology:
    """The topology with what the knobs say of it: nodes, GPUs, engines and sequence parallelism."""
    sizes = {name: count for name, knob in knobs.items() if (count := _count(knob)) is not None}
    per_node = sizes.get("topology.gpus_per_node", topology.gpus_per_node)
    nodes = sizes.get("topology.nodes", topology.nodes)
    trainers = sizes.get("topology.actor_nodes", nodes) * sizes.get(
        "topology.actor_gpus_per_node", sizes.get("topology.processes", per_node)
    )
    counted = any(name in sizes for name in _COUNTS)
    actor = trainers if counted else topology.actor_gpus
    tensor = sizes.get("rollout.tensor_parallel", topology.tensor_parallel)
    engine, beside = knobs.get("rollout.engine"), knobs.get("rollout.colocated")
    colocated = topology.colocated
    if engine is not None:
        colocated = str(engine.value).lower() in ("vllm", "sglang", "true")
    if beside is not None and isinstance(beside.value, bool):
        colocated = beside.value
    engines = sizes.get("rollout.engines", 0) * tensor
    rollout = actor if colocated else engines or topology.rollout_gpus
    return replace(
        topology,
        nodes=nodes,
        gpus_per_node=per_node,
        actor_gpus=actor,
        rollout_gpus=rollout,
        tensor_parallel=tensor,
        sequence_parallel=sizes.get("actor.sequence_parallel", topology.sequence_parallel),
        colocated=colocated,
        known=topology.known or counted,
    )


_COUNTS = (
    "topology.nodes",
    "topology.gpus_per_node",
    "topology.processes",
    "topology.actor_nodes",
    "topology.actor_gpus_per_node",
)


def _count(knob: Knob) -> int | None:
    return knob.value if isinstance(knob.value, int) and not isinstance(knob.value, bool) else None
