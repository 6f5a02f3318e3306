"""Counts the rollout engine on one GPU: its share (weights, profiling pass, KV cache), what lies outside, what sleep
leaves.

Where CUDA graphs count inside the share (vLLM from 0.21), the start-up pass over a whole step of tokens is taken out of
the share and given back: what stays of it is the tokens really in flight.
"""

from __future__ import annotations

from msgspec import Struct

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import Amount, add_up, as_amount, in_bytes, least, most, quantity
from advisor.memory.cells import Cell, cell, note
from advisor.memory.gathered import cast_without_gradients, of_table, stream_bytes
from advisor.memory.inputs import Inputs, per_ledger
from advisor.memory.layer import forward_of_token, kv_of_token, mlp_width, of_each
from advisor.memory.megatron import expert_parameters
from advisor.memory.parameters import adapter_parameters, embedding_parameters, packed_bytes, targets_of
from advisor.run.shape import served_bits


class Engine(Struct, frozen=True):
    """One awake engine's cells on one GPU."""

    weights: Cell
    cache: Cell
    rest: tuple[Cell, ...]

    def awake(self) -> list[Cell]:
        """Everything an awake engine holds."""
        return [self.weights, self.cache, *self.rest]


def sleeps(inputs: Inputs) -> bool:
    """Whether the engine gives its memory back while the trainer works."""
    return inputs.run.is_on("rollout.sleeps", inputs.mechanics.engine_sleeps)


def cache_of_token(inputs: Inputs) -> Amount:
    """Bytes of one token in the KV cache on one GPU of the engine. Everything that has a KV cache asks here."""
    element = int(inputs.run.number("rollout.cache_bytes") or c.BF16)
    return kv_of_token(inputs.shape, max(1, inputs.run.topology.tensor_parallel), element)


@per_ledger
def engine_of(inputs: Inputs, beside: int) -> Engine:
    """The engine when it starts or is awake; `beside` is what others hold on the GPU when it measures free memory."""
    if inputs.gpu_bytes is None:
        size = cache_of_token(inputs) * quantity("tokens", inputs.update.length, basis="estimated")
        words = mark("cache of one sequence; the GPU's size is unknown")
        return Engine(weights_cell(inputs), cell("kv_cache", size, words, pooled=False), _graphs(inputs))
    gpu = in_bytes("of the GPU", inputs.gpu_bytes)
    name = mark("share") if inputs.run.number("rollout.memory_share") is not None else mark("share by vLLM's default")
    share = inputs.knob("rollout.memory_share", name, c.ASSUMED_SHARE, "%")
    if inputs.mechanics.graphs_inside_share:
        return _with_graphs_inside(inputs, share * gpu)
    weights = weights_cell(inputs)
    taken = weights.amount.called("of engine weights")
    if inputs.mechanics.engine_share_of == "free":
        room = share * most(0, gpu - in_bytes("held by others", beside) - taken)
        return Engine(weights, _cache(inputs, room, 0), _graphs(inputs))
    profile = _profile(inputs)
    room = share * gpu - taken
    if str(inputs.run.value("rollout.engine") or "").lower() != "sglang":
        room = room - profile.amount.called("of its profiling pass")
    # vLLM charges what else is on the GPU at start to its own share, so the cache may be smaller by that
    return Engine(weights, _cache(inputs, room, min(beside, max(0, round(room.value)))), (profile, *_graphs(inputs)))


@per_ledger
def weights_cell(inputs: Inputs) -> Cell:
    """The engine's weights on one GPU: over its tensor-parallel ranks, experts over its expert-parallel ones. What is
    quantised is as a setting says, or the checkpoint that the engine loads by its name."""
    per = _bytes_of_weight(inputs)
    parallel = max(1, inputs.run.topology.tensor_parallel)
    wide = max(parallel, int(inputs.run.number("rollout.expert_parallel") or 1))
    experts = expert_parameters(inputs.shape)
    here, ways = inputs.parameters, quantity("tensor-parallel GPUs", parallel)
    if not experts or wide == parallel:
        return cell("engine_weights", per * here / ways, pooled=False)
    routed = quantity("in experts", experts)
    spread = (here - routed) / ways + routed / quantity("expert-parallel GPUs", wide)
    return cell("engine_weights", per * spread, pooled=False)


def _bytes_of_weight(inputs: Inputs) -> Amount:
    bits = inputs.run.number("rollout.weight_bits") or served_bits(inputs.run.model_name or "", inputs.shape)
    if bits >= 16:
        return c.IN_BF16
    rest = embedding_parameters(inputs.shape) / inputs.shape.parameters
    return in_bytes("", rest * c.BF16 + (1 - rest) * packed_bytes(bits), basis="estimated")


def _cache(inputs: Inputs, room: Amount, charged: int) -> Cell:
    """The KV cache in `room` bytes, of which it may lose those that were `charged` to it."""
    per_token = cache_of_token(inputs)
    if room.value <= 0:
        return _no_room(room, (per_token * inputs.update.length).value)
    words = note(mark("room for {tokens}"), tokens=quantity("tokens of cache", room.value // max(1, per_token.value)))
    return cell("kv_cache", room.within(room.value - charged, room.value), words, pooled=False)


def _no_room(room: Amount, need: float) -> Cell:
    words = mark("the engine cannot start, there is no room for KV blocks")
    amount = most(0, room).within(0, in_bytes("for one sequence", need) if need else 0)
    return cell("kv_cache", amount, words, pooled=False, kind="cannot_start")


def _profile(inputs: Inputs) -> Cell:
    """Activations of the engine's largest step: gate and up, the residual stream, and sampled logits in fp32."""
    tokens = inputs.knob("rollout.max_batched_tokens", "tokens", c.BATCHED_TOKENS)
    tokens = as_amount(0) if tokens < 0 else tokens
    sequences = inputs.knob("rollout.max_sequences", "sequences", c.SEQUENCES)
    shape, ways = inputs.shape, quantity("tensor-parallel GPUs", max(1, inputs.run.topology.tensor_parallel))
    width = max(shape.intermediate, mlp_width(shape))
    wide = of_each(c.BF16 * c.PROFILE_MLP, "MLP width", width) / ways
    passing = tokens * (wide + of_each(c.BF16 * c.PROFILE_HIDDEN, "hidden", shape.hidden))
    sampled = least(sequences, tokens) * of_each(c.SAMPLED_COPIES * c.FP32, "vocabulary", shape.vocab) / ways
    size = (passing + sampled).spread(c.PROFILE_LOW, c.PROFILE_HIGH).rests_on("estimated")
    return cell("engine_rest", size, mark("profiling pass"), pooled=False)


def _graphs(inputs: Inputs) -> tuple[Cell, ...]:
    eager = inputs.run.value("rollout.eager")
    if eager is True:
        return ()
    size = c.GRAPHS if eager is False else c.GRAPHS.within(low=0)
    return (cell("engine_rest", size, mark("outside the share"), pooled=False, kind="graphs"),)


class EngineStep(Struct, frozen=True):
    """An engine step: tokens at most, bytes a token takes while it runs, and bytes a token keeps reserved for good."""

    tokens: Amount
    passing: Amount
    staying: Amount
    inputs: Amount
    """Buffers for its inputs, made before the weights are loaded: outside the share, awake and asleep."""
    graphs: Amount
    """CUDA graphs of all captured sizes."""
    sequences: int


@per_ledger
def _step_of(inputs: Inputs) -> EngineStep:
    """The largest step of the engine, the framework's own rule where no setting says."""
    shape, length = inputs.shape, inputs.update.length
    sequences = int(inputs.run.number("rollout.max_sequences") or c.SEQUENCES)
    each = inputs.mechanics.engine_tokens_a_sequence
    ruled = min(sequences * length, max(length, sequences * each)) if each else c.BATCHED_TOKENS
    tokens = quantity("tokens", int(inputs.run.number("rollout.max_batched_tokens") or ruled))
    hidden = quantity("hidden", shape.hidden)
    if shape.experts:
        chosen, width = quantity("experts of a token", shape.experts_per_token), shape.expert_intermediate
        passing = (c.IN_BF16 * chosen + c.PREFILL_HIDDEN) * hidden
        staying = c.IN_BF16 * chosen * quantity("buffer width", max(2 * width, shape.hidden) + max(width, shape.hidden))
    else:
        wide = of_each(c.PREFILL_MLP, "MLP width", shape.intermediate * (2 if shape.wide_layers else 1))
        tables = of_each(c.BF16, "per-layer width", shape.layers * shape.per_layer_input)
        passing, staying = add_up([wide, of_each(c.PREFILL_HIDDEN, "hidden", shape.hidden), tables]), as_amount(0)
    rows = tokens * (c.IN_BF16 * hidden + c.INPUT_BYTES)
    largest = min(2 * sequences, c.GRAPH_MOST)
    sizes = sum(1 for size in c.GRAPH_SIZES if size <= largest) + largest // c.GRAPH_STEP
    graphs = in_bytes("of a graph", c.GRAPH_BYTES) * quantity("layers", shape.layers) * quantity("sizes", sizes)
    graphs = as_amount(0) if inputs.run.value("rollout.eager") is True else graphs
    return EngineStep(tokens, passing, staying, rows, graphs, sequences)


def _with_graphs_inside(inputs: Inputs, budget: Amount) -> Engine:
    step = _step_of(inputs)
    weights = c.IN_BF16 * inputs.parameters
    rank = inputs.run.number("actor.lora_rank")
    if inputs.adapters and rank:  # the slot of one adapter
        targets = targets_of(inputs.run, experts_are_linear=inputs.mechanics.experts_are_linear)
        slot = quantity("of one adapter", adapter_parameters(inputs.shape, rank, targets))
        weights = c.IN_BF16 * (inputs.parameters + slot)
    start_up = (step.tokens * (step.passing + step.staying)).called("of its start-up pass")
    room = budget - weights.called("of engine weights") - start_up - step.graphs.called("of graphs")
    if room.value <= 0:
        cache = _no_room(room, 0)
    else:
        ends = room.value * c.CACHE_LOW, room.value + start_up.value * c.PASS_GIVEN_BACK
        cache = cell("kv_cache", room.within(*ends), pooled=False)
    flight, why = _in_flight(inputs, step, cache.expected)
    running = (quantity("tokens", flight, basis="estimated") * step.passing).spread(c.RUNNING_LOW)
    rest = (
        cell("engine_rest", running, why, pooled=False),
        cell("engine_rest", step.tokens * step.staying, mark("buffers of the experts' kernels"), pooled=False),
        cell("engine_rest", step.graphs, mark("CUDA graphs, inside the share"), pooled=False, kind="graphs"),
        _outside(inputs, step),
    )
    return Engine(cell("engine_weights", weights, pooled=False), cache, rest)


def _in_flight(inputs: Inputs, step: EngineStep, room: float) -> tuple[int, str]:
    """Tokens computed in the fullest step: the prompts (samples of one share its cache), or, where the cache is too
    small for all sequences, whole sequences computed again after they were set aside. And which of the two."""
    length, tokens = inputs.update.length, int(step.tokens.value)
    prompts = int(inputs.run.number("data.train_batch") or 1)
    prompt = int(inputs.run.number("data.prompt_tokens") or length * c.PROMPT_PART)
    samples = int(inputs.run.number("rollout.samples_per_prompt") or 1)
    asked = min(step.sequences, prompts * samples) * length
    held = int((room - c.OUTSIDE_SHARE) // max(1, cache_of_token(inputs).value))
    if asked > held > 0:
        return min(tokens, held), mark("sequences computed again, the cache holds too few")
    return min(tokens, prompts * prompt), mark("prompts in flight")


def _outside(inputs: Inputs, step: EngineStep) -> Cell:
    """Outside the share: libraries, the buffers of a step's inputs, heads that loading dropped and the pool keeps."""
    heads = c.IN_BF16 * quantity("heads made and dropped", inputs.shape.engine_heads_dropped) * of_table(inputs.shape)
    libraries = inputs.mechanic("engine_outside_bytes", mark("of libraries"))
    size = add_up([libraries, step.inputs.called("of input buffers"), heads]).rests_on("estimated")
    size = size.within(size.value - c.OUTSIDE_LESS, size.value + c.OUTSIDE_MORE)
    return cell("engine_rest", size, mark("outside the share"), pooled=False)


def sleeping(inputs: Inputs) -> list[Cell]:
    """What a sleeping engine leaves on the GPU: libraries and their workspaces, graphs, the experts' buffers."""
    words = mark("left by the sleeping engine")
    if not inputs.mechanics.graphs_inside_share:
        residue = inputs.mechanic("sleep_residue_bytes", mark("of context and CUDA graphs"))
        size = residue.spread(c.RESIDUE_LOW, c.RESIDUE_HIGH)
    else:
        step = _step_of(inputs)
        context = in_bytes("of a context", inputs.mechanics.context_bytes or inputs.gpu_context)
        parts = [
            inputs.mechanic("engine_asleep_bytes", mark("of libraries")),
            quantity("loaded as kernels", c.KERNELS_LOADED, "%") * context,
            step.graphs.called("of graphs"),
            (step.tokens * step.staying).called("of expert buffers"),
            step.inputs.called("of input buffers"),
        ]
        size = add_up(part for part in parts if part).spread(c.ASLEEP_LOW, c.ASLEEP_HIGH)
    return [cell("engine_rest", size.rests_on("estimated"), words, pooled=False, kind="asleep")]


def own_generation(inputs: Inputs, rows: int) -> list[Cell]:
    """Generation by the training framework itself: the KV cache of all sequences of a pass at full length, the prompts'
    pass through a layer, and what autocast casts."""
    length = quantity("tokens", inputs.update.length, basis=inputs.scoring.tokens.basis)
    size = cache_of_token(inputs) * quantity("sequences", rows) * length
    cache = cell("kv_cache", size.spread(c.OWN_CACHE_LOW), mark("in the training process"))
    cast = cast_without_gradients(inputs) if stream_bytes(inputs) == c.FP32 else []
    prompt = length - quantity("in the answer", inputs.update.response or 0)
    layer = forward_of_token(inputs.shape, stream_bytes(inputs), 1) * quantity("sequences", rows) * prompt
    first = cell("activations", layer.spread(c.OWN_CACHE_LOW), mark("one layer forward, over all prompts"))
    return [cache, first, *cast, *_left_by_growth(inputs, rows * inputs.update.length), *_gathered_to_generate(inputs)]


def _left_by_growth(inputs: Inputs, tokens: int) -> list[Cell]:
    """Segments behind a cache that is copied for every token (transformers' DynamicCache): above 10 MiB a layer each 2
    MiB step leaves one that the next is too large for. Nothing of it is needed: torch gives it back before it fails."""
    shape = inputs.shape
    one = c.BF16 * shape.kv_heads * shape.head_dim * tokens
    if inputs.expandable or one <= c.LARGE_FROM:
        return []
    left = 2 * shape.layers * (one**2 - c.LARGE_FROM**2) / (2 * c.LARGE_ROUND)
    high = left if inputs.gpu_bytes is None else min(left, inputs.gpu_bytes)
    words = mark(
        "torch's segments: a layer's growing cache leaves one at every 2 MiB; they are given back before the GPU is "
        "full, but count as used until then"
    )
    none = in_bytes("of segments", 0, basis="estimated")
    return [cell("fragmentation", none.within(high=in_bytes("of segments", high)), words)]


def _gathered_to_generate(inputs: Inputs) -> list[Cell]:
    """All weights on every GPU while ZeRO-3's own model generates (TRL, unwrap_model_for_generation); PPO wraps policy
    and value model together, so that both are (ppo_trainer.py, PolicyAndValueWrapper)."""
    sharded = inputs.trainer == "deepspeed" and inputs.stage == 3 and inputs.shards > 1
    if not sharded or not inputs.mechanics.gathers_to_generate:
        return []
    whole = c.IN_BF16 * inputs.parameters
    if inputs.run.has_critic and inputs.run.topology.roles_share_cards:
        whole = whole + c.IN_BF16 * inputs.of("critic").parameters
    return [cell("gathered", whole, mark("all weights gathered for generation"))]
