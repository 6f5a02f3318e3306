"""The phases in which the rollout engine works: its start, generating, and the weight sync with its wake-up."""

from __future__ import annotations

from advisor.language import say
from advisor.memory import constants as c
from advisor.memory.engine import engine_of, hf_cache, sleeps
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part, total
from advisor.memory.per_parameter import embedding_parameters, layer_parameters
from advisor.memory.training import at_start, between_updates, process_parts, states_in
from advisor.units import show_params


def init_parts(inputs: Inputs) -> list[Part]:
    """The engine's start: what the trainer holds by then, and the whole share."""
    if not inputs.run.topology.colocated:
        return [*engine_of(inputs, 0).awake(), *process_parts(inputs, processes=1)]
    engine = engine_of(inputs, at_start(inputs)).awake()
    return [*states_in(inputs, "rollout_init"), *engine, *process_parts(inputs)]


def generate_parts(inputs: Inputs, rows: int | None = None) -> list[Part]:
    """Generating: the awake engine, and the trainer's states that were not moved away. `rows`: sequences at once, where
    the trainer itself generates; None: those of a scoring pass."""
    if not inputs.has_engine:
        return [
            *states_in(inputs, "rollout_generate"),
            *between_updates(inputs),
            *hf_cache(inputs, rows or inputs.scoring.sequences),
            *process_parts(inputs),
        ]
    if not inputs.run.topology.colocated:
        return [*engine_of(inputs, 0).awake(), *process_parts(inputs, processes=1)]
    engine = engine_of(inputs, at_start(inputs)).awake()
    states = [*states_in(inputs, "rollout_generate"), *between_updates(inputs)]
    return [*states, *engine, *process_parts(inputs)]


def sync_parts(inputs: Inputs) -> list[Part]:
    """Weight sync and wake-up: the fuller of copying (states, engine weights, gather) and the whole engine awake."""
    if inputs.mechanics.sync_adapters and inputs.adapters and inputs.run.topology.colocated:
        return generate_parts(inputs)
    gathered = gather_part(inputs)
    states = states_in(inputs, "weight_sync")
    if not inputs.run.topology.colocated:
        trainer = [*states, gathered, *process_parts(inputs)]
        bucket = part("buffers", c.SYNC_BUCKET, lambda: say("transfer buffer"))
        rollout = [*engine_of(inputs, 0).awake(), bucket, *process_parts(inputs, processes=1)]
        return max(trainer, rollout, key=total)
    engine = engine_of(inputs, at_start(inputs))
    mechanics = inputs.mechanics
    at_once = mechanics.sync_wakes == "all"
    whole = not sleeps(inputs) or (at_once and "weights" in mechanics.wakes_beside)
    copying = [*states, gathered, *(engine.awake() if whole else [engine.weights]), *process_parts(inputs)]
    awake = [*states_in(inputs, "wake" if at_once else "rollout_generate"), *engine.awake(), *process_parts(inputs)]
    return max(copying, awake, key=total)


def gather_part(inputs: Inputs) -> Part:
    """What the sync gathers beside the shards: one tensor at a time, one layer, or the whole model in pieces."""
    kind = inputs.mechanics.sync_gathers
    if kind == "full_to_merge":
        kind = "full" if inputs.adapters else "tensor"
    per = inputs.per.weights if inputs.trainer == "fsdp" else c.BF16
    shape = inputs.shape
    if kind == "full":
        return _whole_part(inputs)
    if kind == "unit":
        unit = max(layer_parameters(shape), shape.vocab * shape.hidden)
        return part(
            "gathered",
            per * unit,
            lambda: say("one unit gathered: {per:g} B x {count}", per=per, count=show_params(unit)),
        )
    tensor = max(shape.vocab * shape.hidden, shape.hidden * shape.intermediate)
    copy = inputs.per.weights * inputs.parameters / inputs.shards if inputs.trainer == "fsdp" else 0
    return part(
        "gathered",
        (per + c.BF16) * tensor,
        lambda: say(
            "the largest tensor gathered and cast: ({per:g} + 2) B x {count}", per=per, count=show_params(tensor)
        ),
        low=per * tensor,
        high=(per + c.BF16) * tensor + copy,
    )


def _whole_part(inputs: Inputs) -> Part:
    """The whole model gathered at once, or the largest of `sync.batches` pieces; below ZeRO-3 every card has it.

    The pieces are runs of decoder layers, then embedding and head together, then the vision tower.
    """
    shape, batches = inputs.shape, int(inputs.run.number("sync.batches") or 0)
    whole = c.BF16 * shape.parameters
    if inputs.stage < 3:
        high = 0 if inputs.stage_known else whole
        return part(
            "gathered", 0, lambda: say("nothing gathered: below ZeRO-3 every card holds all weights"), high=high
        )
    if batches < 1:
        return part(
            "gathered",
            whole,
            lambda: say("the whole model gathered: 2 B x {count}", count=show_params(shape.parameters)),
        )
    layers = -(-shape.layers // batches)
    piece = max(layers * layer_parameters(shape), embedding_parameters(shape), shape.vision_parameters)
    return part(
        "gathered",
        c.BF16 * piece,
        lambda: say(
            "the largest of {batches} pieces of layers, of embedding and head: 2 B x {count}",
            batches=batches,
            count=show_params(piece),
        ),
    )
