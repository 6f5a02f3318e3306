"""Lists what a GPU holds in each phase: loading, the rollout engine's start, generating, the weight sync, scoring, the
updates of actor and critic, the optimizer's step, saving, and evaluation during training."""

from __future__ import annotations

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory import lora, megatron
from advisor.memory.activations import scoring_cells, update_cells
from advisor.memory.allocator import broadcast_copies, given_back, left_by_other_lengths, lost_to_segments
from advisor.memory.amount import Amount, add_up, ceil, in_bytes, least, most, quantity
from advisor.memory.batches import Pass
from advisor.memory.cells import Cell, Note, cell, total
from advisor.memory.engine import engine_of, own_generation, sleeping, sleeps
from advisor.memory.gathered import of_layer, of_root, of_table, of_unit
from advisor.memory.inputs import Inputs, per_ledger
from advisor.memory.states import StepMoment, resident_states, second_copy, sharded_cell, step_cells
from advisor.run.run import RewardPlace
from advisor.run.shape import parameters_in_name


@per_ledger
def process_cells(inputs: Inputs, processes: int | None = None) -> list[Cell]:
    """CUDA contexts, communicators and the buffers that stay: what is there in every phase."""
    count = inputs.mechanics.processes_per_gpu if processes is None else processes
    counted = not inputs.mechanics.context_bytes and inputs.gpu_context != c.GPU_CONTEXT
    size = inputs.mechanics.context_bytes or inputs.gpu_context
    ends = (c.GPU_CONTEXT_LOW, c.GPU_CONTEXT_HIGH) if counted else (c.CONTEXT_LOW, c.CONTEXT_HIGH)
    each = in_bytes("of a CUDA context", size, low=size * ends[0], high=size * ends[1], basis="estimated")
    contexts = cell("context", quantity("processes", count) * each, pooled=False)
    if inputs.run.topology.actor_gpus <= 1 and inputs.run.topology.rollout_gpus <= 1:
        return [contexts]
    return [contexts, cell("context", c.NCCL, pooled=False)]


@per_ledger
def buffers_cell(inputs: Inputs) -> Cell:
    """Buckets and allowances that the trainer holds all the time."""
    absent = inputs.trainer == "ddp" and inputs.mechanics.trainer == "deepspeed"
    size = in_bytes("", 0) if absent else inputs.mechanic("fixed_buffer_bytes")
    return cell("buffers", size, mark("buckets the trainer holds all the time"))


def bucket_cells(inputs: Inputs) -> list[Cell]:
    """Gradients on their way to the other ranks: ZeRO's bucket, or DDP's buckets beside the gradients themselves."""
    if inputs.run.topology.actor_gpus <= 1:
        return []
    if inputs.by_zero and inputs.stage in (1, 2):
        bucket = inputs.mechanic("zero2_bucket_bytes")
        return [cell("buffers", bucket, mark("the bucket that ZeRO fills with gradients"))]
    if inputs.trainer != "ddp":
        return []
    adapters = c.IN_FP32 * lora.adapter_count(inputs)
    size = adapters if inputs.adapters else inputs.state("gradients") * inputs.trained
    return [cell("buffers", size, mark("DDP's buckets"))]


@per_ledger
def reference_cells(inputs: Inputs) -> list[Cell]:
    """Reference weights on the actor's GPU; none where there is no reference, it lives elsewhere, or on the host."""
    topology = inputs.run.topology
    beside = topology.roles_share_cards or topology.reference_beside_actor
    if not inputs.has_reference or reference_on_host(inputs) or not beside:
        return []
    return [sharded_cell(inputs, "reference", inputs.state("reference"), from_stage=3)]


def reward_cells(inputs: Inputs, beside: RewardPlace) -> list[Cell]:
    """Weights of a reward model on the GPUs of `beside`; its size by its name, else that of the policy."""
    if inputs.run.topology.reward_on != beside:
        return []
    named = parameters_in_name(str(inputs.run.value("reward.path") or ""))
    count = quantity("parameters", named or inputs.shape.parameters, basis="estimated")
    sharded = inputs.stage == 3 and inputs.shards > 1 and beside != "host"
    size = c.IN_BF16 * count / (inputs.over if sharded else 1)
    words = mark("reward model") if named else mark("reward model, as large as the policy, assumed")
    return [cell("reference", size, words)]


def teacher_rests_on_host(inputs: Inputs) -> bool:
    """Whether the model that a distilled one learns from is on the card only while it scores."""
    return inputs.mechanics.reference_on == "host" or inputs.run.is_on("teacher.offload")


def teacher_copy(inputs: Inputs) -> tuple[Amount, Note]:
    """Bytes of one copy of the teacher; its size by its name, else that of the student."""
    named = parameters_in_name(str(inputs.run.value("teacher.path") or ""))
    count = quantity("parameters", named or inputs.shape.parameters, basis="estimated")
    words = mark("teacher") if named else mark("teacher, as large as the student, assumed")
    return inputs.mechanic("reference_bytes") * count, Note(words)


def teacher_cells(inputs: Inputs, moment: StepMoment) -> list[Cell]:
    """Weights on each card of the model that a distilled one learns from."""
    if not inputs.run.recipe.teacher or (moment != "log_prob" and teacher_rests_on_host(inputs)):
        return []
    copy, words = teacher_copy(inputs)
    stage = inputs.run.number("teacher.zero_stage")
    stage = inputs.stage if stage is None else stage
    return [cell("reference", copy / (inputs.over if stage == 3 else 1), words)]


def reference_on_host(inputs: Inputs) -> bool:
    """The reference streams from host RAM."""
    return inputs.mechanics.reference_on == "host" or inputs.run.is_on("reference.offload")


@per_ledger
def states_in(inputs: Inputs, moment: StepMoment) -> list[Cell]:
    """Everything of the trainer that stays on the GPU in `moment`: actor, critic, reference, buffers."""
    shared = inputs.run.has_critic and inputs.run.topology.roles_share_cards
    return [
        *resident_states(inputs, "actor", moment),
        *(resident_states(inputs, "critic", moment) if shared else []),
        *reference_cells(inputs),
        *reward_cells(inputs, "actor"),
        *teacher_cells(inputs, moment),
        buffers_cell(inputs),
    ]


def adapter_states(inputs: Inputs, *, certain: bool) -> list[Cell]:
    """AdamW's moments of adapters that are counted tensor by tensor; elsewhere they are with the adapters' weights."""
    return [lora.states_cell(inputs, certain=certain)] if inputs.by_tensor else []


def between_updates(inputs: Inputs) -> list[Cell]:
    """The same between two updates; where the peak in question is that of a fresh process, before the first."""
    return adapter_states(inputs, certain=not inputs.mechanics.moments_after_first_pass)


def segment_cells(inputs: Inputs, *, kept: bool) -> list[Cell]:
    """What the allocator's segments lose where every tensor is counted; `kept`: layer inputs were cut from them."""
    if not inputs.by_tensor:
        return []
    checkpointed = inputs.run.is_on("actor.gradient_checkpointing")
    return [lost_to_segments(inputs, lora.kept_cell(inputs, inputs.update, checkpointed).expected if kept else 0)]


@per_ledger
def beside_training(inputs: Inputs) -> list[Cell]:
    """The rollout engine while the trainer works: nothing (other GPUs), its residue (asleep), or its whole share."""
    if not inputs.has_engine or not inputs.run.topology.colocated:
        return []
    return sleeping(inputs) if sleeps(inputs) else engine_of(inputs, at_start(inputs)).awake()


@per_ledger
def at_start(inputs: Inputs) -> int:
    """Bytes others hold on the GPU when a colocated engine starts and measures free memory."""
    return total([*states_in(inputs, "rollout_init"), *process_cells(inputs)])


def load_cells(inputs: Inputs) -> list[Cell]:
    """Loading: the states that exist then, and the largest unit on its way to its shards."""
    moving = []
    if inputs.stage == 3 and inputs.shards > 1 and inputs.split is None:
        per = inputs.state("weights") if inputs.trainer == "fsdp" else c.IN_BF16
        size = (per * of_root(inputs.shape)).within(low=0)
        moving.append(cell("loading", size, mark("embedding and head on their way to the shards")))
    if inputs.by_zero and inputs.stage:  # its optimizer makes its states with gradients of zeros
        moving += step_cells(inputs)
    return [*states_in(inputs, "model_load"), *moving, *process_cells(inputs)]


def log_prob_cells(inputs: Inputs, step: Pass | None = None) -> list[Cell]:
    """Old and reference log-probabilities; `step`: another pass without gradients (evaluation)."""
    return [
        *states_in(inputs, "log_prob"),
        *between_updates(inputs),
        *scoring_cells(inputs, step or inputs.scoring),
        *segment_cells(inputs, kept=False),
        *beside_training(inputs),
        *process_cells(inputs),
    ]


def actor_cells(inputs: Inputs) -> list[Cell]:
    """Forward and backward of the actor's update, from the second step on (all states exist)."""
    certain = not inputs.mechanics.moments_after_first_pass or lora.several_passes(inputs)
    states = states_in(inputs, "actor_update")
    gradients = [each for each in states if each.owner == "gradients"]
    held = [
        *(each for each in states if each.owner != "gradients"),
        *adapter_states(inputs, certain=certain),
        *update_cells(inputs, inputs.update, "actor", gradients),
        *second_copy(inputs),
        *bucket_cells(inputs),
        *segment_cells(inputs, kept=True),
        *beside_training(inputs),
        *process_cells(inputs),
    ]
    held = given_back(inputs, [*held, *left_by_other_lengths(inputs, inputs.update, held)])
    return [*held, *broadcast_copies(inputs, held)]


def critic_cells(inputs: Inputs) -> list[Cell]:
    """Forward and backward of the critic's update: no logits; its step needs less than its activations."""
    states, own = states_in(inputs, "critic_update"), inputs.of("critic")
    if not inputs.run.topology.roles_share_cards:
        reward = reward_cells(inputs, "critic")
        states = [*resident_states(inputs, "critic", "critic_update"), *reward, buffers_cell(inputs)]
    held = [
        *states,
        *update_cells(own, inputs.critic, "critic"),
        *second_copy(own),
        *beside_training(inputs),
        *process_cells(inputs),
    ]
    return given_back(inputs, [*held, *left_by_other_lengths(own, inputs.critic, held)])


def step_phase_cells(inputs: Inputs) -> list[Cell]:
    """The optimizer's step."""
    return [
        *states_in(inputs, "optimizer_step"),
        *adapter_states(inputs, certain=True),
        *([lora.gradients_cell(inputs), *segment_cells(inputs, kept=True)] if inputs.by_tensor else []),
        *([megatron.buffers_cell(inputs.shape)] if inputs.split is not None else []),
        *step_cells(inputs),
        *_held_from_update(inputs),
        *beside_training(inputs),
        *process_cells(inputs),
    ]


def checkpoint_cells(inputs: Inputs) -> list[Cell]:
    """Saving: the states that stay on the GPU, and the piece of the model that is collected at once."""
    collected = []
    if inputs.stage == 3 and inputs.shards > 1 and inputs.split is None and not inputs.adapters:
        per = inputs.state("weights") if inputs.trainer == "fsdp" else c.IN_BF16
        size = (per * of_unit(inputs.shape)).within(low=0)
        collected.append(cell("gathered", size, mark("the largest piece of the model, collected")))
    states = [*states_in(inputs, "checkpoint"), *adapter_states(inputs, certain=True)]
    return [*states, *collected, *beside_training(inputs), *process_cells(inputs)]


def _held_from_update(inputs: Inputs) -> list[Cell]:
    """Segments of the update's activations that torch's optimizer finds reserved and uses only in part."""
    if inputs.trainer != "ddp" or inputs.by_tensor or not inputs.per.step_extra or inputs.adapters:
        return []
    whole = add_up(each.amount for each in update_cells(inputs, inputs.update)).called("of the update's activations")
    whole = whole if inputs.gpu_bytes is None else least(whole, in_bytes("of the GPU", inputs.gpu_bytes))
    size = quantity("", c.UNFILLED, "%", basis="estimated") * whole
    words = mark("torch's segments, whose blocks temporaries of the step do not fill")
    return [cell("fragmentation", size.within(low=0, high=whole.value), words)]


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
    """The whole model gathered at once, or the largest of `sync.batches` pieces; below ZeRO-3 every GPU has it. The
    pieces are runs of decoder layers, then embedding and head together, then the vision tower."""
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
