"""Counts Megatron's shares: parameters of the fullest rank by tensor, pipeline, context and expert parallel sizes, the
distributed optimizer, and a pass in sequence-parallel layers."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import Amount, add_up, quantity
from advisor.memory.batches import Pass
from advisor.memory.cells import Cell, Note, cell, note
from advisor.memory.layer import mlp_width, no_logits, of_each
from advisor.run.run import ModelShape, Run

_SIZES = ("tensor", "pipeline", "context", "expert", "expert_tensor")


class Split(Struct, frozen=True):
    """Parallel sizes in GPUs, and parameters: on the fullest rank, and its share of the optimizer's states."""

    tensor: int
    pipeline: int
    context: int
    expert: int
    parameters: float
    optimizer: float
    routed: float = 0.0
    """Of the parameters, those of experts."""

    def note(self, words: str) -> Note:
        """`words` (marked), and the sizes as `split`: "TP 4, PP 1, CP 1, EP 4"."""
        sizes = f"TP {self.tensor}, PP {self.pipeline}, CP {self.context}, EP {self.expert}"
        return note(words, split=sizes)


def split_of(run: Run, shape: ModelShape) -> Split | None:
    """The run's split; None where no parallel size is known, so that an even spread is all that can be said."""
    sizes = {name: run.number(f"actor.{name}_parallel") for name in _SIZES}
    if all(size is None for size in sizes.values()):
        return None
    tensor, pipeline, context, expert = (max(1, int(sizes[name] or 1)) for name in _SIZES[:4])
    tensor_of_experts = max(1, int(sizes["expert_tensor"] or tensor))  # Megatron-core's default
    world = max(1, run.topology.actor_gpus)
    experts = expert_parameters(shape)
    table = shape.vocab * shape.hidden
    tables = table * (1 if shape.tied else 2)
    layers = max(0, shape.parameters - shape.vision_parameters - experts - tables) / pipeline
    ends = tables if pipeline == 1 else table
    dense = (layers + ends) / tensor + shape.vision_parameters
    trained = dense - (shape.vision_parameters if run.is_on("actor.freeze_vision") else 0)
    routed = experts / (expert * tensor_of_experts * pipeline)
    copies = max(1, world // (tensor * pipeline))
    expert_copies = max(1, world // (expert * tensor_of_experts * pipeline))
    return Split(tensor, pipeline, context, expert, dense + routed, trained / copies + routed / expert_copies, routed)


def expert_parameters(shape: ModelShape) -> int:
    """Parameters of all routed experts."""
    return (shape.layers - shape.dense_layers) * shape.experts * 3 * shape.hidden * shape.expert_intermediate


@lru_cache(maxsize=16)
def _layer_of_token(shape: ModelShape, tensor: int, stream: int) -> Amount:
    """Bytes per token that one layer keeps for backward on one rank; `stream`: GPUs that sequence parallelism divides
    the stream among."""
    norms = of_each(c.MEGATRON_HIDDEN, "hidden", shape.hidden) / quantity("GPUs", stream)
    parts = [
        of_each(c.HEAD_COPIES, "query width", shape.heads * shape.head_dim),
        of_each(c.KV_COPIES, "key width", shape.kv_heads * shape.head_dim),
        of_each(c.MEGATRON_MLP, "MLP width", mlp_width(shape)),
    ]
    if shape.experts:
        pairs = of_each(c.MEGATRON_PAIR_HIDDEN, "hidden", shape.hidden)
        parts.append(pairs * quantity("experts of a token", shape.experts_per_token))
    divided = add_up(parts) / quantity("tensor-parallel GPUs", tensor)
    return (norms + divided).called("of a token in a layer").rests_on(shape.basis)


def _stream(run: Run, split: Split) -> int:
    """GPUs among which the stream between the layers is divided: Megatron's sequence parallelism."""
    return split.tensor if run.is_on("actor.tensor_splits_stream", True) else 1


def update_activations(run: Run, shape: ModelShape, split: Split, step: Pass) -> tuple[list[Cell], list[Cell]]:
    """Kept activations, and the layer that is recomputed. Under 1F1B the first stage keeps as many micro-batches as
    there are stages, so the layers of all stages count."""
    stream = _stream(run, split)
    layer = _layer_of_token(shape, split.tensor, stream)
    tokens, layers = _tokens(run, split, step), quantity("layers", shape.layers)
    granularity = str(run.value("actor.recompute_granularity") or "").lower()
    if granularity != "full" and not run.is_on("actor.gradient_checkpointing"):
        return [_activations(layer * layers * tokens, mark("layers without full recompute"))], []
    each = of_each(c.BF16, "hidden", shape.hidden) / quantity("tensor-parallel GPUs", stream)
    again = quantity("of what it keeps", c.RECOMPUTE_FACTOR, "%") * layer
    at_once = min(max(1, int(run.number("actor.recompute_layers") or 1)), shape.layers)
    if str(run.value("actor.recompute_method") or "").lower() == "block":
        # of every stage so many layers; its others keep all they have
        inputs = min(at_once * split.pipeline, shape.layers)
        whole = _activations(
            layer * quantity("layers", shape.layers - inputs) * tokens, mark("layers that are not recomputed")
        )
        kept = _activations(each * quantity("layers", inputs) * tokens, mark("layer inputs"))
        return [kept, whole], [_activations(again * tokens, mark("one layer recomputed"))]
    chunks = quantity("layers", -(-shape.layers // at_once)) if at_once > 1 else layers
    kept = _activations(each * chunks * tokens, mark("layer inputs"))
    if at_once == 1:
        return [kept], [_activations(again * tokens, mark("one layer recomputed"))]
    several = _activations(again * quantity("layers", at_once) * tokens, mark("layers recomputed together"))
    return [kept], [several]


def _activations(size: Amount, words: str) -> Cell:
    return cell("activations", size.spread(c.ACTIVATION_LOW, c.ACTIVATION_HIGH), words)


def scoring_activations(run: Run, shape: ModelShape, split: Split, step: Pass) -> Cell:
    """One layer without gradients."""
    part = quantity("of what it keeps", c.FORWARD_FACTOR, "%")
    layer = _layer_of_token(shape, split.tensor, _stream(run, split))
    return _activations(part * layer * _tokens(run, split, step), mark("one layer forward"))


def logits_cell(shape: ModelShape, split: Split, step: Pass, per: Amount, run: Run) -> Cell:
    """Logits of this rank's part of the vocabulary, of one chunk where the head is computed in chunks."""
    if run.recipe.head != "vocabulary":
        return no_logits()
    vocab = quantity("vocabulary", shape.vocab, basis=shape.basis) / quantity("tensor-parallel GPUs", split.tensor)
    tokens = _tokens(run, split, step).called("tokens", "")
    if run.is_on("actor.fused_loss") and tokens.value > c.FUSED_CHUNK_TOKENS:
        tokens = quantity("tokens", c.FUSED_CHUNK_TOKENS, basis=tokens.basis)
    return cell("logits", (per * vocab * tokens).spread(c.LOGITS_LOW, c.LOGITS_HIGH))


def buffers_cell(shape: ModelShape) -> Cell:
    """What Megatron holds beside states and activations."""
    size = c.MEGATRON + c.MEGATRON_EXPERTS if shape.experts else c.MEGATRON
    return cell("buffers", size, mark("Megatron's communicators, workspaces, buckets"), pooled=False)


def _tokens(run: Run, split: Split, step: Pass) -> Amount:
    """Tokens of a rank: ranks may share a sequence; a token budget already counts one rank's (verl multiplies it)."""
    if run.is_on("actor.dynamic_batch"):
        return step.tokens
    return step.tokens / quantity("context-parallel GPUs", split.context)
