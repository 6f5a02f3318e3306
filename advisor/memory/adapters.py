"""Counts the parameters of LoRA adapters, by the modules that carry one."""

from __future__ import annotations

from advisor.run.run import ModelShape, Run

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
    sides = _sides(shape, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
    attention = sum(sides[name] for name in ATTENTION if name in targets)
    linear = _linear_sides(shape) if {*ATTENTION, *MLP} <= {*targets} else 0
    projections = sum(name in targets for name in MLP[-shape.mlp_matrices :])
    dense = projections * (shape.hidden + shape.intermediate)
    routed = shape.experts * projections * (shape.hidden + shape.expert_intermediate)
    shared = projections * (shape.hidden + shape.shared_intermediate) if shape.shared_intermediate else 0
    mixed = shape.layers - shape.dense_layers if shape.experts else 0
    mlp = mixed * (routed + shared) + (shape.layers - mixed) * dense
    full = shape.layers - shape.linear_layers
    return round(rank * (full * attention + shape.linear_layers * linear + mlp))


def _sides(shape: ModelShape, queries: int, keys: int) -> dict[str, int]:
    """in + out of a layer's attention projections."""
    out, narrow = shape.hidden + queries, shape.hidden + keys
    gate = queries if shape.gated_attention else 0
    return {"q_proj": out + gate, "o_proj": out, "k_proj": narrow, "v_proj": narrow}


def _linear_sides(shape: ModelShape) -> int:
    """in + out of the three projections of a layer of linear attention."""
    keys, values = shape.linear_key_width, shape.linear_value_width
    return 3 * shape.hidden + 2 * keys + 3 * values + 2 * shape.linear_heads


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
