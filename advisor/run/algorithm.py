"""Tells the training method of a run: by its program, a key and its words, what is set, the files of a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from advisor.knowledge.schema import AlgorithmFact, Framework
from advisor.regex import regex
from advisor.run.natives import OF_ROLLOUTS, Natives, RunScope
from advisor.run.recipe import RL, UNKNOWN, method_named, method_spelled, recipe_of

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
    set_here = named or _by_settings(fact, natives) or said
    by_loss = _by_loss(functions)
    shown = by_loss if recipe_of(by_loss or RL).answers == "given" else ""  # it computes no loss of another method
    found = by_program or (named if named != UNKNOWN else "") or certain or set_here
    found = shown or found or _by_key(fact, natives) or vague
    if not found and has_launch and not fact.fixed:
        found = fact.default
    if not found or found == UNKNOWN:
        found = (
            _by_frames(fact, frames, keyed)
            or by_loss
            or fact.fixed
            or ("" if has_launch else fact.otherwise)
            or UNKNOWN
        )
    if found == UNKNOWN:
        given = (*(one.fact.knob for one in natives.values.values() if one.given and one.fact is not None), *knobs)
        rolls_out = engine or any(map(_generates, given)) or any(map(_ENGINE_FILE.search, frames))
        found = RL if rolls_out else UNKNOWN
    if found == UNKNOWN and framework is None:
        found = method_spelled(natives.values) or UNKNOWN
    scope = RunScope(natives, algorithm=found)
    return next((narrow for narrow, rule in fact.narrowed.items() if rule.holds(scope) is True), found)


def _keys(fact: AlgorithmFact) -> tuple[str, ...]:
    return (fact.key,) if isinstance(fact.key, str) else fact.key


def _by_program(fact: AlgorithmFact, program: str) -> str:
    return next((word for pattern, word in fact.programs.items() if fnmatchcase(program, pattern)), "")


def _by_key(fact: AlgorithmFact, natives: Natives, *, given: bool = False) -> str:
    """The method that a key names; `given`: a key that the launch sets, not one at its default."""
    for key in _keys(fact):
        native = natives.values.get(key)
        value = natives.value(key)
        if value is not None and (not given or (native is not None and native.given)):
            word = str(value)
            named = next((ours for pattern, ours in fact.values.items() if fnmatchcase(word, pattern)), None)
            return named or fact.values.get(word.lower(), word)
    return ""


def _by_settings(fact: AlgorithmFact, natives: Natives) -> str:
    scope = RunScope(natives)
    return next((ours for ours, rule in fact.by_settings.items() if rule.holds(scope) is True), "")


def _by_frames(fact: AlgorithmFact, frames: Sequence[str], keyed: bool) -> str:
    """By the files of a traceback: the outermost is the program, and the outermost trainer the one that was made."""
    trainers = [method_named(file) for file in frames if "trainer" in file.rpartition("/")[2].lower()]
    told = (*(_by_program(fact, file) for file in frames), *trainers, *(method_named(file) for file in frames[:1]))
    found = next((word for word in told if word), "")
    return RL if keyed and recipe_of(found or UNKNOWN).answers == "generated" else found


def _by_loss(functions: Sequence[str]) -> str:
    """By the functions of a traceback: "dpo" of dpo_loss and compute_kto_loss."""
    losses = (name for name in functions if _LOSS.search(name))
    return next((word for word in map(method_named, losses) if word), "")


def _generates(knob: str | None) -> bool:
    """Whether a knob says something of a rollout engine, of what feeds it, or of the answers that it makes."""
    return knob is not None and (knob.startswith(OF_ROLLOUTS) or knob == "data.response_tokens")
