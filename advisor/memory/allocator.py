"""Models torch's CUDA allocator: what it asks the driver for, which tensors a printed "Tried to allocate" can mean, and
what its segments hold beyond what they give out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import add_up, in_bytes, least, most, quantity
from advisor.memory.batches import Pass
from advisor.memory.cells import Cell, cell, total
from advisor.memory.gathered import of_root
from advisor.memory.inputs import Inputs
from advisor.memory.lora import adapter_count
from advisor.rules.functions import version_in
from advisor.run.run import ModelShape
from advisor.units import GIB

_SERVED = ("activations", "logits", "gradients", "optimizer", "buffers", "gathered", "fragmentation")
"""Owners whose tensors come after DDP's broadcast and can take the freed copies' blocks."""


def segment_request(size: int) -> int:
    """Bytes the allocator asks for when it needs a new segment for a tensor of `size` bytes."""
    if size <= c.SMALL_SIZE:
        return c.SMALL_SEGMENT
    if size < c.LARGE_FROM:
        return c.LARGE_SEGMENT
    return -(-size // c.LARGE_ROUND) * c.LARGE_ROUND


def identifies_nothing(tried: int) -> bool:
    """2.00 MiB stands for any tensor up to 1 MiB, 20.00 MiB for any of 1 to 10 MiB: a full card, not a culprit."""
    return tried in (c.SMALL_SEGMENT, c.LARGE_SEGMENT)


def can_mean(tried: int, size: int) -> bool:
    """Whether a tensor of `size` bytes prints as `tried` (which was rounded to two decimals of MiB or GiB)."""
    if size <= 0:
        return False
    half = c.PRINT_STEP_GIB if tried >= GIB else c.PRINT_STEP_MIB
    return abs(segment_request(size) - tried) <= half + 1


def elements_window(tried: int, width: int) -> tuple[int, int]:
    """Fewest and most rows of `width` bytes whose tensor prints as `tried`."""
    half = c.PRINT_STEP_GIB if tried >= GIB else c.PRINT_STEP_MIB
    least = max(1, -(-round(tried - half - c.LARGE_ROUND + 1) // width))
    return least, max(least, int(tried + half) // width)


def lost_to_segments(inputs: Inputs, kept: int) -> Cell:
    """Bytes lost to segments beside base weights, adapters and `kept` bytes of layer inputs, all tensors known."""
    parts = [
        in_bytes("behind weight matrices", rounding_loss(inputs.shape), basis="estimated"),
        c.LOST_OF_INPUTS * in_bytes("of layer inputs", min(kept, inputs.gpu_bytes or kept)),
        c.LOST_OF_ADAPTERS * c.IN_FP32 * adapter_count(inputs),
    ]
    return cell("fragmentation", add_up(parts).spread(c.LOST_LOW, c.LOST_HIGH), mark("torch's segments"), pooled=False)


@lru_cache(maxsize=64)
def rounding_loss(shape: ModelShape) -> int:
    """Bytes of segments behind the base's matrices: from 10 MiB up each has its own, rounded up to 2 MiB; smaller ones
    share 20 MiB; those up to 1 MiB are packed without loss."""
    lost = 0.0
    for size, count in _matrices(shape):
        if size >= c.LARGE_FROM:
            lost += count * (-(-size // c.LARGE_ROUND) * c.LARGE_ROUND - size)
        elif size > c.SMALL_SIZE:
            fitting = c.LARGE_SEGMENT // size
            lost += count * (c.LARGE_SEGMENT - fitting * size) / fitting
    return round(lost)


def _matrices(shape: ModelShape) -> list[tuple[int, int]]:
    """Bytes in bf16 and number of the base's large matrices; experts are stacked, gate and up in one."""
    hidden, layers = shape.hidden, shape.layers
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    sizes = [
        (c.BF16 * hidden * queries, 2 * layers),
        (c.BF16 * hidden * keys, 2 * (layers - shape.shared_kv_layers)),
        (c.BF16 * shape.vocab * hidden, 1 if shape.tied else 2),
    ]
    if shape.experts:
        expert = c.BF16 * shape.experts * shape.expert_intermediate * hidden
        return [*sizes, (2 * expert, layers), (expert, layers)]
    mlp = c.BF16 * hidden * shape.intermediate
    return [*sizes, (mlp, shape.mlp_matrices * (layers - shape.wide_layers)), (2 * mlp, 3 * shape.wide_layers)]


def given_back(inputs: Inputs, cells: Sequence[Cell]) -> list[Cell]:
    """The same cells; of segments that nothing uses only as much as torch keeps on a GPU that fills up. Its allocator
    frees them before it fails, so they never make a run die."""
    if inputs.gpu_bytes is None:
        return list(cells)
    held = total(each for each in cells if each.kind != "unused")
    room = quantity("", c.GIVEN_BACK_ABOVE, "%") * in_bytes("of the GPU", inputs.gpu_bytes)
    kept: list[Cell] = []
    for each in cells:
        if each.kind == "unused" and held + max(each.at_most, each.by_data[1]) > room.value:
            each = replace(each, amount=least(each.amount, most(0, room - in_bytes("held", held))))
        held += each.expected if each.kind == "unused" else 0
        kept.append(each)
    return kept


def left_by_other_lengths(inputs: Inputs, step: Pass, cells: Sequence[Cell]) -> list[Cell]:
    """Segments that passes over answers of other lengths left and that this one's tensors do not fit: torch keeps them,
    a card shows them as used, and others on it cannot have them; torch itself gives them back before it fails.

    None where segments can grow, where every pass has one length, where they are counted block by block, and where a
    GPU ran out: what a change saves is then held against what was needed.
    """
    ends = step.tokens.by_data
    counted = inputs.by_tensor or any(each.kind == "unused" for each in cells)
    varied = inputs.run.recipe.answers == "generated" and ends is not None and ends[0] < ends[1]
    if counted or inputs.expandable or inputs.ran_out or not varied:
        return []
    given = add_up(each.amount for each in cells if each.pooled and each.kind != "unused").called("allocated by torch")
    words = mark("torch's segments: left by passes of other lengths, given back before the GPU is full")
    return [cell("fragmentation", c.LEFT_BY_OTHER_LENGTHS * given, words, kind="unused")]


def broadcast_copies(inputs: Inputs, beside: Sequence[Cell]) -> list[Cell]:
    """Flat copies of the weights that DDP's first broadcast leaves in torch's allocator, beyond `beside`, everything
    else of a pass; nothing where DDP does not wrap the model.

    DDP sends every weight of rank 0 once, in buckets, two at a time. Before torch 2.8 NCCL's record_stream keeps each
    bucket until the GPU has sent it, and the host does not wait: most of the weights are there twice, and the freed
    segments stay reserved. Later torch frees a bucket when the next but one is made; the copies of embedding and head
    are then segments that tensors of a pass seldom fit. Segments are given back before the GPU is full.
    """
    if inputs.trainer != "ddp" or inputs.run.topology.actor_gpus <= 1:
        return []
    words = mark("torch's segments: flat copies of DDP's first broadcast")
    two = in_bytes("", 0, basis="estimated")
    if not inputs.expandable:
        two = inputs.state("weights") * of_root(inputs.shape) + c.BROADCAST_BUCKET
    reserved = c.BROADCAST_IN_FLIGHT * inputs.state("weights") * inputs.parameters
    torch = inputs.run.libraries.get("torch")
    if torch is None or not version_in(c.RECORDS_STREAMS, torch):
        bounded = two.within(0, two if torch is not None else most(two, reserved))
        return [cell("fragmentation", bounded, words)] if bounded.high else []
    used = in_bytes("used again", total(each for each in beside if each.owner in _SERVED))
    size = most(two, reserved - used)
    if inputs.gpu_bytes is not None:
        room = quantity("", c.GIVEN_BACK_ABOVE, "%") * in_bytes("of the GPU", inputs.gpu_bytes)
        size = least(size, most(two, room - in_bytes("held", total(beside))))
    return [cell("fragmentation", size.within(0, reserved), words)]
