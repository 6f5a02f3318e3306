"""What one decoder layer keeps for its backward, per token: all of it, or what selective checkpointing saves."""

from __future__ import annotations

from advisor.memory import constants as c
from advisor.run.run import ModelShape


def kept_bytes_per_token(shape: ModelShape, stream: int = 1, *, fused: bool = False) -> int:
    """Bytes one token keeps for the backward of one decoder layer, not checkpointed (FlashAttention, eager norms).

    `stream`: GPUs that split the stream; the two norms' outputs are then gathered for the matrices behind them.
    `fused`: norms and MLP are Liger's kernels (dense models, whose classes the library knows).
    """
    fused = fused and not shape.experts
    mlp = (c.FUSED_MLP_COPIES if fused else c.MLP_COPIES) * shape.intermediate
    if shape.experts:
        width = shape.experts_per_token * shape.expert_intermediate
        mlp = c.MLP_COPIES * width + c.EXPERT_COPY_FACTOR * c.BF16 * shape.experts_per_token * shape.hidden
    heads = c.HEAD_COPIES * shape.heads * shape.head_dim + c.KV_COPIES * shape.kv_heads * shape.head_dim
    if shape.head_norm:
        heads += (c.BF16 if fused else c.HEAD_NORM_COPIES) * (shape.heads + shape.kv_heads) * shape.head_dim
    copies = c.FUSED_HIDDEN_COPIES if fused else c.HIDDEN_COPIES
    if stream > 1:
        copies = c.GATHERED_COPIES + -(-(copies - c.GATHERED_COPIES) // stream)
    return copies * shape.hidden + heads + mlp + c.FP32 * shape.heads


def selective_bytes_per_token(shape: ModelShape) -> int:
    """Bytes one token keeps of a layer whose recomputation is selective: its input, the attention's output with its
    log-sums, and every other matrix product's output (torchtitan, distributed/activation_checkpoint.py): the 1st, 3rd,
    5th and 7th of q, k, v, o, gate, up, down."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    width = shape.experts_per_token * shape.expert_intermediate if shape.experts else shape.intermediate
    products = queries + keys + width + shape.hidden
    return c.BF16 * (shape.hidden + queries + products) + c.FP32 * shape.heads
