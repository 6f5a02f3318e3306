"""The rollout engine's budget on one card: its share (weights, profiling pass, KV cache), and what lies outside."""

from __future__ import annotations

from functools import partial

from msgspec import Struct

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.formula import Words
from advisor.memory.inputs import Inputs
from advisor.memory.megatron import expert_parameters
from advisor.memory.parts import Part, part
from advisor.memory.share import asleep_part, cache_part, rest_parts, weights_bytes
from advisor.units import show_bytes, show_params
from advisor.words import Basis

_ALL_GATHERED = mark("all weights gathered for generation: 2 B x {count}")


class Engine(Struct, frozen=True):
    """One awake engine's parts on one card."""

    weights: Part
    cache: Part
    rest: tuple[Part, ...]

    def awake(self) -> list[Part]:
        """Everything an awake engine holds."""
        return [self.weights, self.cache, *self.rest]


def share_of(inputs: Inputs) -> tuple[float, Basis, Words]:
    """The engine's share of the card, how it is known, and in words."""
    known = inputs.run.number("rollout.memory_share")
    if known is None:
        return c.ASSUMED_SHARE, "estimated", _assumed_share
    knob = inputs.run.knobs["rollout.memory_share"]
    return known, knob.basis, lambda: say("share {share:g}", share=known)


def _assumed_share() -> str:
    return say("share {share:g} (vLLM's own default, assumed)", share=c.ASSUMED_SHARE)


def engine_of(inputs: Inputs, beside: int) -> Engine:
    """The engine when it starts or is awake; `beside` is what others hold on the card when it measures free memory."""
    share, basis, words = share_of(inputs)
    if inputs.mechanics.engine_outside_bytes and inputs.gpu_bytes is not None:
        return _counted(inputs, inputs.gpu_bytes, share, words)
    parallel = max(1, inputs.run.topology.tensor_parallel)
    weights = weights_part(inputs, parallel)
    graphs = _graphs(inputs)
    if inputs.gpu_bytes is None:
        return Engine(weights, _one_sequence(inputs), (graphs,))
    card = inputs.gpu_bytes
    if inputs.mechanics.engine_share_of == "free":
        free = max(0, card - beside - weights.expected)
        of_free = _of_free(words, free)
        cache = _cache(inputs, share * free, of_free, basis, 0)
        return Engine(weights, cache, (graphs,))
    profile = _profile(inputs, parallel)
    static = str(inputs.run.value("rollout.engine") or "").lower() == "sglang"
    budget = share * card
    room = budget - weights.expected - (0 if static else profile.expected)
    # vLLM charges what else is on the card at start to its own share, so the cache may be smaller by that
    charged = min(beside, max(0, round(room)))
    cache = _cache(inputs, room, _of_card(words, card, None if static else profile.expected), basis, charged)
    return Engine(weights, cache, (profile, graphs))


def _of_free(share: Words, free: int) -> Words:
    return lambda: say("{share} of {free} free", share=share(), free=show_bytes(free))


def _of_card(share: Words, card: int, profile: int | None) -> Words:
    """The share less what is taken out of it; `profile`: bytes of the profiling pass, None where it takes none."""
    if profile is None:
        return lambda: say("{share} of {card} - engine weights", share=share(), card=show_bytes(card))
    return lambda: say(
        "{share} of {card} - engine weights - {profile} activations of its profiling pass",
        share=share(),
        card=show_bytes(card),
        profile=show_bytes(profile),
    )


def weights_part(inputs: Inputs, parallel: int) -> Part:
    """The engine's weights on one card: over its tensor-parallel ranks, experts over its expert-parallel ones."""
    experts = expert_parameters(inputs.shape)
    wide = max(parallel, int(inputs.run.number("rollout.expert_parallel") or 1))
    size = c.BF16 * ((inputs.parameters - experts) / parallel + experts / wide)
    apart = wide if experts and wide > parallel else None
    words = partial(_weights_words, inputs.parameters, parallel, apart)
    return part("engine_weights", size, words, basis=inputs.basis, pooled=False)


def _weights_words(parameters: int, parallel: int, experts: int | None) -> str:
    if experts is None:
        return say("2 B x {count} parameters / TP {parallel}", count=show_params(parameters), parallel=parallel)
    return say(
        "2 B x {count} parameters / TP {parallel}, experts / EP {experts}",
        count=show_params(parameters),
        parallel=parallel,
        experts=experts,
    )


def _counted(inputs: Inputs, card: int, share: float, words: Words) -> Engine:
    """An engine whose graphs count inside its share."""
    size, said = weights_bytes(inputs)
    weights = part("engine_weights", size, said, basis=inputs.basis, pooled=False)
    cache = cache_part(inputs, card, share, words)
    return Engine(weights, cache, tuple(rest_parts(inputs, cache.expected, cache_bytes_per_token(inputs))))


def sleeping(inputs: Inputs) -> list[Part]:
    """What a sleeping engine leaves on the card."""
    if inputs.mechanics.engine_asleep_bytes:
        return [asleep_part(inputs, inputs.mechanics.context_bytes or inputs.card_context)]
    residue = inputs.mechanics.sleep_residue_bytes
    return [
        part(
            "engine_rest",
            residue,
            lambda: say("left by the sleeping engine: context, CUDA graphs, buffers"),
            low=residue * 0.5,
            high=residue * c.RESIDUE_HIGH,
            basis="estimated",
            pooled=False,
            kind="asleep",
        )
    ]


def sleeps(inputs: Inputs) -> bool:
    """Whether the engine gives its memory back while the trainer works."""
    return inputs.run.is_on("rollout.sleeps", inputs.mechanics.engine_sleeps)


def cache_bytes_per_token(inputs: Inputs) -> int:
    """KV bytes of one token on one card of the engine; heads are repeated where TP exceeds them, MLA is not divided."""
    shape, parallel = inputs.shape, max(1, inputs.run.topology.tensor_parallel)
    whole = 2 * c.BF16 * shape.layers * shape.kv_heads * shape.head_dim
    if shape.kv_bytes_per_token and shape.kv_bytes_per_token < whole // 2:
        return shape.kv_bytes_per_token
    return (shape.kv_bytes_per_token or whole) // min(parallel, max(1, shape.kv_heads))


def _cache(inputs: Inputs, room: float, budget: Words, basis: Basis, charged: int) -> Part:
    if room <= 0:
        need = cache_bytes_per_token(inputs) * inputs.update.length
        return part(
            "kv_cache",
            0,
            lambda: say(
                "{budget} = {room}: the engine cannot start, there is no room for KV blocks",
                budget=budget(),
                room=show_bytes(room),
            ),
            high=need,
            basis=basis,
            pooled=False,
            kind="cannot_start",
        )
    tokens = room / max(1, cache_bytes_per_token(inputs))
    return part(
        "kv_cache",
        room,
        lambda: say("{budget}: {tokens:,.0f} tokens of cache", budget=budget(), tokens=tokens),
        low=room - charged,
        basis=basis,
        pooled=False,
    )


def _one_sequence(inputs: Inputs) -> Part:
    size = cache_bytes_per_token(inputs) * inputs.update.length
    return part(
        "kv_cache",
        size,
        lambda: say(
            "cache of one sequence of {length} tokens; the card's size is unknown", length=inputs.update.length
        ),
        basis="estimated",
        pooled=False,
    )


def _profile(inputs: Inputs, parallel: int) -> Part:
    """Activations of the engine's largest step: gate and up, the residual stream, and sampled logits in fp32."""
    tokens = inputs.run.number("rollout.max_batched_tokens") or c.BATCHED_TOKENS
    sequences = inputs.run.number("rollout.max_sequences") or c.SEQUENCES
    shape = inputs.shape
    width = max(shape.intermediate, shape.experts_per_token * shape.expert_intermediate)
    per_token = c.BF16 * (3 * width / parallel + 4 * shape.hidden)
    size = tokens * per_token + min(sequences, tokens) * shape.vocab * 2 * c.FP32 / parallel
    return part(
        "engine_rest",
        size,
        lambda: say(
            "profiling pass of {tokens:.0f} tokens, {sequences:.0f} sequences", tokens=tokens, sequences=sequences
        ),
        low=size * 0.5,
        high=size * 2,
        basis="estimated",
        pooled=False,
    )


def _graphs(inputs: Inputs) -> Part:
    eager = inputs.run.value("rollout.eager")
    if eager is True:
        return part("engine_rest", 0, lambda: say("eager: no CUDA graphs"))
    low = 0 if eager is None else c.GRAPHS_LOW
    return part(
        "engine_rest",
        c.GRAPHS,
        lambda: say("CUDA graphs, outside the share"),
        low=low,
        high=c.GRAPHS_HIGH,
        basis="estimated",
        pooled=False,
        kind="graphs",
    )


def hf_cache(inputs: Inputs, rows: int) -> list[Part]:
    """Generation by the training framework itself: the KV cache of all sequences of a pass, at full length."""
    length = inputs.update.length
    size = cache_bytes_per_token(inputs) * rows * length
    words = partial(_own_cache, rows, length)
    cache = part("kv_cache", size, words, low=size * 0.5, basis=inputs.scoring.basis)
    return [cache, *_left_by_growth(inputs, rows * length), *_gathered_to_generate(inputs)]


def _left_by_growth(inputs: Inputs, tokens: int) -> list[Part]:
    """Segments behind a cache that is copied for every token (transformers' DynamicCache): above 10 MiB a layer each
    2 MiB step leaves one that the next is too large for. Nothing of it is needed: torch gives it back before it fails.
    """
    shape = inputs.shape
    one = c.BF16 * shape.kv_heads * shape.head_dim * tokens
    if inputs.expandable or one <= c.LARGE_FROM:
        return []
    left = 2 * shape.layers * (one**2 - c.LARGE_FROM**2) / (2 * c.LARGE_ROUND)
    most = left if inputs.gpu_bytes is None else min(left, inputs.gpu_bytes)
    return [part("fragmentation", 0, partial(_growth_words, one), high=most, basis="estimated", pooled=True)]


def _growth_words(one: int) -> str:
    return say(
        "torch's segments: a layer's cache that grows to {size} leaves one at every 2 MiB; they are given back before "
        "the card is full, but count as used until then",
        size=show_bytes(one),
    )


def _gathered_to_generate(inputs: Inputs) -> list[Part]:
    """All weights on every card while ZeRO-3's own model generates (TRL, unwrap_model_for_generation)."""
    sharded = inputs.trainer == "deepspeed" and inputs.stage == 3 and inputs.shards > 1
    if not sharded or not inputs.mechanics.gathers_to_generate:
        return []
    count = show_params(inputs.parameters)
    words = partial(say, _ALL_GATHERED, count=count)
    return [part("gathered", c.BF16 * inputs.parameters, words, basis=inputs.basis)]


def _own_cache(rows: int, length: int) -> str:
    return say("cache of {rows} sequences of {length} tokens, in the training process", rows=rows, length=length)
