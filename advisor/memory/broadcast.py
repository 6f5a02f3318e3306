"""Flat copies of the weights that DDP's first broadcast leaves in torch's allocator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from advisor.language import say
from advisor.memory import constants as c
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part, total
from advisor.memory.per_parameter import embedding_parameters
from advisor.run.releases import version_in
from advisor.units import show_bytes

_SERVED = ("activations", "logits", "gradients", "optimizer", "buffers", "gathered", "fragmentation")
"""Owners whose tensors come after the broadcast and can take the freed copies' blocks."""


def copies_part(inputs: Inputs, beside: Sequence[Part]) -> list[Part]:
    """What the copies hold beyond `beside`, everything else of a pass; nothing where DDP does not wrap the model.

    DDP sends every weight of rank 0 once, in buckets, two at a time. Before torch 2.8 NCCL's record_stream keeps each
    bucket until the card has sent it, and the host does not wait: most of the weights are there twice, and the freed
    segments stay reserved. Later torch frees a bucket when the next but one is made; the copies of embedding and head
    are then segments that tensors of a pass seldom fit. Segments are given back before the card is full.
    """
    if inputs.trainer != "ddp" or inputs.run.topology.actor_gpus <= 1:
        return []
    two = 0.0 if inputs.expandable else inputs.per.weights * embedding_parameters(inputs.shape) + c.BROADCAST_BUCKET
    everything = c.BROADCAST_IN_FLIGHT * inputs.per.weights * inputs.parameters
    torch = inputs.run.libraries.get("torch")
    if torch is None or not version_in(c.RECORDS_STREAMS, torch):
        words = partial(_copies, two)
        high = two if torch is not None else max(two, everything)
        return [part("fragmentation", two, words, low=0, high=high, basis="estimated")] if high else []
    served = total(p for p in beside if p.owner in _SERVED)
    size = max(two, everything - served)
    words = partial(_copies_used, everything, served)
    if inputs.gpu_bytes is not None:
        size = min(size, max(two, c.GIVEN_BACK_ABOVE * inputs.gpu_bytes - total(beside)))
    return [part("fragmentation", size, words, low=0, high=max(size, everything), basis="estimated", pooled=True)]


def _copies(size: float) -> str:
    return say("torch's segments: flat copies of DDP's first broadcast, {size}", size=show_bytes(size))


def _copies_used(reserved: float, used: int) -> str:
    return say(
        "torch's segments: flat copies of DDP's first broadcast, {reserved} reserved, of which a pass uses {used}",
        reserved=show_bytes(reserved),
        used=show_bytes(used),
    )
