"""Counts the bytes that one decoder layer keeps or needs of one token, in forward and backward."""

from __future__ import annotations

from functools import lru_cache

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import Amount, add_up, in_bytes, quantity
from advisor.memory.cells import Cell, cell
from advisor.run.run import ModelShape

per_shape = lru_cache(maxsize=64)
"""Keeps what a formula gave for the last shapes."""


def of_each(size: float, name: str, count: float) -> Amount:
    """`size` bytes for each of `count` of what `name` (marked) says."""
    return in_bytes("", size) * quantity(name, count)


def no_logits() -> Cell:
    """The logits of a model whose head is a score, or none."""
    return cell("logits", in_bytes("", 0), mark("a score in place of the vocabulary"))


def mlp_width(shape: ModelShape) -> int:
    """Width of the MLP that a token passes: of the experts chosen for it, and of those that all tokens pass."""
    if not shape.experts:
        return shape.intermediate
    return shape.experts_per_token * shape.expert_intermediate + shape.shared_intermediate


def mlp_copies(shape: ModelShape, fused: bool) -> int:
    """Bytes that the MLP keeps per element of its width."""
    if not shape.gated:
        return c.UNGATED_MLP_COPIES
    return c.FUSED_MLP_COPIES if fused else c.MLP_COPIES


@per_shape
def kept_of_token(shape: ModelShape, stream: int = 1, fused: bool = False) -> Amount:
    """Bytes one token keeps for the backward of one decoder layer, not checkpointed (FlashAttention, eager norms).

    `stream`: GPUs that split the stream; the two norms' outputs are then gathered for the matrices behind them.
    `fused`: norms and MLP are Liger's kernels (dense models, whose classes the library knows).
    """
    fused = fused and not shape.experts
    copies = c.FUSED_HIDDEN_COPIES if fused else c.HIDDEN_COPIES
    if stream > 1:
        copies = c.GATHERED_COPIES + -(-(copies - c.GATHERED_COPIES) // stream)
    parts = [
        of_each(copies, "hidden", shape.hidden),
        of_each(c.HEAD_COPIES, "query width", shape.heads * shape.head_dim),
        of_each(c.KV_COPIES, "key width", shape.kv_heads * shape.head_dim),
        of_each(mlp_copies(shape, fused), "MLP width", mlp_width(shape)),
        of_each(c.FP32, "heads", shape.heads),
    ]
    if shape.linear_layers:
        # What the gated delta rule keeps: its projections, the convolution's output, its own output and that normed.
        width = 4 * shape.linear_key_width + 5 * shape.linear_value_width
        attention = add_up(parts[1:3]) * quantity("of the layers", 1 - shape.linear_layers / shape.layers, "%")
        linear = of_each(c.BF16, "width of linear attention", width)
        parts[1:3] = [attention, linear * quantity("of the layers", shape.linear_layers / shape.layers, "%")]
    if shape.experts:
        routed = of_each(c.EXPERT_COPIES * c.BF16, "hidden", shape.hidden)
        parts.append(routed * quantity("experts of a token", shape.experts_per_token))
    if shape.head_norm:
        width = (shape.heads + shape.kv_heads) * shape.head_dim
        parts.append(of_each(c.BF16 if fused else c.HEAD_NORM_COPIES, "normed width", width))
    return add_up(parts).called("of a token in a layer").rests_on(shape.basis)


@per_shape
def selective_of_token(shape: ModelShape) -> Amount:
    """Bytes one token keeps of a layer whose recomputation is selective: its input, the attention's output with its
    log-sums, and every other matrix product's output (torchtitan, distributed/activation_checkpoint.py): the 1st, 3rd,
    5th and 7th of q, k, v, o, gate, up, down."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    widths = [
        quantity("hidden", 2 * shape.hidden),
        quantity("query width", 2 * queries),
        quantity("key width", keys),
        quantity("MLP width", mlp_width(shape)),
    ]
    return (
        (c.IN_BF16 * add_up(widths) + of_each(c.FP32, "heads", shape.heads))
        .called("of a token in a layer")
        .rests_on(shape.basis)
    )


@per_shape
def backward_of_token(shape: ModelShape) -> Amount:
    """Gradients beside the kept tensors of one recomputed layer, per token: the MLP's backward is the fullest."""
    both = of_each(c.BACKWARD_MLP, "MLP width", mlp_width(shape)) + of_each(c.BF16, "hidden", shape.hidden)
    return both.rests_on(shape.basis)


@per_shape
def forward_of_token(shape: ModelShape, stream_bytes: int, ways: int) -> Amount:
    """Bytes of one token in one layer without gradients, the stream split `ways` ways."""
    hidden = of_each(c.FORWARD_HIDDEN * stream_bytes / c.BF16, "hidden", shape.hidden) / quantity("GPUs", ways)
    return (hidden.rounded() + of_each(c.FORWARD_MLP, "MLP width", mlp_width(shape))).rests_on(shape.basis)


@per_shape
def kv_of_token(shape: ModelShape, ranks: int = 1, element: int = c.BF16) -> Amount:
    """Bytes of one token in the KV cache of one of `ranks` tensor-parallel GPUs, `element` bytes a number. Heads are
    repeated where there are more ranks than heads; a latent cache (MLA) is not divided."""
    whole = of_each(element, "keys and values of a head", 2 * shape.head_dim) * quantity("KV heads", shape.kv_heads)
    whole = whole * quantity("layers", shape.layers - shape.linear_layers)
    stated = shape.kv_bytes_per_token * element // c.BF16
    if stated and stated < whole.value // 2:
        return in_bytes("of a token in the cache", stated, basis=shape.basis)
    if stated:
        whole = in_bytes("of a token in the cache", stated, basis=shape.basis)
    return (whole / quantity("tensor-parallel GPUs", min(ranks, max(1, shape.kv_heads)))).rests_on(shape.basis)
