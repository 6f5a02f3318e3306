"""What a pass needs beside the states: kept activations, logits, gathered units; its fullest instant decides."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory import lora, megatron
from advisor.memory.batches import Pass, Role, sequences_held, setting_of, tokens_words
from advisor.memory.formula import Words
from advisor.memory.gathered import gathered_units, root_ending, stream_bytes, table_ending, weights_at_loss
from advisor.memory.inputs import Inputs
from advisor.memory.layer import kept_bytes_per_token, selective_bytes_per_token
from advisor.memory.logits import logits_bytes, logits_part, lost_logits
from advisor.memory.parts import Part, part, total
from advisor.memory.tensor import of_rank
from advisor.run.run import ModelShape
from advisor.units import show_bytes

_ON_HOST: dict[Role, str] = {
    "actor": mark("actor's layer inputs: {each:.0f} kB x {tokens} tokens x {gpus} GPUs"),
    "critic": mark("critic's layer inputs: {each:.0f} kB x {tokens} tokens x {gpus} GPUs"),
}
_CHECKPOINTED = mark("layer inputs of {layers} checkpointed layers: {stream} B x {hidden} x {layers}")
_SOME_CHECKPOINTED = mark(
    "layer inputs of {layers} checkpointed layers: {stream} B x {hidden} x {layers} (the others rest in host RAM)"
)
_SPLIT_CHECKPOINTED = mark(
    "layer inputs of {layers} checkpointed layers: {stream} B x {hidden} x {layers} / {ways} tensor-parallel GPUs"
)
_PIECES_CHECKPOINTED = mark(
    "inputs of {pieces} checkpointed pieces of {layers} layers each: {pieces} x {stream} B x {hidden} x {layers}"
)
_SPLIT_PIECES = mark(
    "inputs of {pieces} checkpointed pieces of {layers} layers each: {pieces} x {stream} B x {hidden} x {layers} / "
    "{ways} tensor-parallel GPUs"
)
_MLP_CHECKPOINTED = mark("activations of {layers} layers, only the MLP checkpointed: {each:.0f} kB x {layers}")
_SELECTIVE = mark("activations of {layers} layers, saved selectively: {each:.0f} kB x {layers}")
_NOT_CHECKPOINTED = mark("activations of {layers} layers, no checkpointing: {each:.0f} kB x {layers}")
_IN_BACKWARD = mark("one layer in backward: {each:.0f} kB")
_LAST_NORM = mark("last norm and the head's input: 8 B x {hidden}")
_FORWARD = mark("one layer forward: {each:.0f} kB")
_HIDDEN = mark("hidden states: 2 B x {hidden}")
_AT_MOST = {
    "loss": mark("{formula}; at most as much as in the loss"),
    "backward": mark("{formula}; at most as much as in the backward"),
    "end": mark("{formula}; at most as much as in the end"),
}
_TOWER = mark("vision tower: {images} images of {expected:.2f} (at most {cap:.2f}) megapixels")
_FROZEN_TOKENS = mark(
    "a frozen vision tower, one layer: {each:.0f} kB x {patches:.0f} patches (half of {tokens} tokens are of images)"
)
_FROZEN_IMAGES = mark("a frozen vision tower, one layer: {each:.0f} kB x {patches:.0f} patches ({images} images)")


class Instant(Struct, frozen=True):
    """One moment of a pass, with everything that lives only in it."""

    name: Literal["loss", "backward", "end"]
    parts: tuple[Part, ...]


def _offloads(inputs: Inputs, role: Role) -> bool:
    """Whether kept activations go to host RAM on the way (verl and EasyR1; only with checkpointing)."""
    return setting_of(inputs.run, role, "activation_offload") is True


def offloaded_activations(inputs: Inputs, role: Role) -> Part:
    """Layer inputs of one pass of every training GPU of a node that rest in host RAM."""
    step = inputs.update if role == "actor" else inputs.critic
    checkpointed = setting_of(inputs.run, role, "gradient_checkpointing") is True
    layers = inputs.shape.layers - c.OFFLOADED_LAYERS
    if not _offloads(inputs, role) or not checkpointed or inputs.by_tensor or inputs.split is not None or layers < 1:
        return part("offloaded_activations", 0, lambda: say("activations stay on the card"))
    each = stream_bytes(inputs) * inputs.shape.hidden * layers
    size = each * step.tokens * inputs.node_gpus
    words = partial(say, _ON_HOST[role], each=each / 1000, tokens=step.tokens, gpus=inputs.node_gpus)
    low, high = each * step.low * inputs.node_gpus, 2.0 * each * step.high * inputs.node_gpus
    return part("offloaded_activations", size, words, low=low, high=high, basis="estimated")


def _backward_bytes(shape: ModelShape) -> int:
    """Gradients beside the kept tensors of one recomputed layer, per token: the MLP's backward is the fullest."""
    width = shape.experts_per_token * shape.expert_intermediate if shape.experts else shape.intermediate
    return c.BACKWARD_MLP * width + c.BF16 * shape.hidden


def update_parts(inputs: Inputs, step: Pass, role: Role = "actor", gradients: Sequence[Part] = ()) -> list[Part]:
    """Activations, logits (the actor's) and gathered units of a role's update, at its fullest instant.

    `gradients` are there at the loss only from the second pass of a step on.
    """
    checkpointed = setting_of(inputs.run, role, "gradient_checkpointing") is True
    if inputs.by_tensor:
        return [*gradients, *_lora_update(inputs, step, checkpointed)]
    if inputs.split is not None:
        return [*gradients, *_megatron_update(inputs, inputs.split, step, role)]
    inputs = of_rank(inputs)
    shape = inputs.shape
    images = _vision_part(inputs, step, checkpointed)
    stream = stream_bytes(inputs)
    casts = c.AUTOCAST_COPIES if stream == c.FP32 else 0
    fused = lora.is_fused(inputs)
    layer = kept_bytes_per_token(shape, inputs.stream, fused=fused) + casts * shape.hidden
    if checkpointed:
        kept = _checkpoints(inputs, step, role, layer, fused=fused)
    elif str(inputs.run.value("actor.recompute_granularity") or "").lower() == "selective":
        saved = selective_bytes_per_token(shape)
        words = partial(say, _SELECTIVE, layers=shape.layers, each=saved / 1000)
        kept = _tokens_part(saved * shape.layers, step, words)
    else:
        words = partial(say, _NOT_CHECKPOINTED, layers=shape.layers, each=layer / 1000)
        kept = _tokens_part(layer * shape.layers, step, words)
    again = layer + _backward_bytes(shape)
    working = _tokens_part(
        again if checkpointed else again - layer, step, partial(say, _IN_BACKWARD, each=again / 1000)
    )
    last = _tokens_part(
        c.LAST_NORM * shape.hidden // inputs.stream, step, partial(say, _LAST_NORM, hidden=shape.hidden)
    )
    lost = _lost_behind(kept) if checkpointed else []
    sure = list(gradients) if _several_passes(inputs, step, role) else []
    loss = [*sure, kept, images, last, *lost, *weights_at_loss(inputs, everything=not checkpointed)]
    if role == "actor":
        loss += [logits_part(inputs, step, updating=True), *lost_logits(inputs, step)]
    backward = [*gradients, kept, images, *lost, working, *gathered_units(inputs, backward=True)]
    ending = [*gradients, *root_ending(inputs, bool(sure)), *table_ending(inputs, bool(sure))]
    instants = [Instant("loss", tuple(loss)), Instant("backward", tuple(backward)), Instant("end", tuple(ending))]
    return _fullest(instants)


def _checkpoints(inputs: Inputs, step: Pass, role: Role, layer: int, *, fused: bool) -> Part:
    """What checkpointed layers keep: their inputs, or those of their pieces; all but the MLP's where only it is one."""
    shape, stream = inputs.shape, stream_bytes(inputs)
    here = min(c.OFFLOADED_LAYERS, shape.layers) if _offloads(inputs, role) else shape.layers
    wrapped = inputs.mechanics.checkpoints
    if wrapped == "mlp" and not shape.experts:
        rest = layer - (c.FUSED_MLP_COPIES if fused else c.MLP_COPIES) * shape.intermediate
        return _tokens_part(rest * here, step, partial(say, _MLP_CHECKPOINTED, layers=here, each=rest / 1000))
    per = stream * shape.hidden * (c.CHECKPOINT_PIECES if wrapped == "pieces" else 1)
    text = _SOME_CHECKPOINTED if here < shape.layers else _CHECKPOINTED
    if inputs.stream > 1:
        text = _SPLIT_PIECES if wrapped == "pieces" else _SPLIT_CHECKPOINTED
    elif wrapped == "pieces":
        text = _PIECES_CHECKPOINTED
    words = partial(
        say, text, layers=here, stream=stream, hidden=shape.hidden, ways=inputs.stream, pieces=c.CHECKPOINT_PIECES
    )
    return _tokens_part(per * here // inputs.stream, step, words)


def _lora_update(inputs: Inputs, step: Pass, checkpointed: bool) -> list[Part]:
    """The loss, the backward of the last layer, or that of the first with all gradients there."""
    kept = lora.kept_part(inputs, step, checkpointed)
    working = [lora.working_part(inputs, step), lora.scores_part(inputs, step)] if checkpointed else []
    working.append(lora.unpacked_part(inputs))
    instants = [
        Instant("loss", (kept, *_lora_head(inputs, step, updating=True))),
        Instant("backward", (kept, *working)),
        Instant("end", (lora.gradients_part(inputs), *working)),
    ]
    return _fullest(instants)


def _lora_scoring(inputs: Inputs, step: Pass) -> list[Part]:
    fullest = max(_lora_head(inputs, step, updating=False), [lora.forward_part(inputs, step)], key=total)
    return [*lora.casts_parts(inputs), *fullest]


def _lora_head(inputs: Inputs, step: Pass, *, updating: bool) -> list[Part]:
    """Hidden states and one tile of logits, or where the framework makes them whole, all logits."""
    if inputs.mechanics.logits_tile_bytes:
        return [lora.hidden_part(inputs, step), lora.tile_part(inputs, step)]
    return [logits_part(inputs, step, updating=updating), *(lost_logits(inputs, step) if updating else [])]


def _megatron_update(inputs: Inputs, split: megatron.Split, step: Pass, role: Role) -> list[Part]:
    kept, working = megatron.update_activations(inputs.run, inputs.shape, split, step)
    loss = [kept, megatron.buffers_part(inputs.shape)]
    if role == "actor":
        per, _ = logits_bytes(inputs, step, updating=True)
        loss.append(megatron.logits_part(inputs.shape, split, step, per, inputs.run))
    return _fullest(
        [Instant("loss", tuple(loss)), Instant("backward", (kept, working, megatron.buffers_part(inputs.shape)))]
    )


def _megatron_scoring(inputs: Inputs, split: megatron.Split, step: Pass, with_logits: bool) -> list[Part]:
    layer = [megatron.scoring_activations(inputs.run, inputs.shape, split, step), megatron.buffers_part(inputs.shape)]
    per, _ = logits_bytes(inputs, step, updating=False)
    head = [megatron.logits_part(inputs.shape, split, step, per, inputs.run), megatron.buffers_part(inputs.shape)]
    return max(layer, head, key=total) if with_logits else layer


def _fullest(instants: list[Instant]) -> list[Part]:
    """The parts of the instant that is expected to be fullest; its high covers what any other instant might reach."""
    chosen = max(instants, key=lambda instant: total(instant.parts))
    parts = list(chosen.parts)
    most = max(instants, key=lambda instant: sum(p.high for p in instant.parts))
    beyond = sum(p.high for p in most.parts) - sum(p.high for p in parts)
    if beyond > 0:
        last = parts[-1]
        words = partial(_at_most, last, _AT_MOST[most.name])
        parts[-1] = replace(last, high=last.high + beyond, words=words)
    return parts


def _at_most(last: Part, text: str) -> str:
    return say(text, formula=last.formula)


def scoring_parts(inputs: Inputs, step: Pass, *, with_logits: bool = True) -> list[Part]:
    """Activations, logits and gathered units of a pass without gradients."""
    if inputs.by_tensor:
        return _lora_scoring(inputs, step)
    if inputs.split is not None:
        return _megatron_scoring(inputs, inputs.split, step, with_logits)
    inputs = of_rank(inputs)
    shape, stream = inputs.shape, stream_bytes(inputs)
    width = shape.experts_per_token * shape.expert_intermediate if shape.experts else shape.intermediate
    layer = round(c.FORWARD_HIDDEN * shape.hidden * stream / c.BF16 / inputs.stream) + c.FORWARD_MLP * width
    working = _tokens_part(layer, step, partial(say, _FORWARD, each=layer / 1000))
    hidden = _tokens_part(c.BF16 * shape.hidden, step, partial(say, _HIDDEN, hidden=shape.hidden))
    gathered = gathered_units(inputs, backward=False)
    head = [hidden, *weights_at_loss(inputs, everything=True)]
    if with_logits:
        head.append(logits_part(inputs, step, updating=False))
    return max(head, [working, *gathered], key=total)


def _lost_behind(kept: Part) -> list[Part]:
    """Segments that layer inputs were cut from and that no larger temporary can use again."""
    size = (c.LOST_OF_INPUTS - c.FRAGMENTATION) * kept.expected
    words = partial(_behind, kept.expected)
    return [part("fragmentation", size, words, low=0, high=size * c.LOST_HIGH, basis="estimated")]


def _behind(kept: int) -> str:
    return say("torch's segments: {part:g} of {kept} of layer inputs", part=c.LOST_OF_INPUTS, kept=show_bytes(kept))


def _tokens_part(per_token: int, step: Pass, what: Words) -> Part:
    return part(
        "activations",
        per_token * step.tokens,
        partial(tokens_words, what, step),
        low=per_token * step.low * c.ACTIVATION_LOW,
        high=per_token * step.high * c.ACTIVATION_HIGH,
        basis=step.basis,
    )


def _vision_part(inputs: Inputs, step: Pass, checkpointed: bool) -> Part:
    """The vision tower on one image a sequence; the cap on pixels bounds it, images of usual data sets are smaller.

    A packed row holds several. A frozen tower keeps nothing for backward.
    """
    if not inputs.shape.vision_parameters:
        return part("activations", 0, _no_tower)
    if inputs.run.is_on("actor.freeze_vision"):
        return _frozen_vision(inputs, step)
    cap = inputs.run.number("data.max_pixels") or c.TYPICAL_IMAGE_PIXELS
    expected = min(cap, c.TYPICAL_IMAGE_PIXELS)
    layer = c.BF16 * c.VISION_HIDDEN if checkpointed else c.VISION_KEPT_BYTES
    per_patch = c.VISION_LAYERS * layer + (c.VISION_KEPT_BYTES if checkpointed else 0)
    size = per_patch * step.sequences / c.PATCH_PIXELS
    words = partial(say, _TOWER, images=step.sequences, expected=expected / 1e6, cap=cap / 1e6)
    return part("activations", size * expected, words, low=0, high=size * cap, basis="estimated")


def _no_tower() -> str:
    return say("no vision tower")


def _frozen_vision(inputs: Inputs, step: Pass) -> Part:
    """One layer of a frozen tower over the images of a pass: one a sequence, or half the tokens of a packed row."""
    if inputs.run.number("data.pack_tokens"):
        most = float(c.PATCHES_OF_TOKEN * step.tokens)
        expected, text = most / 2, _FROZEN_TOKENS
    else:
        cap = inputs.run.number("data.max_pixels") or c.TYPICAL_IMAGE_PIXELS
        most = step.sequences * cap / c.PATCH_PIXELS
        expected = step.sequences * min(cap, c.TYPICAL_IMAGE_PIXELS) / c.PATCH_PIXELS
        text = _FROZEN_IMAGES
    high, each = c.VISION_KEPT_BYTES * most, c.VISION_KEPT_BYTES / 1000
    words = partial(say, text, each=each, patches=expected, tokens=step.tokens, images=step.sequences)
    return part("activations", c.VISION_KEPT_BYTES * expected, words, low=0, high=high, basis="estimated")


def _several_passes(inputs: Inputs, step: Pass, role: Role) -> bool:
    """Whether gradients of an earlier pass are there at the loss; DeepSpeed keeps its own all the time."""
    if inputs.trainer not in ("fsdp", "ddp"):
        return True
    if inputs.per.steps_in_backward:
        return False
    passes = inputs.run.number("actor.accumulation")
    held = sequences_held(inputs.run, "actor.mini_batch") or sequences_held(inputs.run)
    known = passes or (held / step.sequences if held else None)
    return known is None or known > 1
