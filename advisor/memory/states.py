"""Counts the training states of actor and critic on one GPU, and says which of them are there in which moment."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import Amount, as_amount, in_bytes, least, quantity
from advisor.memory.batches import TrainedRole
from advisor.memory.cells import Cell, Note, Owner, cell, note
from advisor.memory.gathered import of_table, of_unit
from advisor.memory.inputs import Inputs, per_ledger
from advisor.memory.lora import adapter_count
from advisor.words import Phase

StepMoment = Phase | Literal["wake"]
"""A phase, or the instant in weight_sync when the whole engine is back on the GPU."""
_STEPPING: tuple[StepMoment, ...] = ("actor_update", "optimizer_step")
_BEFORE_THE_FIRST_STEP: tuple[StepMoment, ...] = ("model_load", "rollout_init")
_AWAKE_WHOLE: tuple[StepMoment, ...] = ("log_prob", "checkpoint")
"""Phases besides the update for which a trainer that pauses as one is back on the card."""


class Offload(Struct, frozen=True, gc=False):
    """Where a role's states may go. `adam_on_host`: the optimizer runs on the CPU (DeepSpeed), not only rests there."""

    weights: bool
    """In host RAM between phases (verl), or for good (DeepSpeed, beside CPU Adam)."""
    weights_sleep: bool
    """DeepSpeed's weights leave the GPU for the rollout only (ms-swift's offload_model)."""
    optimizer: bool
    adam_on_host: bool
    sleeps: bool
    """The optimizer's state leaves the GPU between updates (OpenRLHF's sleep, Open-Reasoner-Zero)."""
    everything: bool
    """FSDP's CPU offload: weights stream in layer by layer."""


@per_ledger
def offload_of(inputs: Inputs, role: TrainedRole) -> Offload:
    """The role's offload settings."""
    run = inputs.run
    optimizer = run.is_on(f"{role}.optimizer_offload")
    everything = role == "actor" and run.is_on("actor.full_cpu_offload")
    weights, for_good = run.is_on(f"{role}.param_offload"), inputs.mechanics.offload_lowers_update
    resting = inputs.mechanics.weights_sleep
    moves = inputs.stage == 3 or run.mechanics.trainer != "deepspeed"  # ZeRO moves weights that it shards, no others
    return Offload(
        weights=resting or (weights and moves and (optimizer or not for_good)),
        weights_sleep=weights and for_good and not optimizer and not resting,
        optimizer=optimizer,
        adam_on_host=everything or (optimizer and for_good),
        sleeps=run.is_on("actor.state_sleep", inputs.mechanics.states_sleep),
        everything=everything,
    )


@per_ledger
def weights_cell(inputs: Inputs, owner: Owner = "weights") -> Cell:
    """Weights the trainer keeps on one GPU; with LoRA the frozen base, and the adapters."""
    base = sharded_cell(inputs, owner, inputs.state("weights"), from_stage=3)
    if not inputs.adapters:
        return base
    amount = base.amount + _adapter_bytes(inputs)
    if inputs.copied:  # beside the frozen ones
        ways = inputs.split.tensor if inputs.split is not None else _ways(inputs, 3).value
        copies = quantity("parameters of modules trained whole", inputs.copied, basis=inputs.shape.basis)
        amount = amount + inputs.state("weights") * copies / quantity("GPUs", ways)
    return replace(base, amount=amount, note=Note(mark("frozen base and adapters")))


def _adapter_bytes(inputs: Inputs) -> Amount:
    """Weights, gradients and moments of the adapters on one GPU; weights alone where the others are counted apart."""
    count = adapter_count(inputs)
    if inputs.by_tensor:
        return c.IN_FP32 * inputs.mechanic("adapter_copies", mark("copies"), "") * count
    if inputs.split is not None:
        here = quantity("of the model on this rank", inputs.split.parameters / inputs.shape.parameters, "%")
        return (in_bytes("", c.MEGATRON_ADAPTER_BYTES) * count * here).rounded()
    return (in_bytes("", c.ADAPTER_STATE_BYTES) * count / _ways(inputs, 3)).rounded()


@per_ledger
def gradients_cells(inputs: Inputs, owner: Owner = "gradients") -> list[Cell]:
    """Gradients of the trained parameters on one GPU; those of adapters are counted with their weights."""
    if inputs.adapters and not inputs.saved:
        return []
    per = inputs.state("gradients")
    if inputs.per.steps_in_backward:  # only the largest one waits for its step
        words = mark("the largest unit: the optimizer steps in backward")
        ways = inputs.over if inputs.stage == 3 else 1
        return [cell(owner, per / ways * of_unit(inputs.shape), words)]
    return [sharded_cell(inputs, owner, per, from_stage=2, trained=True)]


@per_ledger
def optimizer_cells(inputs: Inputs, owner: Owner = "optimizer", *, masters_only: str = "") -> list[Cell]:
    """Master weights and moments on one GPU; the masters alone where only they are there (`masters_only`: why)."""
    if inputs.adapters and not inputs.saved:
        return []

    def share(per: Amount) -> Cell:
        return sharded_cell(inputs, owner, per, from_stage=1, trained=True)

    masters, both = inputs.state("master"), inputs.state("optimizer")
    if masters_only:
        return [replace(share(masters), note=Note(masters_only))]
    if inputs.per.paged:
        found = share(both)
        leaving = in_bytes("of moments in unified memory", share(inputs.state("paged")).expected)
        words = Note(mark("moments in unified memory leave a full GPU"))
        return [replace(found, amount=found.amount.within(high=found.amount + leaving), note=words)]
    if masters and masters < both:
        moments = in_bytes("of moments", both.value - masters.value, basis=both.basis)
        both = in_bytes("of masters", masters.value, basis=masters.basis) + moments
    return [share(both)]


def sharded_cell(inputs: Inputs, owner: Owner, per: Amount, from_stage: int, *, trained: bool = False) -> Cell:
    """States of `per` bytes a parameter on one GPU, sharded from this ZeRO stage on; an interval where it is a guess.
    The file that would say the stage may also move the optimizer to the host, so its least is then nothing."""
    count = inputs.trained if trained else inputs.parameters
    size = per * _share(inputs, from_stage, trained=trained)
    if not inputs.stage_known:
        low = as_amount(0) if from_stage == 1 else per * count / inputs.over
        size = size.within(low, per * count).rests_on("estimated")
    return cell(owner, size, _spread_note(inputs, from_stage))


def _share(inputs: Inputs, from_stage: int, *, trained: bool) -> Amount:
    """Parameters of one GPU whose states are sharded from this ZeRO stage on: all, or those that are trained."""
    count = inputs.trained if trained else inputs.parameters
    if inputs.split is None:
        return count / _ways(inputs, from_stage)
    if trained and inputs.adapters:  # of embedding and head, which tensor parallelism divides
        return count / quantity("GPUs", inputs.split.tensor if from_stage > 1 else inputs.shards)
    if from_stage > 1:
        here = quantity("parameters of the fullest rank", inputs.split.parameters, basis="estimated")
        return here - quantity("frozen", inputs.shape.parameters - count.value)
    here = quantity("parameters of its part of the optimizer", inputs.split.optimizer, basis="estimated")
    on_cpu = cpu_part(inputs, "actor")
    return here * (1 - quantity("on the CPU", on_cpu, "%")) if on_cpu else here


def cpu_part(inputs: Inputs, role: TrainedRole) -> float:
    """Part of Megatron's optimizer that lives and steps on the CPU all the time."""
    if inputs.split is None or role != "actor":
        return 0.0
    return min(1.0, max(0.0, inputs.run.number("actor.optimizer_cpu_part") or 0.0))


def _ways(inputs: Inputs, from_stage: int) -> Amount:
    """GPUs over which states are spread that are sharded from this ZeRO stage on."""
    return inputs.over if inputs.stage >= from_stage else as_amount(1)


def _spread_note(inputs: Inputs, from_stage: int) -> Note | None:
    """How a share lies over ranks and nodes, where that is not one copy on one node."""
    if inputs.split is not None:
        return inputs.split.note(mark("Megatron: {split}"))
    if inputs.shards <= 1 or inputs.stage < from_stage:
        return None
    if inputs.spans > 1:
        return note(mark("one copy on {nodes} nodes"), nodes=inputs.spans)
    if inputs.copies > 1 and inputs.run.topology.nodes > 1:
        return note(mark("one node, {copies} copies in all"), copies=inputs.copies)
    return None


def second_copy(inputs: Inputs) -> list[Cell]:
    """ZeRO++'s second shard (hpZ): after the forward pass the weights stay in bf16, spread over the GPUs of a group (a
    node), so that backward collects them from there and not over the network."""
    over = int(inputs.run.number("actor.second_shard") or 1)
    if inputs.trainer != "deepspeed" or inputs.stage < 3 or over <= 1:
        return []
    size = c.IN_BF16 * inputs.parameters / quantity("GPUs", min(over, inputs.shards))
    return [cell("gathered", size, mark("second copy for backward"))]


def step_cells(inputs: Inputs) -> list[Cell]:
    """Temporaries of the optimizer step: torch's foreach copies, or the upcast gradients of one ZeRO sub-group."""
    if inputs.by_tensor and inputs.per.step_extra:
        # Adapters and their moments are fp32, whatever the base is.
        size = (c.IN_FP32 * adapter_count(inputs)).within(low=0)
        if inputs.saved:
            size = size + inputs.state("step_extra") * _share(inputs, 1, trained=True)
        return [cell("buffers", size, mark("foreach temporaries"))]
    if inputs.adapters or not inputs.per.step_extra or offload_of(inputs, "actor").adam_on_host:
        return []
    elements = _share(inputs, 1, trained=True)
    if inputs.per.steps_in_backward or inputs.per.one_by_one:
        elements = least(elements, of_table(inputs.shape))
    words = mark("foreach temporaries")
    if inputs.by_zero and inputs.stage in (1, 2):
        words = mark("fp32 gradients of this GPU's part")
    elif inputs.by_zero:
        words = mark("fp32 gradients of one sub-group")
        elements = least(elements, quantity("in a sub-group", c.SUB_GROUP))
    return [cell("buffers", (inputs.state("step_extra") * elements).spread(c.STEP_LOW), words)]


@per_ledger
def resident_states(inputs: Inputs, role: TrainedRole, moment: StepMoment) -> list[Cell]:
    """The role's states that are on the GPU in `moment`."""
    inputs = inputs.of(role)
    actor = role == "actor"
    own: tuple[StepMoment, ...] = _STEPPING if role == "actor" else ("critic_update",)
    offload = offload_of(inputs, role)
    stepping = moment in own
    owner: Owner = "optimizer" if actor else "critic"
    kept: list[Cell] = []
    if _weights_here(inputs, role, moment, offload, stepping):
        kept.append(weights_cell(inputs, "weights" if actor else "critic"))
    if _gradients_here(inputs, moment, offload, stepping):
        kept += gradients_cells(inputs, "gradients" if actor else "critic")
    if _optimizer_here(inputs, role, moment, offload, stepping):
        kept += optimizer_cells(inputs, owner)
    elif offload.sleeps and masters_stay(inputs) and moment not in _BEFORE_THE_FIRST_STEP:
        kept += optimizer_cells(inputs, owner, masters_only=mark("fp32 masters, which stay"))
    elif inputs.split is not None and moment in _BEFORE_THE_FIRST_STEP:
        away = offload.adam_on_host or offload.optimizer or (offload.sleeps and moment != "model_load")
        words = mark("fp32 masters; the moments come with the first step")  # Megatron makes them with its optimizer
        kept += [] if away else optimizer_cells(inputs, owner, masters_only=words)
    return kept


def masters_stay(inputs: Inputs) -> bool:
    """Whether only the moments leave the GPU where the optimizer's state sleeps."""
    return inputs.mechanics.masters_stay and inputs.per.master > 0


def _weights_here(inputs: Inputs, role: TrainedRole, moment: StepMoment, offload: Offload, stepping: bool) -> bool:
    if offload.everything:
        return False
    if not offload.weights:
        return not (offload.weights_sleep and moment == "rollout_generate")
    if inputs.mechanics.offload_lowers_update and not inputs.mechanics.weights_sleep:
        return False
    if inputs.mechanics.pauses_whole:
        return stepping or moment == "model_load" or moment in _AWAKE_WHOLE
    loaded: tuple[StepMoment, ...] = ("log_prob", "checkpoint")
    loaded += ("model_load", "weight_sync") if role == "actor" else ()
    # Where the weights are still there when the engine wakes (verl up to 0.3), they are when it starts, too.
    beside = role == "actor" and moment in ("wake", "rollout_init") and "weights" in inputs.mechanics.wakes_beside
    return stepping or moment in loaded or beside


def _gradients_here(inputs: Inputs, moment: StepMoment, offload: Offload, stepping: bool) -> bool:
    """DeepSpeed's ZeRO-3 keeps its gradient partition all the time, Megatron the buffers that its DDP made at the
    start, unless the weights leave with them; torch frees gradients after the step."""
    if offload.adam_on_host and inputs.split is None:
        return False
    persistent = inputs.by_zero and inputs.stage == 3 and moment != "model_load"
    persistent |= inputs.split is not None and not (offload.weights or offload.sleeps)
    persistent |= inputs.mechanics.pauses_whole and moment in _AWAKE_WHOLE
    return stepping or persistent or (moment == "wake" and "gradients" in inputs.mechanics.wakes_beside)


def _optimizer_here(inputs: Inputs, role: TrainedRole, moment: StepMoment, offload: Offload, stepping: bool) -> bool:
    if offload.adam_on_host:
        return False
    mechanics = inputs.mechanics
    if offload.optimizer and mechanics.moments_for_step and moment == "actor_update":
        return False
    if stepping or (mechanics.pauses_whole and moment in _AWAKE_WHOLE):
        return True
    if moment in _BEFORE_THE_FIRST_STEP and inputs.moments_wait:
        return False
    if offload.optimizer:
        return False
    if offload.sleeps:
        woken = role == "actor" and not {"moments", "master"}.isdisjoint(mechanics.wakes_beside)
        return moment == "model_load" or (woken and moment in ("wake", "weight_sync", "log_prob"))
    return True
