"""FlashAttention's memory without its kernel: what it keeps for backward and what its backward allocates.

Kept: queries, keys, values, output, and the log-sum-exp in fp32. Backward: the three gradients, the queries' once more
in fp32, one fp32 value a row, and keys' and values' gradients at the width of all heads where heads share them
(flash-attention, csrc/flash_attn/flash_api.cpp, mha_varlen_bwd). Values are wrong; sizes and lifetimes are right.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

NAME = "kernel_stand_in"


class _Flash(torch.autograd.Function):
    """[rows, tokens, heads, width] → the same shape."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        rows, tokens, heads, _ = query.shape
        out = torch.empty_like(query)
        sums = torch.empty((rows, heads, tokens), dtype=torch.float32, device=query.device)
        ctx.save_for_backward(query, key, value, out, sums)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # type: ignore[override]
        query, key, value, _, sums = ctx.saved_tensors
        grads = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
        accumulated = torch.empty(query.shape, dtype=torch.float32, device=query.device)
        row_sums = torch.empty_like(sums)
        wide = [torch.empty_like(query) for _ in range(2)] if key.shape[2] != query.shape[2] else []
        del accumulated, row_sums, wide
        return grads


def _attend(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any
) -> tuple[torch.Tensor, None]:
    """[rows, heads, tokens, width] as transformers gives them; the kernel takes nothing wider than bf16."""
    return _Flash.apply(*(part.transpose(1, 2).to(torch.bfloat16) for part in (query, key, value))), None


def register() -> str:
    """Make the stand-in known to transformers; returns the name to ask for."""
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, lambda *_, **__: None)
    return NAME
