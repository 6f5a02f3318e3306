"""Weights that a pass gathers or casts beside what is kept, and the gradients that are whole at its end."""

from __future__ import annotations

from functools import partial

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part
from advisor.memory.per_parameter import embedding_parameters, layer_parameters
from advisor.units import show_bytes, show_params

_UNITS = mark("{per:g} B x (embedding and head {root} + {units} layers {layer})")
_UNITS_AND_GRADIENTS = mark(
    "{per:g} B x (embedding and head {root} + {units} layers) + gradients of the root {per:g} B, of one layer 6 B x "
    "{layer}"
)
_HEAD = mark("embedding and head in bf16: 2 B x {count}")
_CASTS = mark("autocast's bf16 copies of weights: 2 B x {count}")
_UNITS_CAST = mark("bf16 casts of the units in use: 2 B x {count}")
_NOT_RELEASED = mark("gathered weights that are not released: 2 B x {count} on every GPU")
_LIVE = mark("live parameters 2 B x {live} + the largest module {module}: {size}")
_LIVE_AND_GRADIENT = mark("live parameters 2 B x {live} + the largest module {module} and its gradient: {size}")
_KEPT_BY_SOME = mark("{live}; DeepSpeed 0.16.0-0.16.7 would keep up to 2 B x {count}")


def stream_bytes(inputs: Inputs) -> int:
    """Bytes of an element of the layers' stream: fp32 weights under autocast make it fp32; FSDP casts weights first."""
    return c.FP32 if inputs.trainer == "ddp" and inputs.per.weights > c.BF16 else c.BF16


def gathered_units(inputs: Inputs, *, backward: bool) -> list[Part]:
    """Unsharded units that live beside the shards, and in backward the gradients of one of them."""
    if inputs.stage < 3 or inputs.trainer == "megatron" or inputs.shards == 1:
        return _cast_weights(inputs)
    if inputs.trainer == "deepspeed":
        return _zero_gathered(inputs, backward)
    layer, root = layer_parameters(inputs.shape), embedding_parameters(inputs.shape)
    per = inputs.mechanics.unsharded_bytes
    count = inputs.mechanics.gathered_units
    size, gradients = per * (root + count * layer), backward and not inputs.adapters
    if gradients:
        size += per * root + (c.BF16 + c.FP32) * layer

    def words() -> str:
        text = _UNITS_AND_GRADIENTS if gradients else _UNITS
        return say(text, per=per, root=show_params(root), units=count, layer=show_params(layer))

    return [part("gathered", size, words, low=size * c.ACTIVATION_LOW, basis=inputs.basis)]


def weights_at_loss(inputs: Inputs, *, everything: bool) -> list[Part]:
    """What of the weights is gathered or cast while the logits live: FSDP's root, autocast's casts (those of layers
    that are recomputed are gone by then)."""
    root = embedding_parameters(inputs.shape)
    if inputs.trainer == "fsdp" and inputs.per.weights > c.BF16:
        return [part("gathered", c.BF16 * root, partial(_counted, _HEAD, root))]
    if stream_bytes(inputs) == c.FP32:
        table = inputs.shape.vocab * inputs.shape.hidden
        cast = inputs.parameters - (0 if inputs.shape.tied else table) if everything else table
        return [part("gathered", c.BF16 * cast, partial(_counted, _CASTS, cast))]
    return gathered_units(inputs, backward=False)


def table_ending(inputs: Inputs, several: bool) -> list[Part]:
    """The end of a backward without sharding: the embedding's gradient, made whole before it is added to what is there.

    Tied: the head's, the embedding's and their sum; the first pass of a step keeps one of them as the gradient.
    """
    if inputs.trainer != "ddp" or inputs.adapters or inputs.per.steps_in_backward:
        return []
    table = inputs.shape.vocab * inputs.shape.hidden
    tables = 3 if inputs.shape.tied else 1
    copies = tables - (not several)
    size = inputs.per.gradients * table * copies
    if stream_bytes(inputs) == c.FP32 and not inputs.shape.tied:
        size = (c.BF16 + c.FP32) * table if several else 0
    return [part("gathered", size, partial(_table_gradients, size), low=0)]


def root_ending(inputs: Inputs, several: bool) -> list[Part]:
    """FSDP reduces the root unit (embedding and head) last: its weights, gradients, and their fp32 copy."""
    if inputs.trainer != "fsdp" or inputs.adapters:
        return []
    root, per = embedding_parameters(inputs.shape), inputs.mechanics.unsharded_bytes
    # The unit's weights are freed before its gradients are reduced; tied ones have a gradient each, and their sum.
    each = 4 * per if inputs.shape.tied or inputs.shards == 1 else per + c.FP32 + c.FP32 / inputs.shards
    if not several:  # the first pass's reduced gradient is the gradient itself
        each = per if inputs.shards == 1 else each - c.FP32 / inputs.shards
    words = partial(_root_gradients, each, root)
    return [part("gathered", each * root, words, low=each * root * c.ACTIVATION_LOW, basis=inputs.basis)]


def _cast_weights(inputs: Inputs) -> list[Part]:
    """A single FSDP rank casts its fp32 weights to bf16 unit by unit; other trainers compute with what they keep."""
    if inputs.trainer != "fsdp" or inputs.per.weights <= c.BF16:
        return []
    unit = embedding_parameters(inputs.shape) + 2 * layer_parameters(inputs.shape)
    return [part("gathered", c.BF16 * unit, partial(_counted, _UNITS_CAST, unit), low=0)]


def _zero_gathered(inputs: Inputs, backward: bool) -> list[Part]:
    """ZeRO-3: live parameters up to its cap, the largest module beside it; or all of them where none is released."""
    everything = c.BF16 * inputs.parameters
    live = min(inputs.parameters, c.LIVE_PARAMETERS) + min(inputs.parameters, c.PREFETCH_PARAMETERS)
    module = inputs.shape.vocab * inputs.shape.hidden
    gradient = (c.BF16 + c.FP32) * module if backward and not inputs.adapters else c.BF16 * module
    size = min(everything, c.BF16 * live) + gradient
    low = min(everything, c.BF16 * 2 * layer_parameters(inputs.shape)) + c.BF16 * module
    leak = inputs.run.value("leak.gathered_weights")
    if leak is True and backward:
        return [
            part(
                "gathered",
                max(size, everything),
                partial(_counted, _NOT_RELEASED, inputs.parameters),
                low=size,
                basis=inputs.basis,
            )
        ]
    unknown = leak is None and "deepspeed" not in inputs.run.libraries
    risky = backward and unknown and inputs.run.is_on("actor.gradient_checkpointing")

    def words() -> str:
        text = _LIVE_AND_GRADIENT if backward and not inputs.adapters else _LIVE
        said = say(text, live=show_params(live), module=show_params(module), size=show_bytes(size))
        return say(_KEPT_BY_SOME, live=said, count=show_params(inputs.parameters)) if risky else said

    return [part("gathered", size, words, low=low, high=max(size, everything) if risky else size, basis=inputs.basis)]


def _counted(text: str, count: float) -> str:
    """`text` with a count of parameters."""
    return say(text, count=show_params(count))


def _table_gradients(size: float) -> str:
    return say("gradients of embedding and head: {size}", size=show_bytes(size))


def _root_gradients(each: float, root: int) -> str:
    return say("gradients of embedding and head: {each:g} B x {count}", each=each, count=show_params(root))
