"""Tensor parallelism inside an FSDP trainer (a device mesh of two dimensions): what one rank computes of the model."""

from __future__ import annotations

from msgspec.structs import replace

from advisor.memory.inputs import Inputs
from advisor.run.run import ModelShape


def of_rank(inputs: Inputs) -> Inputs:
    """The same inputs with the matrices of one tensor-parallel rank; they themselves where nothing splits matrices.

    States are not concerned: FSDP spreads them over both dimensions of the mesh alike.
    """
    return inputs if inputs.tensor == 1 else replace(inputs, shape=shape_of_rank(inputs.shape, inputs.tensor))


def shape_of_rank(shape: ModelShape, ways: int) -> ModelShape:
    """Heads, MLP, experts and vocabulary split `ways` ways, the stream whole; its parameters are those that FSDP then
    gathers (torch's ColwiseParallel and RowwiseParallel: every matrix has one dimension cut)."""
    return replace(
        shape,
        heads=-(-shape.heads // ways),
        kv_heads=-(-shape.kv_heads // ways),
        intermediate=-(-shape.intermediate // ways),
        expert_intermediate=-(-shape.expert_intermediate // ways),
        vocab=-(-shape.vocab // ways),
        parameters=-(-shape.parameters // ways),
        vision_parameters=-(-shape.vision_parameters // ways),
    )
