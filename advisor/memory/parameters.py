"""Counts the parameters of layers, tables and adapters, and the bytes that a trainer keeps of each: weights, gradients
and optimizer states, by precision and optimizer (names of transformers' `optim`, torch and bitsandbytes)."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from advisor.memory import constants as c
from advisor.rules.functions import version_in
from advisor.run.run import ModelShape, Run

Trainer = Literal["fsdp", "deepspeed", "megatron", "ddp"]
_HALF = ("bf16", "bfloat16", "fp16", "float16", "half", "auto")
"""`auto` is the checkpoint's own type, and nearly every checkpoint of a language model is published in 16 bits."""
_KAHAN = ("adamw_bf16", "adam_bf16", "anyprecision_adamw")
"""Of torch; Megatron keeps two bf16 moments under AReaL's name, and no compensation."""
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
            weights = float(c.BF16 if precision in _HALF else c.FP32)
        if precision or trainer != mechanics.trainer:
            gradients, master, moments = weights, 0.0, 2 * weights
            extra = weights if extra else 0.0
    elif trainer in ("deepspeed", "megatron"):
        gradients = _said(run, "actor.gradient_precision", gradients)
        moments = 2 * _said(run, "actor.moment_precision", moments / 2)
    name = str(run.value("actor.optimizer") or _usual_optimizer(run)).lower()
    moments, extra = states_of(name if trainer != "megatron" or name not in _KAHAN else "adam", moments, extra)
    by_matrix = name == "adafactor"
    if by_matrix and trainer in ("fsdp", "ddp"):
        extra = c.ADAFACTOR_STEP_BYTES + (2 * c.FP32 if weights < c.FP32 else 0)
    low_rank = is_low_rank(name) and run.model is not None
    if run.model is not None and low_rank:
        rank = run.number("actor.projection_rank") or c.USUAL_RANK
        # A matrix of m x n has two moments of rank x the longer side, and a projection of rank x the shorter one, which
        # weighs half as much; together no more than two of rank x (m + n). Embedding and head are not projected.
        projected = adapter_parameters(run.model, rank, (*ATTENTION, *MLP))
        moments *= min(1.0, (embedding_parameters(run.model) + projected) / run.model.parameters)
    elif run.model is not None and "muon" in name:
        moments *= (1 + embedding_parameters(run.model) / run.model.parameters) / 2
    paged = moments if name.startswith("paged") else 0.0  # bitsandbytes, optim/optimizer.py, is_paged
    # transformers' LOMO and layer-wise optimizers, src/transformers/trainer.py
    stepped = run.is_on("actor.optimizer_in_backward") or name in _IN_BACKWARD or name.endswith("_layerwise")
    early = trainer in ("fsdp", "ddp") and stepped
    loaded = trainer == "ddp" and mechanics.reference_as_loaded and bool(precision)
    reference = weights if loaded else mechanics.reference_bytes
    held = _quantised(run, weights)
    return Bytes(
        held, gradients, master + moments - paged, extra, reference, master, paged, early, low_rank or by_matrix
    )


def _said(run: Run, knob: str, usual: float) -> float:
    """Bytes of the precision that a knob names, as "bf16"; the usual ones where it names none."""
    said = str(run.value(knob) or "").lower().removeprefix("torch.")
    return usual if not said else float(c.BF16 if said in _HALF else c.FP32)


def _usual_optimizer(run: Run) -> str:
    """transformers' default where the versions are known to make it the fused one; "" elsewhere (foreach AdamW)."""
    torch, transformers = run.libraries.get("torch"), run.libraries.get("transformers")
    if not run.mechanics.transformers_optimizer or torch is None or not version_in(c.FUSED_BY_TORCH, torch):
        return ""
    known = transformers is None or version_in(c.FUSED_BY_TRANSFORMERS, transformers)
    return "adamw_torch_fused" if known else ""


def _quantised(run: Run, weights: float) -> float:
    """Bytes per parameter of a quantised base; embeddings and head stay in bf16, or are cast to fp32 by PEFT."""
    bits, shape = run.number("actor.quantized_bits"), run.model
    if not bits or bits >= 16 or shape is None:
        return weights
    rest = embedding_parameters(shape) / shape.parameters
    return rest * (c.FP32 if run.mechanics.kbit_prepared else c.BF16) + (1 - rest) * packed_bytes(bits)


def packed_bytes(bits: float | None) -> float:
    """Bytes per parameter of a matrix in so many bits; 16 where nothing says how many."""
    return float(c.BF16) if not bits or bits >= 16 else c.NF4_BYTES if bits <= 4 else bits / 8


def embedding_parameters(shape: ModelShape) -> int:
    """Embedding, and the head where it is a matrix of its own."""
    return shape.vocab * shape.hidden * (1 if shape.tied else 2)


def layer_parameters(shape: ModelShape) -> int:
    """One decoder layer (the vision tower is left out)."""
    return max(0, shape.parameters - shape.vision_parameters - embedding_parameters(shape)) // max(1, shape.layers)


def states_of(name: str, moments: float, extra: float) -> tuple[float, float]:
    """Bytes per parameter of moments, and of temporaries at the step, where AdamW has `moments` and `extra`. 8-bit
    states are a byte each (bitsandbytes); Lion, and in effect Adam-mini, have one moment where Adam has two."""
    lion = "lion" in name or "adam_mini" in name
    if "8bit" in name:
        return c.MOMENT_BYTES_8BIT / (2 if lion else 1), 0.0
    if name in _KAHAN:
        return c.KAHAN_MOMENT_BYTES, extra
    if name in _NO_MOMENTS:
        return 0.0, extra if name == "sgd" else 0.0
    return moments / (2 if lion else 1), 0.0 if "fused" in name or lion else extra


def is_low_rank(name: str) -> bool:
    """GaLore and APOLLO keep moments of projections."""
    return name.startswith(("galore", "apollo"))


ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")
MLP = ("gate_proj", "up_proj", "down_proj")


def targets_of(run: Run, *, experts_are_linear: bool = True) -> tuple[str, ...]:
    """The modules with an adapter, as their usual names; all of them where nothing says."""
    said = run.value("actor.lora_targets")
    named = [part.strip() for part in str(said or "").split(",") if part.strip()]
    chosen = tuple(name for name in (*ATTENTION, *MLP) if any(name.endswith(part) for part in named))
    if chosen:
        return chosen
    fused = run.model is not None and run.model.experts > 0 and not experts_are_linear
    return ATTENTION if fused else (*ATTENTION, *MLP)


def adapter_parameters(shape: ModelShape, rank: float, targets: tuple[str, ...]) -> int:
    """Parameters of one adapter of `rank`: rank x (in + out) of every target."""
    if shape.per_layer_input:
        return round(rank * _per_layer_sides(shape))
    queries = shape.heads * shape.head_dim
    out, narrow = shape.hidden + queries, shape.hidden + shape.kv_heads * shape.head_dim
    sides = {
        "q_proj": out + (queries if shape.gated_attention else 0),
        "o_proj": out,
        "k_proj": narrow,
        "v_proj": narrow,
    }
    attention = sum(sides[name] for name in ATTENTION if name in targets)
    linear = 3 * shape.hidden + 2 * shape.linear_key_width + 3 * shape.linear_value_width + 2 * shape.linear_heads
    linear = linear if {*ATTENTION, *MLP} <= {*targets} else 0
    projections = sum(name in targets for name in MLP[-shape.mlp_matrices :])
    dense = projections * (shape.hidden + shape.intermediate)
    routed = shape.experts * projections * (shape.hidden + shape.expert_intermediate)
    shared = projections * (shape.hidden + shape.shared_intermediate) if shape.shared_intermediate else 0
    mixed = shape.layers - shape.dense_layers if shape.experts else 0
    mlp = mixed * (routed + shared) + (shape.layers - mixed) * dense
    full = shape.layers - shape.linear_layers
    return round(rank * (full * attention + shape.linear_layers * linear + mlp))


def _per_layer_sides(shape: ModelShape) -> int:
    """in + out of all linear layers of a Gemma 4 with per-layer embeddings: the gates and their projection, too."""
    hidden, width, layers = shape.hidden, shape.per_layer_input, shape.layers
    own_globals = shape.global_layers - shape.shared_kv_globals
    kinds = (
        (layers - shape.global_layers, layers - shape.shared_kv_layers - own_globals, shape.head_dim),
        (shape.global_layers, own_globals, shape.global_head_dim),
    )
    attention = sum(
        everyone * 2 * (hidden + shape.heads * dim) + owners * 2 * (hidden + shape.kv_heads * dim)
        for everyone, owners, dim in kinds
    )
    narrow = layers - shape.wide_layers
    mlp = 3 * (narrow * (hidden + shape.intermediate) + shape.wide_layers * (hidden + 2 * shape.intermediate))
    return attention + mlp + 2 * layers * (hidden + width) + hidden + layers * width
