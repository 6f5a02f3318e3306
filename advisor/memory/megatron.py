"""Megatron's shares: parameters of the fullest rank by tensor, pipeline, context and expert parallel sizes, the
distributed optimizer, and a pass in sequence-parallel layers."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.batches import Pass
from advisor.memory.formula import Words
from advisor.memory.parts import Part, part
from advisor.run.run import ModelShape, Run
from advisor.units import show_params

_BUFFERS = mark("Megatron's communicators, workspaces, buckets")
_BUFFERS_OF_EXPERTS = mark("Megatron's communicators, workspaces, buckets, dispatch of tokens to experts")
_SIZES = ("tensor", "pipeline", "context", "expert", "expert_tensor")


class Split(Struct, frozen=True):
    """Parallel sizes in GPUs, and parameters: on the fullest rank, and its share of the optimizer's states."""

    tensor: int
    pipeline: int
    context: int
    expert: int
    parameters: float
    optimizer: float

    @property
    def words(self) -> str:
        """ "TP 4, PP 1, CP 1, EP 4"."""
        return f"TP {self.tensor}, PP {self.pipeline}, CP {self.context}, EP {self.expert}"


def split_of(run: Run, shape: ModelShape) -> Split | None:
    """The run's split; None where no parallel size is known, so that an even spread is all that can be said."""
    sizes = {name: run.number(f"actor.{name}_parallel") for name in _SIZES}
    if all(size is None for size in sizes.values()):
        return None
    tensor, pipeline, context, expert = (max(1, int(sizes[name] or 1)) for name in _SIZES[:4])
    tensor_of_experts = max(1, int(sizes["expert_tensor"] or (1 if expert > 1 else tensor)))
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
    return Split(tensor, pipeline, context, expert, dense + routed, trained / copies + routed / expert_copies)


def expert_parameters(shape: ModelShape) -> int:
    """Parameters of all routed experts."""
    return shape.layers * shape.experts * 3 * shape.hidden * shape.expert_intermediate


def layer_bytes(shape: ModelShape, split: Split) -> float:
    """Bytes per token that one layer keeps for backward on one rank; sequence parallelism divides the stream, too."""
    heads = c.HEAD_COPIES * shape.heads * shape.head_dim + c.KV_COPIES * shape.kv_heads * shape.head_dim
    if shape.experts:
        pair = c.MEGATRON_MLP * shape.expert_intermediate + c.MEGATRON_PAIR_HIDDEN * shape.hidden
        mlp = float(shape.experts_per_token * pair)
    else:
        mlp = float(c.MEGATRON_MLP * shape.intermediate)
    return (c.MEGATRON_HIDDEN * shape.hidden + heads + mlp) / split.tensor


def update_activations(run: Run, shape: ModelShape, split: Split, step: Pass) -> tuple[Part, Part]:
    """Kept activations, and the layer that is recomputed.

    Under 1F1B the first stage keeps as many micro-batches as there are stages, so the layers of all stages count.
    """
    layer = layer_bytes(shape, split)
    tokens = step.tokens / _context(run, split)
    full = str(run.value("actor.recompute_granularity") or "").lower() == "full" or run.is_on(
        "actor.gradient_checkpointing"
    )
    if full:
        per = c.BF16 * shape.hidden / split.tensor
        kept = _tokens(per * shape.layers, tokens, step, partial(_layer_inputs, shape))
        return kept, _tokens(c.RECOMPUTE_FACTOR * layer, tokens, step, lambda: say("one layer recomputed"))
    return _tokens(
        layer * shape.layers, tokens, step, lambda: say("{count} layers without full recompute", count=shape.layers)
    ), part("activations", 0, lambda: say("nothing recomputed"))


def _layer_inputs(shape: ModelShape) -> str:
    return say("layer inputs: 2 B x {hidden} x {layers} layers", hidden=shape.hidden, layers=shape.layers)


def scoring_activations(run: Run, shape: ModelShape, split: Split, step: Pass) -> Part:
    """One layer without gradients."""
    tokens = step.tokens / _context(run, split)
    return _tokens(c.FORWARD_FACTOR * layer_bytes(shape, split), tokens, step, lambda: say("one layer forward"))


def logits_part(shape: ModelShape, split: Split, step: Pass, per: float, run: Run) -> Part:
    """Logits of this rank's part of the vocabulary."""
    tokens = step.tokens / _context(run, split)
    size = per * shape.vocab / split.tensor * tokens

    def words() -> str:
        return say(
            "{per:g} B x {vocab} / TP {tensor} x {tokens:.0f} tokens ({step})",
            per=per,
            vocab=shape.vocab,
            tensor=split.tensor,
            tokens=tokens,
            step=step.formula,
        )

    return part("logits", size, words, low=size * c.LOGITS_LOW, high=size * c.LOGITS_HIGH, basis=step.basis)


def buffers_part(shape: ModelShape) -> Part:
    """What Megatron holds beside states and activations."""
    words, size, low, high = _BUFFERS, c.MEGATRON, c.MEGATRON_LOW, c.MEGATRON_HIGH
    if shape.experts:
        words = _BUFFERS_OF_EXPERTS
        size, low, high = (
            size + c.MEGATRON_EXPERTS,
            low + c.MEGATRON_EXPERTS_LOW,
            high + c.MEGATRON_EXPERTS_HIGH,
        )
    return part("buffers", size, partial(say, words), low=low, high=high, basis="estimated", pooled=False)


def share_words(per: float, split: Split, *, optimizer: bool) -> str:
    """The arithmetic of a state's share."""
    return say(
        "{per:g} B x {count} parameters, its part of the distributed optimizer ({split})"
        if optimizer
        else "{per:g} B x {count} parameters, the fullest rank ({split})",
        per=per,
        count=show_params(round(split.optimizer if optimizer else split.parameters)),
        split=split.words,
    )


def _context(run: Run, split: Split) -> int:
    """Ranks that share a sequence; a token budget already counts one rank's tokens (verl multiplies it by CP)."""
    return 1 if run.is_on("actor.dynamic_batch") else split.context


def _tokens(per_token: float, tokens: float, step: Pass, words: Words) -> Part:
    size = per_token * tokens
    scale = step.low / max(1, step.tokens), step.high / max(1, step.tokens)
    low, high = size * scale[0] * c.ACTIVATION_LOW, size * scale[1] * c.ACTIVATION_HIGH

    def said() -> str:
        return say(
            "{what}: {each:.0f} kB x {tokens:.0f} tokens ({step})",
            what=words(),
            each=per_token / 1000,
            tokens=tokens,
            step=step.formula,
        )

    return part("activations", size, said, low=low, high=high, basis=step.basis)
