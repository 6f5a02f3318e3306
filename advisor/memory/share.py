"""An engine that counts its CUDA graphs inside its share (vLLM from 0.21): awake, and what it leaves asleep.

The start-up pass over a whole step of tokens is taken out of the share and given back: what stays of it is the tokens
really in flight. An awake engine holds its share, less that pass, plus the prompts in flight, plus what lies outside.
"""

from __future__ import annotations

from msgspec import Struct

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.adapters import adapter_parameters, targets_of
from advisor.memory.formula import Words
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part
from advisor.units import show_bytes, show_params

_NO_ROOM = mark(
    "{share} of {card} - weights - start-up pass of {tokens:,} tokens {profile} = {room}: the engine cannot start"
)
_LEFT = mark(
    "left by the sleeping engine: {libraries} of libraries + loaded kernels {kernels} + graphs {graphs} + input "
    "buffers {rows}"
)
_LEFT_BY_EXPERTS = mark(
    "left by the sleeping engine: {libraries} of libraries + loaded kernels {kernels} + graphs {graphs} + input "
    "buffers {rows} + expert buffers {experts}"
)
_ROOM = mark("{share} of {card} - weights - start-up pass of {tokens:,} tokens {profile} - graphs")


class Step(Struct, frozen=True):
    """An engine step: tokens at most, bytes a token takes while it runs, and bytes a token keeps reserved for good."""

    tokens: int
    passing: float
    staying: float
    sequences: int

    def inputs_bytes(self, hidden: int) -> int:
        """Buffers for the inputs of a step, made before the weights are loaded: outside the share, awake and asleep."""
        return self.tokens * (c.BF16 * hidden + c.INPUT_BYTES)


def step_of(inputs: Inputs) -> Step:
    """The largest step of the engine, the framework's own rule where no setting says."""
    shape, length = inputs.shape, inputs.update.length
    sequences = int(inputs.run.number("rollout.max_sequences") or c.SEQUENCES)
    each = inputs.mechanics.engine_tokens_a_sequence
    ruled = min(sequences * length, max(length, sequences * each)) if each else c.BATCHED_TOKENS
    tokens = int(inputs.run.number("rollout.max_batched_tokens") or ruled)
    if shape.experts:
        width = shape.expert_intermediate
        passing = float((c.BF16 * shape.experts_per_token + c.PREFILL_HIDDEN) * shape.hidden)
        buffers = max(2 * width, shape.hidden) + max(width, shape.hidden)
        return Step(tokens, passing, float(c.BF16 * shape.experts_per_token * buffers), sequences)
    wide = shape.intermediate * (2 if shape.wide_layers else 1)
    tables = c.BF16 * shape.layers * shape.per_layer_input
    return Step(tokens, float(c.PREFILL_MLP * wide + c.PREFILL_HIDDEN * shape.hidden + tables), 0.0, sequences)


def weights_bytes(inputs: Inputs) -> tuple[float, Words]:
    """The engine's weights and its slot for one adapter, in bf16."""
    slot = 0
    rank = inputs.run.number("actor.lora_rank")
    if inputs.adapters and rank:
        targets = targets_of(inputs.run, experts_are_linear=inputs.mechanics.experts_are_linear)
        slot = c.BF16 * adapter_parameters(inputs.shape, rank, targets)
    return c.BF16 * inputs.parameters + slot, lambda: _weights_words(inputs.parameters, slot > 0)


def _weights_words(parameters: int, adapter: bool) -> str:
    count = show_params(parameters)
    return say("2 B x {count} parameters + one adapter" if adapter else "2 B x {count} parameters", count=count)


def cache_part(inputs: Inputs, card: int, share: float, words: Words) -> Part:
    """The KV cache: the share less weights, start-up pass, buffers that stay and graphs."""
    step = step_of(inputs)
    weights, _ = weights_bytes(inputs)
    profile = step.tokens * (step.passing + step.staying)
    room = share * card - weights - profile - graphs_bytes(inputs, step)

    def budget(text: str) -> str:
        shown = {"card": show_bytes(card), "profile": show_bytes(profile), "room": show_bytes(room)}
        return say(text, share=words(), tokens=step.tokens, **shown)

    if room <= 0:
        return part("kv_cache", 0, lambda: budget(_NO_ROOM), pooled=False, kind="cannot_start")
    return part("kv_cache", room, lambda: budget(_ROOM), low=room * 0.97, high=room + profile * 0.1, pooled=False)


def rest_parts(inputs: Inputs, room: float, cache_per_token: int) -> list[Part]:
    """Beside weights and cache: prompts in flight, buffers and graphs (inside the share), and what lies outside."""
    step = step_of(inputs)
    flight, why = _in_flight(inputs, step, room, cache_per_token)
    running = part(
        "engine_rest",
        flight * step.passing,
        lambda: say("{why}: {tokens:,} tokens x {each:.0f} kB", why=say(why), tokens=flight, each=step.passing / 1000),
        low=flight * step.passing / 2,
        basis="estimated",
        pooled=False,
    )
    staying = part("engine_rest", step.tokens * step.staying, _expert_buffers, pooled=False)
    graphs = part("engine_rest", graphs_bytes(inputs, step), _graphs_inside, pooled=False, kind="graphs")
    return [running, staying, graphs, _outside(inputs, step)]


def _expert_buffers() -> str:
    return say("buffers of the experts' kernels")


def _graphs_inside() -> str:
    return say("CUDA graphs, inside the share")


def asleep_part(inputs: Inputs, context: int) -> Part:
    """What a sleeping engine leaves: libraries and their workspaces, graphs, the experts' buffers."""
    step = step_of(inputs)
    kernels = c.KERNELS_LOADED * context
    graphs, staying = graphs_bytes(inputs, step), step.tokens * step.staying
    rows = step.inputs_bytes(inputs.shape.hidden)
    size = inputs.mechanics.engine_asleep_bytes + kernels + graphs + staying + rows

    def words() -> str:
        return say(
            _LEFT_BY_EXPERTS if staying else _LEFT,
            libraries=show_bytes(inputs.mechanics.engine_asleep_bytes),
            kernels=show_bytes(round(kernels)),
            graphs=show_bytes(graphs),
            rows=show_bytes(rows),
            experts=show_bytes(round(staying)),
        )

    low, high = size * c.ASLEEP_LOW, size * c.ASLEEP_HIGH
    return part("engine_rest", size, words, low=low, high=high, basis="estimated", pooled=False, kind="asleep")


def graphs_bytes(inputs: Inputs, step: Step) -> int:
    """CUDA graphs of all captured sizes."""
    if inputs.run.value("rollout.eager") is True:
        return 0
    largest: int = min(2 * step.sequences, c.GRAPH_MOST)
    sizes = sum(1 for size in c.GRAPH_SIZES if size <= largest) + largest // c.GRAPH_STEP
    return sizes * inputs.shape.layers * c.GRAPH_BYTES


def _in_flight(inputs: Inputs, step: Step, room: float, cache_per_token: int) -> tuple[int, str]:
    """Tokens computed in the fullest step: the prompts (samples of one share its cache), or, where the cache is too
    small for all sequences, whole sequences computed again after they were set aside. And which of the two."""
    length = inputs.update.length
    prompts = int(inputs.run.number("data.train_batch") or 1)
    prompt = int(inputs.run.number("data.prompt_tokens") or length * c.PROMPT_PART)
    samples = int(inputs.run.number("rollout.samples_per_prompt") or 1)
    asked = min(step.sequences, prompts * samples) * length
    held = int((room - c.OUTSIDE_SHARE) // max(1, cache_per_token))
    if asked > held > 0:
        return min(step.tokens, held), mark("sequences computed again, the cache holds too few")
    return min(step.tokens, prompts * prompt), mark("prompts in flight")


def _outside(inputs: Inputs, step: Step) -> Part:
    """Outside the share: libraries, the buffers of a step's inputs, heads that loading dropped and the pool keeps."""
    heads = inputs.shape.engine_heads_dropped * c.BF16 * inputs.shape.vocab * inputs.shape.hidden
    rows = step.inputs_bytes(inputs.shape.hidden)
    size = inputs.mechanics.engine_outside_bytes + rows + heads

    def words() -> str:
        libraries, buffers = show_bytes(inputs.mechanics.engine_outside_bytes), show_bytes(rows)
        if not heads:
            return say(
                "outside the share: {libraries} of libraries, {rows} of input buffers",
                libraries=libraries,
                rows=buffers,
            )
        return say(
            "outside the share: {libraries} of libraries, {rows} of input buffers + {heads} of heads made and dropped "
            "in loading",
            libraries=libraries,
            rows=buffers,
            heads=show_bytes(heads),
        )

    low, high = size - c.OUTSIDE_LESS, size + c.OUTSIDE_MORE
    return part("engine_rest", size, words, low=low, high=high, basis="estimated", pooled=False)
