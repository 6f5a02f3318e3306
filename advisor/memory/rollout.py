"""Lists what a GPU holds in the phases in which the rollout engine works: its start, generating, the weight sync with
its wake-up, and evaluation during training."""

from __future__ import annotations

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import ceil, in_bytes, most, quantity
from advisor.memory.cells import Cell, cell, total
from advisor.memory.engine import engine_of, own_generation, sleeps
from advisor.memory.gathered import of_layer, of_root, of_table, of_unit
from advisor.memory.inputs import Inputs, per_ledger
from advisor.memory.training import at_start, between_updates, log_prob_cells, process_cells, states_in


def init_cells(inputs: Inputs) -> list[Cell]:
    """The engine's start: what the trainer holds by then, and the whole share."""
    if not inputs.run.topology.colocated:
        return [*engine_of(inputs, 0).awake(), *process_cells(inputs, 1)]
    engine = engine_of(inputs, at_start(inputs)).awake()
    return [*states_in(inputs, "rollout_init"), *engine, *process_cells(inputs)]


def generate_cells(inputs: Inputs, rows: int | None = None) -> list[Cell]:
    """Generating: the awake engine, and the trainer's states that were not moved away. `rows`: sequences at once, where
    the trainer itself generates; None: those of a scoring pass."""
    if inputs.has_engine and not inputs.run.topology.colocated:
        return [*engine_of(inputs, 0).awake(), *process_cells(inputs, 1)]
    if inputs.has_engine:
        generating = engine_of(inputs, at_start(inputs)).awake()
    else:
        generating = own_generation(inputs, rows or inputs.scoring.sequences)
    states = [*states_in(inputs, "rollout_generate"), *between_updates(inputs)]
    return [*states, *generating, *process_cells(inputs)]


def sync_cells(inputs: Inputs) -> list[Cell]:
    """Weight sync and wake-up: the fuller of copying (states, engine weights, gather) and the whole engine awake."""
    if inputs.mechanics.sync_adapters and inputs.adapters and inputs.run.topology.colocated:
        return generate_cells(inputs)
    gathered = sync_gathers(inputs)
    states = states_in(inputs, "weight_sync")
    if not inputs.run.topology.colocated:
        trainer = [*states, *gathered, *process_cells(inputs)]
        if inputs.run.topology.engine_elsewhere:
            return trainer
        bucket = sync_bucket(inputs) or [cell("buffers", c.SYNC_BUCKET, mark("transfer buffer"))]
        engine_side = [*engine_of(inputs, 0).awake(), *bucket, *process_cells(inputs, 1)]
        return max([*trainer, *sync_bucket(inputs)], engine_side, key=total)
    engine = engine_of(inputs, at_start(inputs))
    mechanics = inputs.mechanics
    at_once = mechanics.sync_wakes == "all"
    whole = not sleeps(inputs) or (at_once and "weights" in mechanics.wakes_beside)
    copying = [
        *states,
        *gathered,
        *sync_bucket(inputs),
        *(engine.awake() if whole else [engine.weights]),
        *process_cells(inputs),
    ]
    awake = [*states_in(inputs, "wake" if at_once else "rollout_generate"), *engine.awake(), *process_cells(inputs)]
    return max(copying, awake, key=total)


@per_ledger
def sync_bucket(inputs: Inputs) -> list[Cell]:
    """The bucket in which weights travel to the engine, where a setting gives its size."""
    size = inputs.run.number("sync.bucket")
    return [] if not size else [cell("buffers", in_bytes("of a bucket", size), mark("bucket of weights on their way"))]


@per_ledger
def sync_gathers(inputs: Inputs) -> list[Cell]:
    """What the sync gathers beside the shards: one tensor at a time, one layer, or the whole model in pieces."""
    kind = inputs.mechanics.sync_gathers
    if kind == "full_to_merge":
        kind = "full" if inputs.adapters else "tensor"
    if kind == "full":
        return _whole_model(inputs)
    per = inputs.state("weights") if inputs.trainer == "fsdp" else c.IN_BF16
    shape = inputs.shape
    if kind == "unit":
        return [cell("gathered", per * of_unit(shape), mark("one unit gathered"))]
    tensor = most(of_table(shape), quantity("in an MLP matrix", shape.hidden * shape.intermediate))
    size = (per + c.IN_BF16) * tensor
    copy = inputs.state("weights") * inputs.parameters / inputs.over if inputs.trainer == "fsdp" else 0
    bounded = size.within(low=per.value * tensor.value, high=size + copy)
    return [cell("gathered", bounded, mark("the largest tensor gathered and cast"))]


def _whole_model(inputs: Inputs) -> list[Cell]:
    """The whole model gathered at once, or the largest of `sync.batches` pieces; below ZeRO-3 every GPU has it.

    The pieces are runs of decoder layers, then embedding and head together, then the vision tower.
    """
    shape, batches = inputs.shape, int(inputs.run.number("sync.batches") or 0)
    whole = c.IN_BF16 * inputs.parameters
    if inputs.stage < 3:
        if inputs.stage_known:
            return []
        none = in_bytes("gathered", 0, basis="estimated").within(high=whole)
        return [cell("gathered", none, mark("below ZeRO-3 every GPU holds all weights"))]
    if batches < 1:
        return [cell("gathered", whole, mark("the whole model gathered"))]
    layers = ceil(quantity("layers", shape.layers) / quantity("pieces", batches)) * of_layer(shape)
    piece = most(layers, of_root(shape), quantity("in the vision tower", shape.vision_parameters))
    return [cell("gathered", c.IN_BF16 * piece, mark("the largest of the pieces that are gathered"))]


def validation_cells(inputs: Inputs) -> list[Cell]:
    """Evaluation during training: the fuller of generating and scoring an evaluation batch.

    An engine holds its share however many sequences it is given; generation in the trainer, and its forward pass
    without gradients, take all rows of per_device_eval_batch_size at once.
    """
    scored = inputs.evaluation
    scoring = [] if scored is None else log_prob_cells(inputs, scored)
    if inputs.answers_given or inputs.run.topology.engine_elsewhere:
        return scoring
    rows: int | None = None  # as many as while training
    if scored is not None:
        rows = scored.sequences
    elif prompts := inputs.run.number("data.val_batch"):
        rows = max(inputs.scoring.sequences, round(prompts / inputs.run.topology.data_parallel))
    return max(generate_cells(inputs, rows), scoring, key=total)
