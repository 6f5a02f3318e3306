"""Counts what a pass needs beside the states: kept activations, logits, gathered units; its fullest instant decides."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory import lora, megatron
from advisor.memory.amount import Amount, in_bytes, quantity
from advisor.memory.batches import Pass, TrainedRole, sequences_held, setting_of
from advisor.memory.cells import Cell, cell, fullest, total
from advisor.memory.gathered import (
    cast_without_gradients,
    gathered_units,
    head_gradient,
    root_ending,
    stream_bytes,
    table_ending,
    weights_at_loss,
)
from advisor.memory.inputs import Inputs, of_rank
from advisor.memory.layer import (
    backward_of_token,
    forward_of_token,
    kept_of_token,
    mlp_copies,
    of_each,
    selective_of_token,
)
from advisor.memory.logits import logits_bytes, logits_cell, lost_logits

_ON_HOST: dict[TrainedRole, str] = {"actor": mark("actor's layer inputs"), "critic": mark("critic's layer inputs")}
_CHECKPOINTED = {
    "layer": mark("layer inputs of checkpointed layers"),
    "pieces": mark("inputs of checkpointed pieces of layers"),
    "mlp": mark("activations of layers, only the MLP checkpointed"),
    "some": mark("layer inputs of checkpointed layers, the others rest in host RAM"),
}


def offloaded_activations(inputs: Inputs, role: TrainedRole) -> list[Cell]:
    """Layer inputs of one pass of every training GPU of a node that rest in host RAM."""
    step = inputs.update if role == "actor" else inputs.critic
    checkpointed = setting_of(inputs.run, role, "gradient_checkpointing") is True
    layers = inputs.shape.layers - c.OFFLOADED_LAYERS
    moved = checkpointed and setting_of(inputs.run, role, "activation_offload") is True
    if not moved or inputs.by_tensor or inputs.split is not None or layers < 1:
        return []
    each = of_each(stream_bytes(inputs), "hidden", inputs.shape.hidden) * quantity("layers", layers)
    size = (each * step.tokens * inputs.here).spread(high=c.PINNED_HIGH).rests_on("estimated")
    return [cell("offloaded_activations", size, _ON_HOST[role])]


def update_cells(inputs: Inputs, step: Pass, role: TrainedRole = "actor", gradients: Sequence[Cell] = ()) -> list[Cell]:
    """Activations, logits (the actor's) and gathered units of a role's update, at its fullest instant. `gradients` are
    there at the loss only from the second pass of a step on."""
    checkpointed = setting_of(inputs.run, role, "gradient_checkpointing") is True
    if inputs.by_tensor:
        towers = _vision(inputs, step, checkpointed) if inputs.mechanics.frozen_tower_keeps else []
        return [*gradients, *lora.update_cells(inputs, step, checkpointed), *towers]
    if inputs.split is not None:
        return [*gradients, *_megatron_update(inputs, inputs.split, step, role)]
    inputs = of_rank(inputs)
    shape = inputs.shape
    stream = stream_bytes(inputs)
    fused = lora.is_fused(inputs)
    layer = kept_of_token(shape, inputs.stream, fused)
    if stream == c.FP32:
        layer = layer + of_each(c.AUTOCAST_COPIES, "hidden", shape.hidden)
    layers = quantity("layers", shape.passed)
    if checkpointed:
        kept = _checkpoints(inputs, step, role, layer, fused=fused)
    elif str(inputs.run.value("actor.recompute_granularity") or "").lower() == "selective":
        kept = _tokens(selective_of_token(shape) * layers, step, mark("activations of layers, saved selectively"))
    else:
        kept = _tokens(layer * layers, step, mark("activations of layers, no checkpointing"))
    scores = _eager_scores(inputs, step, 1, c.EAGER_SCORES)
    if not checkpointed:
        scores += _eager_scores(inputs, step, shape.passed, c.EAGER_KEPT)
    extra = backward_of_token(shape)
    working = _tokens(layer + extra if checkpointed else extra, step, mark("one layer in backward"))
    norm = of_each(c.LAST_NORM, "hidden", shape.hidden) / quantity("GPUs", inputs.stream)
    last = _tokens(norm, step, mark("last norm and the head's input"))
    images = _vision(inputs, step, checkpointed)
    lost: list[Cell] = []
    if checkpointed and not inputs.expandable:  # segments that layer inputs were cut from, and no temporary can use
        size = (c.LOST_OF_INPUTS - c.FRAGMENTATION) * kept.amount.called("of layer inputs")
        words = mark("torch's segments that layer inputs were cut from")
        lost = [cell("fragmentation", size.within(low=0, high=size.value * c.LOST_HIGH), words)]
    several = _several_passes(inputs, step)
    piled = (_whole_gradients(inputs, role) if several else []) or list(gradients)
    sure = piled if several else []
    begun = piled if several or inputs.trainer != "ddp" else head_gradient(inputs)
    loss = [*sure, kept, *scores[1:], *images, last, *lost, *weights_at_loss(inputs, everything=not checkpointed)]
    if role == "actor":
        loss += [logits_cell(inputs, step, updating=True), *lost_logits(inputs, step)]
    layer_at_work = [working, *scores, *gathered_units(inputs, backward=True)]
    backward = [*begun, kept, *images, *lost, *layer_at_work]
    first_layer = [*piled, *layer_at_work]  # the inputs of all others are gone, and the gradients of all are there
    ending = [*gradients, *root_ending(inputs, bool(sure)), *table_ending(inputs, bool(sure))]
    return fullest({"loss": loss, "backward": backward, "first_layer": first_layer, "end": ending})


def _checkpoints(inputs: Inputs, step: Pass, role: TrainedRole, layer: Amount, *, fused: bool) -> Cell:
    """What checkpointed layers keep: their inputs, or those of their pieces; all but the MLP's where only it is one."""
    shape, wrapped = inputs.shape, inputs.mechanics.checkpoints
    moved = setting_of(inputs.run, role, "activation_offload") is True  # to host RAM on the way (verl and EasyR1)
    here = min(c.OFFLOADED_LAYERS, shape.passed) if moved else shape.passed
    layers = quantity("layers", here)
    if wrapped == "mlp" and not shape.experts:
        mlp = of_each(mlp_copies(shape, fused), "MLP width", shape.intermediate)
        return _tokens((layer - mlp) * layers, step, _CHECKPOINTED["mlp"])
    per = of_each(stream_bytes(inputs), "hidden", shape.hidden)
    if wrapped == "pieces":
        per = per * quantity("pieces a layer", c.CHECKPOINT_PIECES)
    some = here < shape.passed and wrapped == "layer" and inputs.stream == 1
    kind = "some" if some else "pieces" if wrapped == "pieces" else "layer"
    per = per * layers / quantity("tensor-parallel GPUs", inputs.stream)
    return _tokens(per, step, _CHECKPOINTED[kind])


def _megatron_update(inputs: Inputs, split: megatron.Split, step: Pass, role: TrainedRole) -> list[Cell]:
    kept, working = megatron.update_activations(inputs.run, inputs.shape, split, step)
    buffers = megatron.buffers_cell(inputs.shape)
    loss = [*kept, buffers]
    if role == "actor":
        per, _ = logits_bytes(inputs, step, updating=True)
        loss.append(megatron.logits_cell(inputs.shape, split, step, per, inputs.run))
    return fullest({"loss": loss, "backward": [*kept, *working, buffers]})


def scoring_cells(inputs: Inputs, step: Pass) -> list[Cell]:
    """Activations, logits and gathered units of a pass without gradients."""
    if inputs.by_tensor:
        return lora.scoring_cells(inputs, step)
    if inputs.split is not None:
        split, buffers = inputs.split, megatron.buffers_cell(inputs.shape)
        per, _ = logits_bytes(inputs, step, updating=False)
        passing = megatron.scoring_activations(inputs.run, inputs.shape, split, step)
        made = megatron.logits_cell(inputs.shape, split, step, per, inputs.run)
        return max([passing, buffers], [made, buffers], key=total)
    inputs = of_rank(inputs)
    layer = forward_of_token(inputs.shape, stream_bytes(inputs), inputs.stream)
    hidden = _tokens(of_each(c.BF16, "hidden", inputs.shape.hidden), step, mark("hidden states"))
    logits = logits_cell(inputs, step, updating=False)
    head = [hidden, *cast_without_gradients(inputs), logits]
    working = [_tokens(layer, step, mark("one layer forward")), *gathered_units(inputs, backward=False)]
    working += _eager_scores(inputs, step, 1, c.EAGER_SCORES)
    return max(head, working, key=total)


def _tokens(per_token: Amount, step: Pass, words: str) -> Cell:
    return cell("activations", (per_token * step.tokens).spread(c.ACTIVATION_LOW, c.ACTIVATION_HIGH), words)


def _eager_scores(inputs: Inputs, step: Pass, layers: int, size: int) -> list[Cell]:
    """Attention scores of so many layers, `size` bytes each; [] where a fused kernel never has them."""
    if inputs.run.value("actor.flash_attention") is not False:
        return []
    heads = quantity("heads", inputs.shape.heads, basis=inputs.shape.basis)
    scores = quantity("layers", layers) * heads * step.tokens * quantity("tokens of the keys", step.length)
    amount = in_bytes("", size) * scores
    if layers == 1:
        amount = amount.within(low=amount.low, high=amount.high * c.EAGER_HIGH / size)
        return [cell("activations", amount, mark("attention scores of one layer, attention is not fused"))]
    return [cell("activations", amount, mark("attention scores of all layers, attention is not fused"))]


def _vision(inputs: Inputs, step: Pass, checkpointed: bool) -> list[Cell]:
    """The vision tower on one image a sequence; the cap on pixels bounds it, images of usual data sets are smaller.

    A packed row holds several. A frozen tower keeps nothing for backward, unless the inputs of its checkpointed layers
    are made to need gradients: one layer over the images of a pass, one a sequence, or half the tokens of a packed row.
    """
    if not inputs.shape.vision_parameters or inputs.run.topology.process_gpus > 1:
        return []  # laid over several cards, the tower is on the first, and the logits are on the last
    checkpointed = inputs.run.is_on("actor.vision_checkpointing", checkpointed)
    frozen = inputs.run.is_on("actor.freeze_vision") and not (inputs.mechanics.frozen_tower_keeps and checkpointed)
    layer = c.BF16 * c.VISION_HIDDEN if checkpointed else c.VISION_KEPT_BYTES
    per_patch = c.VISION_LAYERS * layer + (c.VISION_KEPT_BYTES if checkpointed else 0)
    per_patch = c.VISION_KEPT_BYTES if frozen else per_patch
    if inputs.run.is_on("actor.freeze_vision") and inputs.run.number("data.pack_tokens"):
        of_tokens = quantity("patches a token", c.PATCHES_OF_TOKEN) * step.tokens.called("tokens", "")
        most = in_bytes("of a patch", per_patch) * of_tokens
        size = most * quantity("of the tokens are of images", c.IMAGE_PART, "%", basis="estimated")
        moved = size.moved(0, most, mark("the sizes of images"))
        return [cell("activations", moved, mark("a frozen vision tower, one layer"))]
    per_image = in_bytes("of a patch", per_patch) * quantity("images", step.sequences)
    cap = inputs.run.number("data.max_pixels") or c.TYPICAL_IMAGE_PIXELS
    typical, widest = (
        per_image * quantity("pixels", pixels, basis="estimated") / quantity("pixels a patch", c.PATCH_PIXELS)
        for pixels in (min(cap, c.TYPICAL_IMAGE_PIXELS), cap)
    )
    words = mark("a frozen vision tower, one layer") if frozen else mark("vision tower")
    return [cell("activations", typical.moved(0, widest, mark("the sizes of images")), words)]


def _whole_gradients(inputs: Inputs, role: TrainedRole) -> list[Cell]:
    """Gradients that FSDP reduces after the last pass only: until then every card holds those of the whole model."""
    spread = inputs.trainer == "fsdp" and inputs.shards > 1 and not inputs.adapters
    if not spread or not inputs.run.is_on("actor.whole_gradients"):
        return []
    size = inputs.mechanic("whole_gradient_bytes") * inputs.of(role).trained
    return [cell("gradients" if role == "actor" else "critic", size, mark("of the whole model, until the last pass"))]


def _several_passes(inputs: Inputs, step: Pass) -> bool:
    """Whether gradients of an earlier pass are there at the loss; DeepSpeed keeps its own all the time."""
    if inputs.trainer not in ("fsdp", "ddp"):
        return True
    if inputs.per.steps_in_backward:
        return False
    passes = inputs.run.number("actor.accumulation")
    held = sequences_held(inputs.run, "actor.mini_batch") or sequences_held(inputs.run)
    known = passes or (held / step.sequences if held else None)
    return known is None or known > 1
