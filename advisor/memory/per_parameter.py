"""Counts the bytes per parameter that a trainer keeps of weights, gradients and optimizer states, by precision and
optimizer (names of transformers' `optim`, torch and bitsandbytes)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from advisor.memory.adapters import ATTENTION, MLP, adapter_parameters
from advisor.memory.constants import (
    ADAFACTOR_STEP_BYTES,
    BF16,
    FP32,
    FUSED_BY_TORCH,
    FUSED_BY_TRANSFORMERS,
    KAHAN_MOMENT_BYTES,
    MOMENT_BYTES_8BIT,
    NF4_BYTES,
    USUAL_RANK,
)
from advisor.rules.functions import version_in
from advisor.run.run import ModelShape, Run

Trainer = Literal["fsdp", "deepspeed", "megatron", "ddp"]
_HALF = ("bf16", "bfloat16", "fp16", "float16", "half", "auto")
"""`auto` is the checkpoint's own type, and nearly every checkpoint of a language model is published in 16 bits."""
_KAHAN = ("adamw_bf16", "anyprecision_adamw")
_NO_MOMENTS = ("sgd", "adafactor", "lomo", "adalomo")
"""Plain SGD and LOMO have none; Adafactor's and AdaLOMO's are a row and a column of each matrix."""
_IN_BACKWARD = ("lomo", "adalomo")


class Bytes(Struct, frozen=True):
    """Bytes per parameter of the trained model."""

    weights: float
    gradients: float
    optimizer: float
    """Master weights and moments."""
    step_extra: float
    reference: float
    master: float = 0.0
    """The fp32 masters alone."""
    paged: float = 0.0
    """Moments in unified memory, not among `optimizer`."""
    steps_in_backward: bool = False
    """A weight's gradient is gone as soon as it is there: the optimizer steps in backward."""
    one_by_one: bool = False
    """The optimizer steps one matrix after the other, so that its temporaries are those of the largest."""


def bytes_of(run: Run, trainer: Trainer) -> Bytes:
    """Torch's optimizers keep everything in the weights' own precision; DeepSpeed and Megatron keep fp32 masters."""
    mechanics = run.mechanics
    precision = str(run.value("actor.load_precision") or "").lower().removeprefix("torch.")
    weights, gradients = mechanics.weight_bytes, mechanics.gradient_bytes
    master, moments, extra = mechanics.master_bytes, mechanics.moment_bytes, mechanics.step_extra_bytes
    if trainer in ("fsdp", "ddp"):
        if precision:
            weights = float(BF16 if precision in _HALF else FP32)
        if precision or trainer != mechanics.trainer:
            gradients, master, moments = weights, 0.0, 2 * weights
            extra = weights if extra else 0.0
    elif trainer in ("deepspeed", "megatron"):
        gradients = _said(run, "actor.gradient_precision", gradients)
        moments = 2 * _said(run, "actor.moment_precision", moments / 2)
    name = str(run.value("actor.optimizer") or _usual_optimizer(run)).lower()
    moments, extra = states_of(name, moments, extra)
    by_matrix = name == "adafactor"
    if by_matrix and trainer in ("fsdp", "ddp"):
        extra = ADAFACTOR_STEP_BYTES + (2 * FP32 if weights < FP32 else 0)
    low_rank = is_low_rank(name) and run.model is not None
    if run.model is not None and low_rank:
        rank = run.number("actor.projection_rank") or USUAL_RANK
        moments *= _projected_part(run.model, rank)
    elif run.model is not None and "muon" in name:
        moments *= (1 + embedding_parameters(run.model) / run.model.parameters) / 2
    paged = moments if is_paged(name) else 0.0
    early = trainer in ("fsdp", "ddp") and (run.is_on("actor.optimizer_in_backward") or steps_in_backward(name))
    loaded = trainer == "ddp" and mechanics.reference_as_loaded and bool(precision)
    reference = weights if loaded else mechanics.reference_bytes
    held = _quantised(run, weights)
    return Bytes(
        held, gradients, master + moments - paged, extra, reference, master, paged, early, low_rank or by_matrix
    )


def _said(run: Run, knob: str, usual: float) -> float:
    """Bytes of the precision that a knob names, as "bf16"; the usual ones where it names none."""
    said = str(run.value(knob) or "").lower().removeprefix("torch.")
    return usual if not said else float(BF16 if said in _HALF else FP32)


def _usual_optimizer(run: Run) -> str:
    """transformers' default where the versions are known to make it the fused one; "" elsewhere (foreach AdamW)."""
    torch, transformers = run.libraries.get("torch"), run.libraries.get("transformers")
    if not run.mechanics.transformers_optimizer or torch is None or not version_in(FUSED_BY_TORCH, torch):
        return ""
    known = transformers is None or version_in(FUSED_BY_TRANSFORMERS, transformers)
    return "adamw_torch_fused" if known else ""


def _quantised(run: Run, weights: float) -> float:
    """Bytes per parameter of a quantised base; embeddings and head stay in bf16, or are cast to fp32 by PEFT."""
    bits, shape = run.number("actor.quantized_bits"), run.model
    if not bits or bits >= 16 or shape is None:
        return weights
    rest = embedding_parameters(shape) / shape.parameters
    return rest * (FP32 if run.mechanics.kbit_prepared else BF16) + (1 - rest) * (NF4_BYTES if bits <= 4 else bits / 8)


def embedding_parameters(shape: ModelShape) -> int:
    """Embedding, and the head where it is a matrix of its own."""
    return shape.vocab * shape.hidden * (1 if shape.tied else 2)


def layer_parameters(shape: ModelShape) -> int:
    """One decoder layer (the vision tower is left out)."""
    return max(0, shape.parameters - shape.vision_parameters - embedding_parameters(shape)) // max(1, shape.layers)


def states_of(name: str, moments: float, extra: float) -> tuple[float, float]:
    """Bytes per parameter of moments, and of temporaries at the step, where AdamW has `moments` and `extra`.

    8-bit states are a byte each (bitsandbytes); Lion, and in effect Adam-mini, have one moment where Adam has two.
    """
    lion = "lion" in name or "adam_mini" in name
    if "8bit" in name:
        return MOMENT_BYTES_8BIT / (2 if lion else 1), 0.0
    if name in _KAHAN:
        return KAHAN_MOMENT_BYTES, extra
    if name in _NO_MOMENTS:
        return 0.0, extra if name == "sgd" else 0.0
    return moments / (2 if lion else 1), 0.0 if "fused" in name or lion else extra


def _projected_part(shape: ModelShape, rank: float) -> float:
    """Moments of gradients projected to `rank`, as a part of those of whole ones; embedding and head are not projected.

    A matrix of m x n has two moments of rank x the longer side, and the projection of rank x the shorter one, which
    weighs half as much; together no more than two of rank x (m + n).
    """
    projected = adapter_parameters(shape, rank, (*ATTENTION, *MLP))
    return min(1.0, (embedding_parameters(shape) + projected) / shape.parameters)


def is_paged(name: str) -> bool:
    """Moments in unified memory, which leave a full card by themselves (bitsandbytes, optim/optimizer.py, is_paged)."""
    return name.startswith("paged")


def steps_in_backward(name: str) -> bool:
    """Each weight is stepped, and its gradient freed, as soon as backward has made it (transformers' LOMO and
    layer-wise optimizers, src/transformers/trainer.py)."""
    return name in _IN_BACKWARD or name.endswith("_layerwise")


def is_low_rank(name: str) -> bool:
    """GaLore and APOLLO keep moments of projections."""
    return name.startswith(("galore", "apollo"))
