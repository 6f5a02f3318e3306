"""Looks up what a training method needs, and the method that the name of a program tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec.structs import replace

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import RecipeFact
from advisor.language import spoken
from advisor.regex import regex

UNKNOWN, RL = "unknown", "rl"
"""Words of a method that nothing tells, and of one that rolls out and of which nothing tells more."""
_LAST_PART = regex(r"([^/.\s]+)(?:\.py)?$")
"""Of a path, module or command: "fsdp_sft_trainer" of "verl.trainer.fsdp_sft_trainer", "sft" of "trl sft"."""
_NEUTRAL = regex(r"(?<=\w)/(?:main|train|trainer|run|finetune|workflow|__main__)\.py$")
"""A file named as any program may be: its folder is named for what it does."""
_WORD = regex(r"[a-z]+")
_ANY_METHOD = frozenset({"finetune", "finetuning"})
"""Words of plain fine-tuning that programs of any other method bear beside its own: dpo_finetuning.py."""
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word of a class name begins: "DPO" and "Trainer" of DPOTrainer."""


def recipe_of(algorithm: str) -> RecipeFact:
    """What a method needs; a word that recipes.yaml does not have is a policy-gradient method of that name."""
    known = _recipes(spoken())
    if algorithm in known:
        return known[algorithm]
    title = algorithm.upper() if len(algorithm) <= 5 else algorithm
    return replace(known[RL], id=algorithm, title=title, critic=False)


@lru_cache(maxsize=2)
def _recipes(language: str) -> Mapping[str, RecipeFact]:
    return {recipe.id: recipe for recipe in load_knowledge(language).recipes}


def method_named(program: str) -> str:
    """The method that the name of a program or class tells: "sft" of "examples/run_sft.py", "dpo" of "DPOTrainer", and
    of "sft/main.py", whose own name tells nothing; "" where it tells none, or several."""
    named = _NEUTRAL.sub("", program)
    return _method_of(named, spoken()) or (_method_of(program, spoken()) if named != program else "")


@lru_cache(maxsize=64)
def _method_of(program: str, language: str) -> str:
    last = _LAST_PART.search(program)
    words = set(_WORD.findall(_HUMP.sub(" ", last[1]).lower())) if last is not None else set()
    fitting = [(len(need - _ANY_METHOD), one.id) for one in _recipes(language).values() for said in one.words
               if (need := set(said.split())) <= words]  # fmt: skip
    most = max((count for count, _ in fitting), default=0)
    named = {method for count, method in fitting if count == most}
    return named.pop() if len(named) == 1 else ""


def method_spelled(keys: Iterable[str]) -> str:
    """The method of whose runs alone one of the settings is known to be; "" where it is of none. A rollout's settings
    tell more than those of a batch, which runs that roll out have, too."""
    last = {key.rpartition(".")[2].lower().replace("-", "_") for key in keys}
    spelled = ((one.id, re.compile(one.spelled)) for one in _recipes(spoken()).values() if one.spelled)
    return next((method for method, pattern in spelled if any(map(pattern.fullmatch, last))), "")
