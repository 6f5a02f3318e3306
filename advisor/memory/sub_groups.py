"""ZeRO-3's sub-groups of parameters: their sizes are exact, because they are filled tensor by tensor."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.memory.constants import SUB_GROUP
from advisor.run.run import ModelShape


def sub_group_sizes(shape: ModelShape, ranks: int) -> tuple[int, ...]:
    """Elements that one of `ranks` GPUs may hold of a sub-group of a dense model, without repetitions.

    transformers' Trainer keeps norms and biases, which do not decay, in a group of their own; before it knew a model's
    norms it did not: both are told.
    """
    if shape.experts or shape.per_layer_input:
        return ()
    both = (*sub_groups(shape, ranks), *sub_groups(shape, ranks, only_matrices=True))
    return tuple(dict.fromkeys(both))


def sub_groups(shape: ModelShape, ranks: int, *, only_matrices: bool = False) -> list[int]:
    """Elements on one of `ranks` GPUs of every sub-group: tensors are added in the module's order until sub_group_size
    is reached (deepspeed@edaa722 deepspeed/runtime/zero/stage3.py, _create_fp16_sub_groups)."""
    groups, held = [], 0
    for elements, small in _tensors(shape):
        held += 0 if small and only_matrices else -(-elements // ranks)
        if held >= SUB_GROUP:
            groups.append(held)
            held = 0
    return [*groups, held] if held else groups


def _tensors(shape: ModelShape) -> Iterator[tuple[int, bool]]:
    """Elements of every tensor of the text model in its order, and whether it is a norm or a bias."""
    hidden, queries, keys = shape.hidden, shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    table = shape.vocab * hidden
    projections = ((hidden * queries, queries), (hidden * keys, keys), (hidden * keys, keys))
    norms = [hidden, hidden] + [shape.head_dim] * (2 if shape.head_norm else 0)
    matrices = sum(size for size, _ in projections) + hidden * queries + 3 * hidden * shape.intermediate
    text = shape.parameters - shape.vision_parameters - table * (1 if shape.tied else 2) - hidden
    biased = text - shape.layers * (matrices + sum(norms)) == shape.layers * (queries + 2 * keys)
    yield table, False
    for _ in range(shape.layers):
        for weight, bias in projections:
            yield weight, False
            if biased:
                yield bias, True
        yield hidden * queries, False
        for _ in range(3):
            yield hidden * shape.intermediate, False
        for norm in norms:
            yield norm, True
    yield hidden, True
    if not shape.tied:
        yield table, False
