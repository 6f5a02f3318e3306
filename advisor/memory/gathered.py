"""Counts weights that a pass gathers or casts beside what is kept, and the gradients that are whole at its end."""

from __future__ import annotations

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import Amount, in_bytes, least, most, quantity
from advisor.memory.cells import Cell, cell
from advisor.memory.inputs import Inputs
from advisor.memory.parameters import embedding_parameters, layer_parameters, packed_bytes
from advisor.run.run import ModelShape


def of_root(shape: ModelShape) -> Amount:
    """Parameters of embedding and head."""
    return quantity("in embedding and head", embedding_parameters(shape), basis=shape.basis)


def of_layer(shape: ModelShape) -> Amount:
    """Parameters of a layer."""
    return quantity("in a layer", layer_parameters(shape), basis=shape.basis)


def of_table(shape: ModelShape) -> Amount:
    """Elements of the embedding, or of the head."""
    return quantity("in the embedding", shape.vocab * shape.hidden, basis=shape.basis)


def of_unit(shape: ModelShape) -> Amount:
    """Parameters of the largest unit: a layer, or the embedding."""
    return most(of_layer(shape), of_table(shape))


def stream_bytes(inputs: Inputs) -> int:
    """Bytes of an element of the layers' stream: fp32 weights under autocast make it fp32; FSDP casts weights first."""
    return c.FP32 if inputs.trainer == "ddp" and inputs.per.weights > c.BF16 else c.BF16


def gathered_units(inputs: Inputs, *, backward: bool) -> list[Cell]:
    """Unsharded units that live beside the shards, and in backward the gradients of one of them."""
    if inputs.stage < 3 or inputs.trainer == "megatron" or inputs.shards == 1:
        if inputs.trainer != "fsdp" or inputs.per.weights <= c.BF16:
            return []  # other trainers compute with what they keep
        size = c.IN_BF16 * (of_root(inputs.shape) + quantity("layers", 2) * of_layer(inputs.shape))
        return [cell("gathered", size.within(low=0), mark("bf16 casts of the units in use"))]
    if inputs.by_zero:
        return _zero_gathered(inputs, backward)
    layer, root = of_layer(inputs.shape), of_root(inputs.shape)
    per, units = inputs.mechanic("unsharded_bytes"), inputs.mechanic("gathered_units", "layers", "")
    if keeps_gathered(inputs):
        size = per * inputs.parameters
        if backward and not inputs.adapters:
            size = size + in_bytes("of gradients", c.BF16 + c.FP32) * layer
        return [cell("gathered", size, mark("all weights, which stay gathered until backward"))]
    of_layers = _of_layers(inputs, per)
    size = per * (root + units * layer) if of_layers is per else per * root + of_layers * units * layer
    if backward and not inputs.adapters:
        size = size + per * root + in_bytes("of gradients", c.BF16 + c.FP32) * layer
    return [cell("gathered", size.spread(c.ACTIVATION_LOW), mark("embedding and head, layers in use"))]


def _of_layers(inputs: Inputs, per: Amount) -> Amount:
    """Bytes per parameter with which layers are gathered: `per`, less where their base is packed."""
    packed = packed_bytes(inputs.run.number("actor.quantized_bits"))
    return in_bytes("", packed) if packed < min(per.value, c.BF16) else per


def keeps_gathered(inputs: Inputs) -> bool:
    """Whether FSDP shards weights again only after backward (reshard_after_forward off, SHARD_GRAD_OP)."""
    return inputs.trainer == "fsdp" and inputs.shards > 1 and inputs.run.is_on("actor.keeps_gathered")


def weights_at_loss(inputs: Inputs, *, everything: bool) -> list[Cell]:
    """What of the weights is gathered or cast while the logits live: FSDP's root, autocast's casts (those of layers
    that are recomputed are gone by then)."""
    if inputs.trainer == "fsdp" and inputs.per.weights > c.BF16 and not keeps_gathered(inputs):
        return [cell("gathered", c.IN_BF16 * of_root(inputs.shape), mark("embedding and head in bf16"))]
    if stream_bytes(inputs) == c.FP32:
        cast = of_table(inputs.shape)
        if everything:
            cast = inputs.parameters if inputs.shape.tied else inputs.parameters - cast
        return [cell("gathered", c.IN_BF16 * cast, mark("autocast's bf16 copies of weights"))]
    return gathered_units(inputs, backward=False)


def cast_without_gradients(inputs: Inputs) -> list[Cell]:
    """The same in a pass without gradients: autocast keeps copies of what is trained, of a frozen base one by one."""
    return weights_at_loss(inputs, everything=not inputs.adapters)


def table_ending(inputs: Inputs, several: bool) -> list[Cell]:
    """The end of a backward without sharding: the embedding's gradient, made whole before it is added to what is there.

    Tied: the head's, the embedding's and their sum (a fused loss hands out the head's to be added to); the first pass
    of a step keeps one of them as the gradient.
    """
    if inputs.trainer != "ddp" or inputs.adapters or inputs.per.steps_in_backward:
        return []
    tables = (2 if inputs.run.is_on("actor.fused_loss") else 3) if inputs.shape.tied else 1
    per = inputs.state("gradients") * quantity("gradients", tables - (not several))
    if stream_bytes(inputs) == c.FP32 and not inputs.shape.tied:
        per = in_bytes("", c.BF16 + c.FP32 if several else 0)
    size = (per * of_table(inputs.shape)).within(low=0)
    return [cell("gathered", size, mark("gradients of embedding and head"))]


def head_gradient(inputs: Inputs) -> list[Cell]:
    """The only gradient that is there when backward begins with the layers, in the first pass of a step."""
    if inputs.adapters or inputs.per.steps_in_backward:
        return []
    return [cell("gradients", inputs.state("gradients") * of_table(inputs.shape), mark("of the head"))]


def root_ending(inputs: Inputs, several: bool) -> list[Cell]:
    """FSDP reduces the root unit (embedding and head) last: its weights, gradients, and their fp32 copy."""
    if inputs.trainer != "fsdp" or inputs.adapters:
        return []
    per, shard = inputs.mechanic("unsharded_bytes"), c.IN_FP32 / inputs.over
    # The unit's weights are freed before its gradients are reduced; tied ones have a gradient each, and their sum.
    whole = quantity("copies", c.ROOT_COPIES) * per
    each = whole if inputs.shape.tied or inputs.shards == 1 else per + c.IN_FP32 + shard
    if not several:  # the first pass's reduced gradient is the gradient itself
        each = per if inputs.shards == 1 else each - shard
    size = (each * of_root(inputs.shape)).spread(c.ACTIVATION_LOW)
    return [cell("gathered", size, mark("gradients of embedding and head"))]


def _zero_gathered(inputs: Inputs, backward: bool) -> list[Cell]:
    """ZeRO-3: live parameters up to its cap, the largest module beside it; or all of them where none is released."""
    per = _of_layers(inputs, c.IN_BF16)
    everything = per * inputs.parameters
    prefetched = least(inputs.parameters, quantity("prefetched", c.PREFETCH_PARAMETERS))
    live = least(inputs.parameters, quantity("live", c.LIVE_PARAMETERS)) + prefetched
    of_module = c.BF16 + (c.FP32 if backward and not inputs.adapters else 0)
    module = of_table(inputs.shape)
    size = least(everything, per * live) + in_bytes("", of_module) * module
    low = min(everything.value, per.value * 2 * layer_parameters(inputs.shape)) + c.BF16 * module.value
    leak = inputs.run.value("leak.gathered_weights")
    if leak is True and backward:
        held = most(size, everything).within(low=size.value)
        return [cell("gathered", held, mark("gathered weights that are not released, on every GPU"))]
    unknown = leak is None and "deepspeed" not in inputs.run.libraries
    risky = backward and unknown and inputs.run.is_on("actor.gradient_checkpointing")
    high = everything.called("that DeepSpeed 0.16.0-0.16.7 would keep") if risky else None
    words = mark("live parameters and the largest module")
    if of_module > c.BF16:
        words = mark("live parameters, the largest module and its gradient")
    return [cell("gathered", size.within(low, high), words)]
