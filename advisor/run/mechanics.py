"""Fills in how a run holds memory: what its dialect states, else what is usual for its kind of trainer, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from advisor.knowledge.schema import Framework, Mechanics, Scalar

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


UNKNOWN = msgspec.structs.replace(
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
