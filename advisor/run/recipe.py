"""Looks up what a training method needs, the method that a program's name tells, and how a run holds memory: what its
dialect states, else what is usual for its kind of trainer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework, Mechanics, RecipeFact, Scalar
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


_TORCH: Mapping[str, Any] = {
    "master_bytes": 0,
    "moment_bytes": 8,
    "step_extra_bytes": 4,
    "unsharded_bytes": 2,
    "reference_bytes": 2,
    "reference_on": "gpu",
    "reference_when": "kl",
    "logits_scope": "prompt_and_response",
    "logits_update_bytes": 12,
    "logits_forward_bytes": 8,
    "engine_share_of": "total",
    "engine_sleeps": False,
    "sleep_level": 1,
    "wakes_beside": (),
    "sync_gathers": "tensor",
    "offload_lowers_update": False,
    "processes_per_gpu": 1,
}
"""Plain PyTorch: AdamW, whole logits cast to fp32, an engine that keeps its share."""
_ACCELERATE: Mapping[str, Any] = {
    **_TORCH,
    "weight_bytes": 2,
    "gradient_bytes": 2,
    "master_bytes": 4,
    "engine_sleeps": True,
    "reference_when": "kl_full",
    "offload_lowers_update": True,
    "adapter_casts": True,
    "transformers_optimizer": True,
    "source": "huggingface/accelerate@v1.2.0 src/accelerate/accelerator.py: DeepSpeed by its stage, else plain DDP",
}
USUAL: Mapping[str, Mapping[str, Any]] = {
    "fsdp": {**_TORCH, "trainer": "fsdp", "weight_bytes": 4, "gradient_bytes": 4},
    "deepspeed": {**_ACCELERATE, "trainer": "deepspeed"},
    "ddp": {**_ACCELERATE, "trainer": "ddp"},
    "megatron": {
        **_ACCELERATE,
        "trainer": "megatron",
        "gradient_bytes": 4,
        "step_extra_bytes": 0,
        "logits_update_bytes": 6,
        "logits_forward_bytes": 6,
    },
}
"""Kind of trainer → what is usual where nobody says otherwise."""
_MEGATRON_SIZES = tuple(f"actor.{kind}_parallel" for kind in ("tensor", "pipeline", "context", "expert"))


class FilledMechanics(Struct, frozen=True):
    """Complete mechanics, and the fields that nobody stated."""

    mechanics: Mechanics
    assumed: tuple[str, ...] = ()


def assumed_mechanics(trainer: str) -> Mechanics:
    """What is usual for a kind of trainer, where nothing is stated."""
    return msgspec.convert(USUAL[trainer], Mechanics)


UNDESCRIBED = msgspec.structs.replace(
    assumed_mechanics("fsdp"), logits_update_bytes=8, logits_forward_bytes=4, engine_sleeps=True
)
"""Of a launch of which no dialect is known: its memory is not counted, and its engine may be one that sleeps."""


def mechanics_of(framework: Framework, changes: Mapping[str, Scalar | list[str]]) -> FilledMechanics:
    """What the dialect states, with `changes` (of its era, backend and command), filled up by the kind of trainer. A
    kind that is not stated either is taken as FSDP: verl, its forks and most others train with it."""
    given = {**msgspec.structs.asdict(framework.mechanics), **changes}
    usual = USUAL[str(given["trainer"] or "fsdp")]
    missing = tuple(name for name, value in given.items() if value is None)
    filled = {**given, **{name: usual[name] for name in missing}}
    return FilledMechanics(msgspec.convert(filled, Mechanics), missing)


def usual_trainer(knobs: Mapping[str, object]) -> str:
    """The trainer of a framework that no dialect describes, by the knobs that are given. Megatron with a parallel size,
    FSDP with a shard size (and tensor parallelism beside it, as torchtitan has), else transformers' Trainer: DeepSpeed
    with a stage, plain data parallelism without."""
    sizes = [name for name in _MEGATRON_SIZES if name in knobs]
    if sizes and not (sizes == ["actor.tensor_parallel"] and "actor.shard_size" in knobs):
        return "megatron"
    return "fsdp" if "actor.shard_size" in knobs else "deepspeed"
