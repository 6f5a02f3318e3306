"""What a pass needs beside the states: kept activations, logits, gathered units; its fullest instant decides."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.memory import constants as c
from advisor.memory.batches import Pass, Role, setting_of
from advisor.memory.inputs import Inputs, embedding_parameters, layer_parameters
from advisor.memory.parts import Part, part, total
from advisor.run.run import ModelShape
from advisor.units import show_bytes, show_params


@dataclass(frozen=True, slots=True)
class Instant:
    """One moment of a pass, with everything that lives only in it."""

    name: str
    parts: tuple[Part, ...]


def kept_bytes_per_token(shape: ModelShape) -> int:
    """Bytes one token keeps for the backward of one decoder layer, not checkpointed (FlashAttention, eager norms)."""
    mlp = c.MLP_COPIES * shape.intermediate
    if shape.experts:
        width = shape.experts_per_token * shape.expert_intermediate
        mlp = c.MLP_COPIES * width + c.EXPERT_COPY_FACTOR * c.BF16 * shape.experts_per_token * shape.hidden
    heads = c.HEAD_COPIES * shape.heads * shape.head_dim + c.KV_COPIES * shape.kv_heads * shape.head_dim
    return c.HIDDEN_COPIES * shape.hidden + heads + mlp


def update_parts(inputs: Inputs, step: Pass, role: Role = "actor") -> list[Part]:
    """Activations, logits (the actor's) and gathered units of a role's update, at its fullest instant."""
    checkpointed = setting_of(inputs.run, role, "gradient_checkpointing") is True
    shape = inputs.shape
    images = _vision_part(inputs, step, checkpointed)
    layer = kept_bytes_per_token(shape)
    if checkpointed:
        kept = _tokens_part(
            c.BF16 * shape.hidden * shape.layers,
            step,
            f"layer inputs of {shape.layers} checkpointed layers: 2 B x {shape.hidden} x {shape.layers}",
        )
    else:
        kept = _tokens_part(
            layer * shape.layers,
            step,
            f"activations of {shape.layers} layers, no checkpointing: {layer / 1000:.0f} kB x {shape.layers}",
        )
    if setting_of(inputs.run, role, "activation_offload") is True:
        kept = replace(
            kept,
            low=0,
            expected=round(kept.expected * 2 / shape.layers),
            formula=f"{kept.formula}; offloaded to the host, two layers on the card",
        )
    working = _tokens_part(
        round(c.RECOMPUTE_FACTOR * layer), step, f"one layer recomputed: {c.RECOMPUTE_FACTOR} x {layer / 1000:.0f} kB"
    )
    loss = [kept, images, *_gathered(inputs, backward=False)]
    if role == "actor":
        loss.append(logits_part(inputs, step, updating=True))
    backward = [kept, images, *([working] if checkpointed else []), *_gathered(inputs, backward=True)]
    ending = _root_ending(inputs)
    instants = [Instant("loss", tuple(loss)), Instant("backward", tuple(backward)), Instant("end", tuple(ending))]
    return _fullest(instants)


def _fullest(instants: list[Instant]) -> list[Part]:
    """The parts of the instant that is expected to be fullest; its high covers what any other instant might reach."""
    chosen = max(instants, key=lambda instant: total(instant.parts))
    parts = list(chosen.parts)
    most = max(instants, key=lambda instant: sum(p.high for p in instant.parts))
    beyond = sum(p.high for p in most.parts) - sum(p.high for p in parts)
    if beyond > 0:
        last = parts[-1]
        words = f"{last.formula}; at most as much as in the {most.name}"
        parts[-1] = replace(last, high=last.high + beyond, formula=words)
    return parts


def scoring_parts(inputs: Inputs, step: Pass, *, with_logits: bool = True) -> list[Part]:
    """Activations, logits and gathered units of a pass without gradients."""
    layer = round(c.FORWARD_FACTOR * kept_bytes_per_token(inputs.shape))
    working = _tokens_part(layer, step, f"one layer forward: {layer / 1000:.0f} kB")
    hidden = _tokens_part(c.BF16 * inputs.shape.hidden, step, f"hidden states: 2 B x {inputs.shape.hidden}")
    gathered = _gathered(inputs, backward=False)
    head = [hidden, *gathered]
    if with_logits:
        head.append(logits_part(inputs, step, updating=False))
    return max(head, [working, *gathered], key=total)


def logits_bytes(inputs: Inputs, *, updating: bool) -> tuple[float, str]:
    """Live bytes per token x vocabulary entry, and why."""
    run, mechanics = inputs.run, inputs.mechanics
    eager = (
        run.is_on("actor.entropy")
        and run.value("actor.remove_padding") is False
        and not run.is_on("actor.dynamic_batch")
        and mechanics.logits_scope == "prompt_and_response"
    )
    base = mechanics.logits_update_bytes if updating else mechanics.logits_forward_bytes
    least = c.EAGER_ENTROPY_UPDATE if updating else c.EAGER_ENTROPY_FORWARD
    if eager and base < least:
        return least, "entropy from padded logits, not compiled"
    return base, "log-probabilities with gradient" if updating else "log-probabilities"


def logits_part(inputs: Inputs, step: Pass, *, updating: bool) -> Part:
    """Logits and their copies live at once; a loss in chunks holds one chunk."""
    vocab = inputs.shape.vocab
    if inputs.run.is_on("actor.fused_loss") and (updating or inputs.mechanics.fused_loss_scores):
        tokens = min(step.tokens, c.FUSED_CHUNK_TOKENS)
        size = tokens * vocab * c.FUSED_CHUNK_BYTES
        words = f"fused loss, one chunk: {tokens} tokens x {vocab} x {c.FUSED_CHUNK_BYTES} B"
        return part("logits", size, words, low=size * c.LOGITS_LOW, high=size * c.LOGITS_HIGH, basis=step.basis)
    per, why = logits_bytes(inputs, updating=updating)
    share = step.logits_part(inputs.mechanics.logits_scope)
    words = f"{per:g} B x {vocab} x {step.tokens * share:.0f} tokens ({why}; {step.formula})"
    return part(
        "logits",
        per * vocab * step.tokens * share,
        words,
        low=per * c.LOGITS_LOW * vocab * step.low * share,
        high=per * c.LOGITS_HIGH * vocab * step.high * share,
        basis=step.basis,
    )


def _tokens_part(per_token: int, step: Pass, words: str) -> Part:
    return part(
        "activations",
        per_token * step.tokens,
        f"{words} x {step.tokens} tokens ({step.formula})",
        low=per_token * step.low * c.ACTIVATION_LOW,
        high=per_token * step.high * c.ACTIVATION_HIGH,
        basis=step.basis,
    )


def _vision_part(inputs: Inputs, step: Pass, checkpointed: bool) -> Part:
    """The vision tower on one image a sequence; the cap on pixels bounds it, images of usual data sets are smaller."""
    if not inputs.shape.vision_parameters:
        return part("activations", 0, "no vision tower")
    cap = inputs.run.number("data.max_pixels") or c.TYPICAL_IMAGE_PIXELS
    expected = min(cap, c.TYPICAL_IMAGE_PIXELS)
    layer = c.BF16 * c.VISION_HIDDEN if checkpointed else c.VISION_KEPT_BYTES
    per_patch = c.VISION_LAYERS * layer + (c.VISION_KEPT_BYTES if checkpointed else 0)
    size = per_patch * step.sequences / c.PATCH_PIXELS
    words = f"vision tower: {step.sequences} images of {expected / 1e6:.2f} (at most {cap / 1e6:.2f}) megapixels"
    return part("activations", size * expected, words, low=0, high=size * cap, basis="estimated")


def _gathered(inputs: Inputs, *, backward: bool) -> list[Part]:
    """Unsharded units that live beside the shards, and in backward the gradients of one of them."""
    if inputs.stage < 3 or inputs.trainer == "megatron" or inputs.shards == 1:
        return _cast_weights(inputs)
    if inputs.trainer == "deepspeed":
        return _zero_gathered(inputs, backward)
    layer, root = layer_parameters(inputs.shape), embedding_parameters(inputs.shape)
    per = inputs.mechanics.unsharded_bytes
    size, words = per * (root + 2 * layer), f"{per:g} B x (embedding and head {show_params(root)} + 2 layers"
    if backward and not inputs.adapters:
        size += per * root + (c.BF16 + c.FP32) * layer
        words += f") + gradients of the root {per:g} B, of one layer 6 B x {show_params(layer)}"
    else:
        words += f" {show_params(layer)})"
    return [part("gathered", size, words, low=size * c.ACTIVATION_LOW, basis=inputs.basis)]


def _root_ending(inputs: Inputs) -> list[Part]:
    """FSDP reduces the root unit (embedding and head) last: its weights, gradients, and their fp32 copy."""
    if inputs.trainer != "fsdp" or inputs.adapters or inputs.shards == 1:
        return []
    root = embedding_parameters(inputs.shape)
    size = (2 * inputs.mechanics.unsharded_bytes + c.FP32) * root
    words = f"gradients of embedding and head reduced: {show_params(root)} x (2 x bf16 + fp32)"
    return [part("gathered", size, words, low=size * c.ACTIVATION_LOW, basis=inputs.basis)]


def _cast_weights(inputs: Inputs) -> list[Part]:
    """A single FSDP rank casts its fp32 weights to bf16 unit by unit; other trainers compute with what they keep."""
    if inputs.trainer != "fsdp" or inputs.per.weights <= c.BF16:
        return []
    unit = embedding_parameters(inputs.shape) + 2 * layer_parameters(inputs.shape)
    return [part("gathered", c.BF16 * unit, f"bf16 casts of the units in use: 2 B x {show_params(unit)}", low=0)]


def _zero_gathered(inputs: Inputs, backward: bool) -> list[Part]:
    """ZeRO-3: live parameters up to its cap, the largest module beside it; or all of them where none is released."""
    everything = c.BF16 * inputs.parameters
    live = min(inputs.parameters, c.LIVE_PARAMETERS) + min(inputs.parameters, c.PREFETCH_PARAMETERS)
    module = inputs.shape.vocab * inputs.shape.hidden
    gradient = (c.BF16 + c.FP32) * module if backward and not inputs.adapters else c.BF16 * module
    size = min(everything, c.BF16 * live) + gradient
    words = (
        f"live parameters 2 B x {show_params(live)} + the largest module {show_params(module)}"
        f"{' and its gradient' if backward and not inputs.adapters else ''}: {show_bytes(size)}"
    )
    low = min(everything, c.BF16 * 2 * layer_parameters(inputs.shape)) + c.BF16 * module
    leak = inputs.run.value("leak.gathered_weights")
    if leak is True and backward:
        return [
            part(
                "gathered",
                max(size, everything),
                f"gathered weights that are not released: 2 B x {show_params(inputs.parameters)} on every GPU",
                low=size,
                basis=inputs.basis,
            )
        ]
    unknown = leak is None and "deepspeed" not in inputs.run.libraries
    risky = backward and unknown and inputs.run.is_on("actor.gradient_checkpointing")
    if risky:
        words += f"; DeepSpeed 0.16.0-0.16.7 would keep up to 2 B x {show_params(inputs.parameters)}"
    return [part("gathered", size, words, low=low, high=max(size, everything) if risky else size, basis=inputs.basis)]
