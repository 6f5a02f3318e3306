"""A LoRA pass tensor by tensor: fp32 adapters on a frozen bf16 base under autocast, logits in tiles."""

from __future__ import annotations

from functools import partial
from math import ceil

from msgspec import Struct

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.adapters import MLP, targets_of
from advisor.memory.batches import Pass, tokens_words
from advisor.memory.formula import Words
from advisor.memory.inputs import Inputs
from advisor.memory.layer import kept_bytes_per_token
from advisor.memory.parts import Part, part
from advisor.run.run import ModelShape
from advisor.units import show_bytes

_INPUTS = mark("layer inputs: {per:g} B x {layers} layers")
_CASTS = mark("autocast's bf16 copies: 2 B x {count:.1f}M adapter parameters")
_AT_LOSS = mark("hidden states at the loss: {each} B x {hidden}")
_TILE = mark("one tile of logits: {rows} rows x {vocab} x {each} B")
_SCORES = mark("{count:g} score matrices of {sequences} x {heads} heads x {length} squared x 4 B")
_ADAPTERS = mark("{per} B x {count:.1f}M adapter parameters")
_ADAPTERS_LATER = mark("none before the first step; from then on {per} B x {count:.1f}M adapter parameters")
_UNPACKED = mark("one quantised matrix unpacked: {size}")
_NOTHING_UNPACKED = mark("nothing is quantised")
_EVERYTHING = mark("activations, no checkpointing: {per:g} B x {layers} layers")


class Layer(Struct, frozen=True):
    """Bytes per token of one layer, with their arithmetic."""

    size: float
    words: Words


def backward_layer(inputs: Inputs) -> Layer:
    """One layer recomputed and differentiated: everything alive at the widest instant of its MLP's backward."""
    shape = inputs.shape
    in_mlp = any(name in targets_of(inputs.run, experts_are_linear=inputs.mechanics.experts_are_linear) for name in MLP)
    stream = c.LORA_HIDDEN + (c.LORA_MLP_INPUTS if in_mlp else 0) + (0 if is_fused(inputs) else c.EAGER_NORMS)
    stream *= 2 if _kbit(inputs) else 1
    heads = c.LORA_HEADS * shape.heads * shape.head_dim + c.LORA_KEYS * shape.kv_heads * shape.head_dim
    if shape.head_norm and not shape.experts:
        heads += (c.BF16 if is_fused(inputs) else c.LORA_HEAD_NORM) * (shape.heads + shape.kv_heads) * shape.head_dim
    if shape.experts:
        each = c.LORA_EXPERT_HIDDEN * shape.hidden + c.LORA_EXPERT * shape.expert_intermediate
        mlp = shape.experts_per_token * each
    else:
        each = (c.LORA_MLP if in_mlp else c.PLAIN_MLP) + (c.KBIT_MLP if _kbit(inputs) else 0)
        mlp = each * shape.intermediate * (2 if shape.wide_layers else 1)
    tables = c.PER_LAYER_COPIES * shape.layers * shape.per_layer_input
    words = partial(_backward_words, shape, stream, each, tables)
    return Layer(stream * shape.hidden + heads + mlp + tables, words)


def _backward_words(shape: ModelShape, stream: int, each: int, tables: int) -> str:
    """`each`: bytes of one expert, or of one element of the MLP's width; `tables`: bytes of per-layer inputs."""
    if shape.experts:
        mlp = say("{count} experts x {each} B", count=shape.experts_per_token, each=each)
    else:
        mlp = say("{each} B x MLP {width}", each=each, width=shape.intermediate * (2 if shape.wide_layers else 1))
    if tables:
        mlp = say("{mlp} + per-layer inputs {size} B", mlp=mlp, size=tables)
    return say(
        "{stream} B x {hidden} + {head} B x q {queries} + k, v + {mlp}",
        stream=stream,
        hidden=shape.hidden,
        head=c.LORA_HEADS,
        queries=shape.heads * shape.head_dim,
        mlp=mlp,
    )


def forward_layer(inputs: Inputs) -> Layer:
    """One layer of a pass without gradients, with the stream."""
    shape = inputs.shape
    if shape.experts:
        size = c.LORA_FORWARD_EXPERT * shape.experts_per_token * shape.hidden + c.LORA_FORWARD_HIDDEN * shape.hidden
    else:
        wide = shape.intermediate * (2 if shape.wide_layers else 1)
        size = c.LORA_FORWARD_MLP * wide + c.LORA_FORWARD_HIDDEN * shape.hidden
    if not is_fused(inputs) and not shape.experts:
        size += c.EAGER_FORWARD * shape.hidden
    size += c.PER_LAYER_FORWARD * shape.layers * shape.per_layer_input
    return Layer(size, partial(_forward_words, shape))


def _forward_words(shape: ModelShape) -> str:
    if shape.experts:
        return say(
            "{each} B x {count} experts x {hidden} + {stream:g} B x {hidden}",
            each=c.LORA_FORWARD_EXPERT,
            count=shape.experts_per_token,
            hidden=shape.hidden,
            stream=c.LORA_FORWARD_HIDDEN,
        )
    return say(
        "{each} B x MLP {width} + {stream:g} B x {hidden}",
        each=c.LORA_FORWARD_MLP,
        width=shape.intermediate * (2 if shape.wide_layers else 1),
        stream=c.LORA_FORWARD_HIDDEN,
        hidden=shape.hidden,
    )


def kept_part(inputs: Inputs, step: Pass, checkpointed: bool) -> Part:
    """What forward leaves for backward: the layers' inputs, or without checkpointing everything of every layer."""
    shape = inputs.shape
    if checkpointed:
        per, text = float((c.FP32 if _kbit(inputs) else c.BF16) * shape.hidden), _INPUTS
    else:
        per, text = float(kept_bytes_per_token(shape, fused=is_fused(inputs)) + c.LORA_KEPT * shape.hidden), _EVERYTHING
    words = partial(say, text, per=per, layers=shape.layers)
    return _tokens(per * shape.layers, step, words, exact=checkpointed)


def working_part(inputs: Inputs, step: Pass) -> Part:
    """One layer recomputed and differentiated."""
    layer = backward_layer(inputs)
    return _tokens(layer.size, step, lambda: say("one layer in backward: {layer}", layer=layer.words()))


def forward_part(inputs: Inputs, step: Pass) -> Part:
    """One layer without gradients."""
    layer = forward_layer(inputs)
    return _tokens(layer.size, step, lambda: say("one layer forward: {layer}", layer=layer.words()))


def casts_parts(inputs: Inputs) -> list[Part]:
    """Adapters in bf16: autocast casts each once and keeps it until it ends. Where logits are tiles, the constants of a
    layer were counted with them."""
    if inputs.mechanics.logits_tile_bytes:
        return []
    words = partial(say, _CASTS, count=inputs.adapters / 1e6)
    return [part("gathered", c.BF16 * inputs.adapters, words, basis=inputs.basis)]


def hidden_part(inputs: Inputs, step: Pass) -> Part:
    """Hidden states around the loss."""
    size = c.LOSS_HIDDEN * inputs.shape.hidden
    return _tokens(size, step, partial(say, _AT_LOSS, each=c.LOSS_HIDDEN, hidden=inputs.shape.hidden))


def tile_part(inputs: Inputs, step: Pass) -> Part:
    """One tile of logits in bf16 and fp32; a second fp32 tile where another shape is compiled beside it."""
    vocab, budget = inputs.shape.vocab, inputs.mechanics.logits_tile_bytes
    rows = max(c.TILE_ROWS_LOW, min(c.TILE_ROWS_HIGH, budget // (c.FP32 * vocab)))
    rows = min(rows, max(1, step.tokens))
    size = c.TILE_BYTES * rows * vocab
    words = partial(say, _TILE, rows=rows, vocab=vocab, each=c.TILE_BYTES)
    return part("logits", size, words, low=size * 0.7, high=size + c.FP32 * rows * vocab, basis=step.basis)


def scores_part(inputs: Inputs, step: Pass) -> Part:
    """Score matrices of layers whose heads FlashAttention has no kernel for."""
    shape = inputs.shape
    if shape.global_head_dim <= c.SCORES_WIDEST_FLASH:
        return part("activations", 0, lambda: say("no score matrices"))
    matrices = c.SCORES_ALONE if step.sequences == 1 else c.SCORES_PADDED
    one = c.FP32 * shape.heads * step.sequences * step.length**2
    words = partial(say, _SCORES, count=matrices, sequences=step.sequences, heads=shape.heads, length=step.length)
    high = one * min(c.SCORES_ALONE, 2 * matrices)
    return part("activations", matrices * one, words, low=matrices * one / 2, high=high, basis="estimated")


def gradients_part(inputs: Inputs) -> Part:
    """Gradients of the trained adapter, when the first layers are reached."""
    size = c.FP32 * inputs.adapters
    words = partial(say, _ADAPTERS, per=c.FP32, count=inputs.adapters / 1e6)
    return part("gradients", size, words, basis=inputs.basis)


def states_part(inputs: Inputs, *, certain: bool) -> Part:
    """AdamW's moments; not there yet in the first pass of a fresh process (`certain` False)."""
    per = c.MOMENT_BYTES_8BIT if "8bit" in str(inputs.run.value("actor.optimizer") or "") else 2 * c.FP32
    size = per * inputs.adapters
    words = partial(say, _ADAPTERS if certain else _ADAPTERS_LATER, per=per, count=inputs.adapters / 1e6)
    if certain:
        return part("optimizer", size, words, basis=inputs.basis)
    return part("optimizer", 0, words, high=size, basis=inputs.basis)


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


def unpacked_part(inputs: Inputs) -> Part:
    """The one matrix of a quantised base that is in use, unpacked (bitsandbytes, autograd/_functions.py, MatMul4Bit:
    forward and backward unpack it anew)."""
    shape = inputs.shape
    if not is_quantised(inputs):
        return part("gathered", 0, partial(say, _NOTHING_UNPACKED))
    size = c.BF16 * shape.hidden * max(shape.intermediate, shape.heads * shape.head_dim)
    return part("gathered", size, partial(say, _UNPACKED, size=show_bytes(size)), basis=inputs.basis)


def _tokens(per_token: float, step: Pass, what: Words, *, exact: bool = False) -> Part:
    low, high = (1.0, 1.0) if exact else (c.ADAPTER_LAYER_LOW, c.ADAPTER_LAYER_HIGH)
    size, words = per_token * step.tokens, partial(tokens_words, what, step)
    # rows are padded to the longest, and of the rows of an update one soon reaches the cap: no shorter rows in the low
    return part("activations", size, words, low=size * low, high=per_token * step.high * high, basis=step.basis)
