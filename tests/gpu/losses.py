"""The frameworks' ways from hidden states to log-probabilities: which tensors of [tokens, vocabulary] each one makes.

Every path is the sequence of tensor operations of one framework and version (named in `PATHS`), no more. Kernels that
need a GPU have stand-ins that keep and allocate the same tensors; on a GPU the real ones would do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch.nn import functional

TEMPERATURE = 0.9
"""Any but 1: frameworks divide only then."""
ENTROPY_CHUNK = 128
"""Tokens (trl 1.0, entropy_from_logits)."""
VERL_CHUNK = 2048
"""Tokens (verl, entropy_from_logits_with_chunking)."""
FUSED_CHUNK = 512
"""Tokens (verl, FusedLinearForPPO)."""


class _FusedCrossEntropy(torch.autograd.Function):
    """flash-attention's Triton cross entropy: keeps the logits, writes their gradient over them or beside them."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, labels: torch.Tensor, in_place: bool) -> torch.Tensor:
        sums = torch.empty(labels.shape, dtype=torch.float32, device=logits.device)
        ctx.save_for_backward(logits, sums, labels)
        ctx.in_place = in_place
        return torch.zeros(labels.shape, dtype=torch.float32, device=logits.device)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None, None]:  # type: ignore[override]
        logits, _, _ = ctx.saved_tensors
        return (logits.detach() if ctx.in_place else torch.empty_like(logits)), None, None


class _CompiledEntropy(torch.autograd.Function):
    """Entropy fused by a compiler: reads the logits, keeps them, makes one gradient of their size."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor) -> torch.Tensor:
        sums = torch.zeros(logits.shape[:-1], dtype=torch.float32, device=logits.device)
        ctx.save_for_backward(logits, sums)
        return torch.zeros_like(sums)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return torch.empty_like(ctx.saved_tensors[0])


class _FusedLinear(torch.autograd.Function):
    """Head and log-probabilities in chunks of tokens; backward makes each chunk's logits once more."""

    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        found = torch.empty(labels.shape, dtype=torch.float32, device=hidden.device)
        for start in range(0, len(hidden), FUSED_CHUNK):
            logits = (hidden[start : start + FUSED_CHUNK] @ weight.t()).div_(TEMPERATURE).float()
            chunk = torch.log_softmax(logits, -1)
            found[start : start + FUSED_CHUNK] = _picked(chunk, labels[start : start + FUSED_CHUNK])
        ctx.save_for_backward(hidden, weight, labels)
        return found

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:  # type: ignore[override]
        hidden, weight, _ = ctx.saved_tensors
        of_hidden, of_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        for start in range(0, len(hidden), FUSED_CHUNK):
            rows = hidden[start : start + FUSED_CHUNK]
            wide = (rows @ weight.t()).div_(TEMPERATURE).float()
            gradient = torch.softmax(wide, -1).mul_(grad[start : start + FUSED_CHUNK, None]).to(hidden.dtype)
            of_hidden[start : start + FUSED_CHUNK] += gradient @ weight
            of_weight += gradient.t() @ rows
        return of_hidden, of_weight, None


def _cross_entropy(logits: torch.Tensor, labels: torch.Tensor, *, in_place: bool) -> torch.Tensor:
    """flash-attention's own kernel on a GPU where it is installed."""
    if logits.is_cuda and find_spec("flash_attn"):
        from flash_attn.ops.triton.cross_entropy import cross_entropy_loss

        return -cross_entropy_loss(logits, labels, inplace_backward=in_place)[0]
    return _FusedCrossEntropy.apply(logits, labels, in_place)


def _compiled_entropy(logits: torch.Tensor) -> torch.Tensor:
    """Compiled on a GPU, as verl does it."""
    if logits.is_cuda:
        return torch.compile(_entropy, dynamic=True)(logits)
    return _CompiledEntropy.apply(logits)


def _picked(values: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return values.gather(-1, labels[..., None]).squeeze(-1)


def _row_by_row(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Log-probabilities a row at a time: log-sum-exp in fp32, log-softmax in bf16."""
    if logits.dtype == torch.float32:
        return _picked(logits, labels) - torch.stack([torch.logsumexp(row, -1) for row in logits])
    return torch.stack([_picked(functional.log_softmax(row, -1), own) for row, own in zip(logits, labels, strict=True)])


def _entropy(logits: torch.Tensor) -> torch.Tensor:
    """Entropy of each token, in fp32 as autocast has it."""
    share = torch.softmax(logits, -1, dtype=torch.float32)
    return torch.logsumexp(logits.float(), -1) - torch.sum(share * logits, -1)


@torch.no_grad()
def _entropy_in_chunks(logits: torch.Tensor) -> torch.Tensor:
    flat = logits.reshape(-1, logits.shape[-1])
    parts = []
    for chunk in flat.split(ENTROPY_CHUNK, 0):
        shares = functional.log_softmax(chunk, -1)
        parts.append(-(torch.exp(shares) * shares).sum(-1))
    return torch.cat(parts)


@dataclass(frozen=True, slots=True)
class Tokens:
    """One pass: ids [rows, length]; the last `response` of every row are trained."""

    ids: torch.Tensor
    response: int


Path = Callable[[Any, Tokens, bool], torch.Tensor]
"""(model, tokens, updating) → a loss, or the log-probabilities of a scoring pass."""


def _trl(model: Any, tokens: Tokens, updating: bool, *, fp32: bool, copies: bool, entropy: bool) -> torch.Tensor:
    output = model(tokens.ids, use_cache=False, logits_to_keep=tokens.response + 1)
    logits = output.logits.float() if fp32 else output.logits
    del output
    logits = logits[:, :-1]
    if copies:
        logits = logits / TEMPERATURE
    else:
        logits.div_(TEMPERATURE)
    found = _row_by_row(logits, tokens.ids[:, -tokens.response :])
    if entropy and updating:
        _entropy_in_chunks(logits)
    return found.sum()


def _trl_view(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    return _trl(model, tokens, updating, fp32=True, copies=False, entropy=True)


def _trl_view_bf16(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    return _trl(model, tokens, updating, fp32=False, copies=False, entropy=True)


def _trl_copy(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    return _trl(model, tokens, updating, fp32=True, copies=True, entropy=False)


def _trl_copy_bf16(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    return _trl(model, tokens, updating, fp32=False, copies=True, entropy=False)


def _in_one_row(tokens: Tokens) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and positions of all rows, one after the other: [1, rows * length] each.

    Positions go on from row to row: where they began anew, attention without FlashAttention would make a mask.
    """
    packed = tokens.ids.reshape(1, -1)
    return packed, torch.arange(packed.shape[1], device=packed.device)[None]


def _verl(model: Any, tokens: Tokens, updating: bool, entropy: Callable[[torch.Tensor], torch.Tensor] | None) -> Any:
    """Rows packed into one; the division by the temperature is in place, on a view."""
    packed, where = _in_one_row(tokens)
    logits = model(packed, position_ids=where, use_cache=False).logits.squeeze(0)
    logits.div_(TEMPERATURE)
    spread = entropy(logits) if entropy is not None else None
    found = _cross_entropy(logits, packed[0], in_place=updating)
    return found.sum() if spread is None else found.sum() + spread.sum()


def _verl_plain(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    return _verl(model, tokens, updating, None)


def _verl_compiled(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    return _verl(model, tokens, updating, _compiled_entropy)


def _verl_scores_entropy(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    """The entropy bonus is off: only the scoring pass computes entropy."""
    return _verl(model, tokens, updating, None if updating else _compiled_entropy)


def _verl_chunked(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    return _verl(model, tokens, updating, lambda logits: torch.cat([_entropy(c) for c in logits.split(VERL_CHUNK)]))


def _verl_padded(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    """Rows stay padded; entropy is never compiled."""
    logits = model(tokens.ids, use_cache=False).logits
    logits.div_(TEMPERATURE)
    logits = logits[:, -tokens.response - 1 : -1]
    labels = tokens.ids[:, -tokens.response :]
    flat = logits.reshape(-1, logits.shape[-1])
    found = _cross_entropy(flat, labels.reshape(-1), in_place=updating)
    return found.sum() + _entropy(logits).sum()


def _verl_fused(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    """The head never makes whole logits; it runs inside the model's forward, where FSDP has its weights gathered."""
    packed, where = _in_one_row(tokens)
    head = getattr(model, "module", model).lm_head
    head.forward = lambda hidden: _FusedLinear.apply(hidden.squeeze(0), head.weight, packed[0])
    try:
        return model(packed, position_ids=where, use_cache=False).logits.sum()
    finally:
        del head.forward


def _openrlhf(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    """Since 0.6: fp32 logits of the whole sequence, fused cross entropy that writes beside them."""
    packed, where = _in_one_row(tokens)
    output = model(packed, position_ids=where, use_cache=False)
    output["logits"] = output["logits"].to(torch.float32)
    return _cross_entropy(output["logits"].squeeze(0), packed[0], in_place=False).sum()


def _openrlhf_old(model: Any, tokens: Tokens, updating: bool) -> torch.Tensor:
    """Up to 0.5: log-softmax of bf16 logits."""
    logits = model(tokens.ids, use_cache=False).logits
    return _picked(functional.log_softmax(logits[:, :-1], -1), tokens.ids[:, 1:]).sum()


PATHS: dict[str, Path] = {
    "trl view": _trl_view,
    "trl view bf16": _trl_view_bf16,
    "trl copy": _trl_copy,
    "trl copy bf16": _trl_copy_bf16,
    "verl": _verl_plain,
    "verl entropy compiled": _verl_compiled,
    "verl entropy scored": _verl_scores_entropy,
    "verl entropy chunked": _verl_chunked,
    "verl padded entropy": _verl_padded,
    "verl fused": _verl_fused,
    "openrlhf": _openrlhf,
    "openrlhf old": _openrlhf_old,
}
