"""What torch's allocator holds beyond what it gave out, where every tensor of a run is known: segments' rounding, and
the layer inputs that are cut out of them."""

from __future__ import annotations

from advisor.language import say
from advisor.memory import constants as c
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part
from advisor.run.run import ModelShape
from advisor.units import show_bytes


def lost_part(inputs: Inputs, kept: int) -> Part:
    """Bytes lost to segments while base weights, adapters and `kept` bytes of layer inputs are on the card."""
    weights = rounding_loss(inputs.shape)
    adapters = c.FP32 * inputs.adapters
    size = weights + c.LOST_OF_INPUTS * kept + c.LOST_OF_ADAPTERS * adapters

    def words() -> str:
        return say(
            "torch's segments: {weights} behind weight matrices, {part:g} of {kept} of layer inputs, "
            "{part_of_adapter:g} of {adapter} of one adapter",
            weights=show_bytes(weights),
            part=c.LOST_OF_INPUTS,
            kept=show_bytes(kept),
            part_of_adapter=c.LOST_OF_ADAPTERS,
            adapter=show_bytes(adapters),
        )

    low, high = size * c.LOST_LOW, size * c.LOST_HIGH
    return part("fragmentation", size, words, low=low, high=high, basis="estimated", pooled=False)


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
    return [*sizes, (mlp, 3 * (layers - shape.wide_layers)), (2 * mlp, 3 * shape.wide_layers)]
