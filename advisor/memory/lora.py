"""Counts a LoRA pass tensor by tensor: fp32 adapters on a frozen bf16 base under autocast, logits in tiles."""

from __future__ import annotations

from math import ceil

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import Amount, add_up, in_bytes, quantity
from advisor.memory.batches import Pass
from advisor.memory.cells import Cell, cell, fullest, total
from advisor.memory.inputs import Inputs, per_ledger
from advisor.memory.layer import kept_of_token, of_each
from advisor.memory.logits import logits_cell, lost_logits
from advisor.memory.parameters import MLP, targets_of


def adapter_count(inputs: Inputs) -> Amount:
    """Parameters of one adapter."""
    return quantity("adapter parameters", inputs.adapters, basis=inputs.shape.basis)


@per_ledger
def _backward_of_token(inputs: Inputs) -> Amount:
    """One layer recomputed and differentiated: everything alive at the widest instant of its MLP's backward."""
    shape = inputs.shape
    in_mlp = any(name in targets_of(inputs.run, experts_are_linear=inputs.mechanics.experts_are_linear) for name in MLP)
    stream = c.LORA_HIDDEN + (c.LORA_MLP_INPUTS if in_mlp else 0) + (0 if is_fused(inputs) else c.EAGER_NORMS)
    parts = [
        of_each(stream * (2 if _kbit(inputs) else 1), "hidden", shape.hidden),
        of_each(c.LORA_HEADS, "query width", shape.heads * shape.head_dim),
        of_each(c.LORA_KEYS, "key width", shape.kv_heads * shape.head_dim),
    ]
    if shape.head_norm and not shape.experts:
        width = (shape.heads + shape.kv_heads) * shape.head_dim
        parts.append(of_each(c.BF16 if is_fused(inputs) else c.LORA_HEAD_NORM, "normed width", width))
    if shape.experts:
        each = of_each(c.LORA_EXPERT_HIDDEN, "hidden", shape.hidden)
        each = each + of_each(c.LORA_EXPERT, "expert width", shape.expert_intermediate)
        parts.append(quantity("experts of a token", shape.experts_per_token) * each)
    else:
        per = (c.LORA_MLP if in_mlp else c.PLAIN_MLP) + (c.KBIT_MLP if _kbit(inputs) else 0)
        parts.append(of_each(per, "MLP width", _widest_mlp(inputs)))
    parts.append(_per_layer_inputs(inputs, c.PER_LAYER_COPIES))
    return add_up(parts).called("of a token in a layer").rests_on(inputs.shape.basis)


def _widest_mlp(inputs: Inputs) -> int:
    return inputs.shape.intermediate * (2 if inputs.shape.wide_layers else 1)


def _per_layer_inputs(inputs: Inputs, copies: float) -> Amount:
    """Per-layer embeddings of all layers."""
    width = quantity("per-layer width", inputs.shape.per_layer_input)
    return in_bytes("", copies) * quantity("layers", inputs.shape.layers) * width


@per_ledger
def _forward_of_token(inputs: Inputs) -> Amount:
    """One layer of a pass without gradients, with the stream."""
    shape = inputs.shape
    parts = [of_each(c.LORA_FORWARD_HIDDEN, "hidden", shape.hidden)]
    if shape.experts:
        routed = of_each(c.LORA_FORWARD_EXPERT, "hidden", shape.hidden)
        parts.append(quantity("experts of a token", shape.experts_per_token) * routed)
    else:
        parts.append(of_each(c.LORA_FORWARD_MLP, "MLP width", _widest_mlp(inputs)))
        if not is_fused(inputs):
            parts.append(of_each(c.EAGER_FORWARD, "hidden", shape.hidden))
    parts.append(_per_layer_inputs(inputs, c.PER_LAYER_FORWARD))
    return add_up(parts).called("of a token in a layer").rests_on(inputs.shape.basis)


@per_ledger
def kept_cell(inputs: Inputs, step: Pass, checkpointed: bool) -> Cell:
    """What forward leaves for backward: the layers' inputs, or without checkpointing everything of every layer."""
    shape, layers = inputs.shape, quantity("layers", inputs.shape.passed)
    if checkpointed:
        each = of_each(c.FP32 if _kbit(inputs) else c.BF16, "hidden", shape.hidden)
        return _tokens(each * layers, step, mark("layer inputs"), exact=True)
    each = kept_of_token(shape, 1, is_fused(inputs)) + of_each(c.LORA_KEPT, "hidden", shape.hidden)
    return _tokens(each * layers, step, mark("activations, no checkpointing"))


def update_cells(inputs: Inputs, step: Pass, checkpointed: bool) -> list[Cell]:
    """The loss, the backward of the last layer, or that of the first with all gradients there."""
    kept = kept_cell(inputs, step, checkpointed)
    working = []
    if checkpointed:
        again = _tokens(_backward_of_token(inputs), step, mark("one layer in backward"))
        working = [again, *_scores(inputs, step)]
    working += _unpacked(inputs)
    loss, end = [kept, *_head(inputs, step, updating=True)], [gradients_cell(inputs), *working]
    return fullest({"loss": loss, "backward": [kept, *working], "end": end})


def scoring_cells(inputs: Inputs, step: Pass) -> list[Cell]:
    """The head, or one layer without gradients. Autocast casts each adapter once and keeps it until it ends. Where
    logits are tiles, the constants of a layer were counted with these casts."""
    layer = [_tokens(_forward_of_token(inputs), step, mark("one layer forward"))]
    cells = max(_head(inputs, step, updating=False), layer, key=total)
    if inputs.mechanics.logits_tile_bytes:
        return cells
    return [cell("gathered", c.IN_BF16 * adapter_count(inputs), mark("autocast's bf16 copies")), *cells]


def _head(inputs: Inputs, step: Pass, *, updating: bool) -> list[Cell]:
    """Hidden states and one tile of logits, or where the framework makes them whole, all logits."""
    if not inputs.mechanics.logits_tile_bytes:
        return [logits_cell(inputs, step, updating=updating), *(lost_logits(inputs, step) if updating else [])]
    hidden = of_each(c.LOSS_HIDDEN, "hidden", inputs.shape.hidden)
    return [_tokens(hidden, step, mark("hidden states at the loss")), _tile(inputs, step)]


def tile_rows(budget: int, vocab: int, tokens: float) -> int:
    """Rows of a tile of logits of `budget` bytes in fp32."""
    rows = max(c.TILE_ROWS_LOW, min(c.TILE_ROWS_HIGH, budget // (c.FP32 * vocab)))
    return int(min(rows, max(1, tokens)))


def _tile(inputs: Inputs, step: Pass) -> Cell:
    """One tile of logits in bf16 and fp32; a second fp32 tile where another shape is compiled beside it."""
    vocab = quantity("vocabulary", inputs.shape.vocab)
    rows = tile_rows(inputs.mechanics.logits_tile_bytes, inputs.shape.vocab, step.tokens.value)
    tile = quantity("rows", rows, basis=step.tokens.basis) * vocab
    size = in_bytes("", c.TILE_BYTES) * tile
    bounded = size.within(low=size.value * c.TILE_LOW, high=size.value + c.FP32 * tile.value)
    return cell("logits", bounded, mark("one tile of logits"))


def _scores(inputs: Inputs, step: Pass) -> list[Cell]:
    """Score matrices of layers whose heads FlashAttention has no kernel for."""
    shape = inputs.shape
    if shape.global_head_dim <= c.SCORES_WIDEST_FLASH:
        return []
    matrices = c.SCORES_ALONE if step.sequences == 1 else c.SCORES_PADDED
    length = quantity("tokens", step.length)
    one = c.IN_FP32 * quantity("heads", shape.heads) * quantity("sequences", step.sequences) * length * length
    high = min(c.SCORES_ALONE, c.SCORES_HIGH * matrices)
    count = quantity("score matrices", matrices, low=matrices * c.SCORES_LOW, high=high, basis="estimated")
    return [cell("activations", count * one)]


def gradients_cell(inputs: Inputs) -> Cell:
    """Gradients of the trained adapter, when the first layers are reached."""
    return cell("gradients", c.IN_FP32 * adapter_count(inputs))


def states_cell(inputs: Inputs, *, certain: bool) -> Cell:
    """AdamW's moments; not there yet in the first pass of a fresh process (`certain` False)."""
    eight = "8bit" in str(inputs.run.value("actor.optimizer") or "")
    size = in_bytes("", c.MOMENT_BYTES_8BIT if eight else 2 * c.FP32) * adapter_count(inputs)
    if certain:
        return cell("optimizer", size)
    return cell("optimizer", in_bytes("of moments", 0).within(high=size), mark("none before the first step"))


def several_passes(inputs: Inputs) -> bool:
    """Whether one update is several passes, each with its step, so that all but the first meet AdamW's moments."""
    held = inputs.run.number("actor.sequences_per_gpu")
    return held is not None and ceil(held / max(1, inputs.update.sequences)) > 1


def is_fused(inputs: Inputs) -> bool:
    """Whether norms and MLP are fused kernels (Liger)."""
    run, mechanics = inputs.run, inputs.mechanics
    by_loss = mechanics.fused_loss_fuses_layers and run.is_on("actor.fused_loss")
    fused = by_loss or mechanics.fused_layers == "dense" or run.is_on("actor.fused_layers")
    return fused and not inputs.shape.experts


def _kbit(inputs: Inputs) -> bool:
    """A quantised base whose norms PEFT cast to fp32, and the residual stream with them."""
    return inputs.mechanics.kbit_prepared and is_quantised(inputs)


def is_quantised(inputs: Inputs) -> bool:
    """Whether the base is kept in fewer than 16 bits."""
    bits = inputs.run.number("actor.quantized_bits")
    return bits is not None and bits < 16


def _unpacked(inputs: Inputs) -> list[Cell]:
    """The one matrix of a quantised base that is in use, unpacked (bitsandbytes, autograd/_functions.py, MatMul4Bit:
    forward and backward unpack it anew)."""
    shape = inputs.shape
    if not is_quantised(inputs):
        return []
    width = quantity("width", max(shape.intermediate, shape.heads * shape.head_dim))
    size = c.IN_BF16 * quantity("hidden", shape.hidden) * width
    return [cell("gathered", size, mark("one quantised matrix unpacked"))]


def _tokens(per_token: Amount, step: Pass, words: str, *, exact: bool = False) -> Cell:
    low, high = (1.0, 1.0) if exact else (c.ADAPTER_LAYER_LOW, c.ADAPTER_LAYER_HIGH)
    return cell("activations", (per_token * step.tokens).spread(low, high), words)
