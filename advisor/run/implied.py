"""Infers what no launch says: the training method, a backend by a traceback's frames, what a run file implies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.knowledge.schema import AlgorithmFact, Framework
from advisor.regex import regex
from advisor.rules.tree import Call, Compare, Name, Not, joined
from advisor.run.natives import OF_ROLLOUTS, Natives, RunScope, in_era, native
from advisor.run.recipe import RL, UNKNOWN, method_named, method_spelled, recipe_of
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
    sizes = {name: count for name, knob in knobs.items() if type(count := knob.value) is int}  # and no truth value
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
    *("topology.nodes", "topology.gpus_per_node", "topology.processes"),
    *("topology.actor_nodes", "topology.actor_gpus_per_node"),
)


_ENGINE_FILE = regex(r"(?:^|[/.])(?:vllm|sglang|lmdeploy|tensorrt_llm)[/.]")
"""A file or module of an engine that generates answers: what trains on given ones has none in its traceback."""
_LOSS = regex(r"_loss(?:_fn|_func|_function)?$")
"""How a function ends that computes the loss of a method."""


def algorithm_of(
    framework: Framework | None,
    natives: Natives,
    frames: Sequence[str],
    knobs: Iterable[str],
    programs: Sequence[str],
    has_launch: bool,
    engine: bool = False,
    said: str = "",
    functions: Sequence[str] = (),
) -> str:
    """The method's word; "unknown" where nothing tells it. `frames`: files of the log's traceback, outermost first;
    `knobs`: those that are known from elsewhere, `programs`: what the launch runs, and what that runs.

    A program that trains on given answers has a name of its own; one that rolls out may serve several methods, and a
    key of the dialect says which. A log alone has no defaults. `engine`: the log shows a rollout engine at work,
    `said`: the method that a person names, `functions`: of the traceback, of which one that computes a loss names its
    method.
    """
    fact = framework.algorithm if framework is not None else AlgorithmFact()
    keyed = bool(fact.key) and fact.default != UNKNOWN
    by_name = next((word for word in map(method_named, programs) if word), "")
    certain = by_name if recipe_of(by_name or RL).answers == "given" or not keyed else ""
    vague, certain = (certain, "") if certain == RL else ("", certain)  # rl_training.py: any of several
    by_program = next((word for program in programs if (word := _by_program(fact, program))), "")
    named = _by_key(fact, natives, given=True)
    scope = RunScope(natives)
    by_settings = next((ours for ours, rule in fact.by_settings.items() if rule.holds(scope) is True), "")
    set_here = named or by_settings or said
    losses = map(method_named, filter(_LOSS.search, functions))  # "dpo" of dpo_loss and compute_kto_loss
    by_loss = next(filter(None, losses), "")
    shown = by_loss if recipe_of(by_loss or RL).answers == "given" else ""  # it computes no loss of another method
    found = by_program or (named if named != UNKNOWN else "") or certain or set_here
    found = shown or found or _by_key(fact, natives) or vague
    if not found and has_launch and not fact.fixed:
        found = fact.default
    if not found or found == UNKNOWN:
        usual = fact.fixed or ("" if has_launch else fact.otherwise)
        found = _by_frames(fact, frames, keyed) or by_loss or usual or UNKNOWN
    if found == UNKNOWN:
        given = (*(one.fact.knob for one in natives.values.values() if one.given and one.fact is not None), *knobs)
        rolls_out = engine or any(map(_generates, given)) or any(map(_ENGINE_FILE.search, frames))
        found = RL if rolls_out else UNKNOWN
    if found == UNKNOWN and framework is None:
        found = method_spelled(natives.values) or UNKNOWN
    scope = RunScope(natives, algorithm=found)
    return next((narrow for narrow, rule in fact.narrowed.items() if rule.holds(scope) is True), found)


def _by_program(fact: AlgorithmFact, program: str) -> str:
    return next((word for pattern, word in fact.programs.items() if fnmatchcase(program, pattern)), "")


def _by_key(fact: AlgorithmFact, natives: Natives, *, given: bool = False) -> str:
    """The method that a key names; `given`: a key that the launch sets, not one at its default."""
    for key in (fact.key,) if isinstance(fact.key, str) else fact.key:
        native = natives.values.get(key)
        value = natives.value(key)
        if value is not None and (not given or (native is not None and native.given)):
            word = str(value)
            named = next((ours for pattern, ours in fact.values.items() if fnmatchcase(word, pattern)), None)
            return named or fact.values.get(word.lower(), word)
    return ""


def _by_frames(fact: AlgorithmFact, frames: Sequence[str], keyed: bool) -> str:
    """By the files of a traceback: the outermost is the program, and the outermost trainer the one that was made."""
    trainers = [method_named(file) for file in frames if "trainer" in file.rpartition("/")[2].lower()]
    told = (*(_by_program(fact, file) for file in frames), *trainers, *(method_named(file) for file in frames[:1]))
    found = next((word for word in told if word), "")
    return RL if keyed and recipe_of(found or UNKNOWN).answers == "generated" else found


def _generates(knob: str | None) -> bool:
    """Whether a knob says something of a rollout engine, of what feeds it, or of the answers that it makes."""
    return knob is not None and (knob.startswith(OF_ROLLOUTS) or knob == "data.response_tokens")
