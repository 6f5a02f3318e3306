"""Training states of actor and critic on one GPU, and which of them are on the card in which moment."""

from __future__ import annotations

from functools import partial
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.language import say
from advisor.memory.cells import Owner
from advisor.memory.constants import BF16, FP32, STEP_LOW, SUB_GROUP
from advisor.memory.formula import Words
from advisor.memory.inputs import Inputs, adapter_bytes
from advisor.memory.megatron import Split, share_words
from advisor.memory.parts import Part, part
from advisor.memory.per_parameter import layer_parameters
from advisor.units import show_params
from advisor.words import Phase

Role = Literal["actor", "critic"]
Moment = Phase | Literal["wake"]
"""A phase, or the instant in weight_sync when the whole engine is back on the card."""
_STEPPING: tuple[Moment, ...] = ("actor_update", "optimizer_step")


class Offload(Struct, frozen=True):
    """Where a role's states may go. `adam_on_host`: the optimizer runs on the CPU (DeepSpeed), not only rests there."""

    weights: bool
    """In host RAM between phases (verl), or for good (DeepSpeed, beside CPU Adam)."""
    weights_sleep: bool
    """DeepSpeed's weights leave the card for the rollout only (ms-swift's offload_model)."""
    optimizer: bool
    adam_on_host: bool
    sleeps: bool
    """The optimizer's state leaves the card between updates (OpenRLHF's sleep, Open-Reasoner-Zero)."""
    everything: bool
    """FSDP's CPU offload: weights stream in layer by layer."""


def offload_of(inputs: Inputs, role: Role) -> Offload:
    """The role's offload settings."""
    run = inputs.run
    optimizer = run.is_on(f"{role}.optimizer_offload")
    everything = role == "actor" and run.is_on("actor.full_cpu_offload")
    weights, for_good = run.is_on(f"{role}.param_offload"), inputs.mechanics.offload_lowers_update
    return Offload(
        weights=weights and (optimizer or not for_good),
        weights_sleep=weights and for_good and not optimizer,
        optimizer=optimizer,
        adam_on_host=everything or (optimizer and for_good),
        sleeps=run.is_on("actor.state_sleep", inputs.mechanics.states_sleep),
        everything=everything,
    )


def weights_part(inputs: Inputs, owner: Owner = "weights") -> Part:
    """Weights the trainer keeps on one GPU; with LoRA the frozen base, and the adapters."""
    base = sharded_part(inputs, owner, inputs.per.weights, from_stage=3)
    if not inputs.adapters:
        return base
    adapters = adapter_bytes(inputs)

    def words() -> str:
        return say("frozen base {base} + adapters {adapters}", base=base.formula, adapters=show_params(inputs.adapters))

    low, high = base.low + adapters, base.high + adapters
    return part(owner, base.expected + adapters, words, low=low, high=high, basis=inputs.basis)


def gradients_part(inputs: Inputs, owner: Owner = "gradients") -> Part:
    """Gradients of the trained parameters on one GPU; those of adapters are counted with their weights."""
    if inputs.adapters:
        return part(owner, 0, _adapters_only)
    if inputs.per.steps_in_backward:
        return _passing_gradients(inputs, owner)
    return sharded_part(inputs, owner, inputs.per.gradients, from_stage=2, trained=True)


def _passing_gradients(inputs: Inputs, owner: Owner) -> Part:
    """The largest gradient that waits for its step, where the optimizer steps in backward."""
    unit = max(layer_parameters(inputs.shape), inputs.shape.vocab * inputs.shape.hidden)
    each = inputs.per.gradients / (inputs.shards if inputs.stage == 3 else 1)

    def words() -> str:
        count = show_params(unit)
        return say("{per:g} B x {count}, the largest unit: the optimizer steps in backward", per=each, count=count)

    return part(owner, each * unit, words, basis=inputs.basis)


def optimizer_part(inputs: Inputs, owner: Owner = "optimizer", *, asleep: bool = False) -> Part:
    """Master weights and moments on one GPU; the masters alone where only the moments leave (`asleep`)."""
    if inputs.adapters:
        return part(owner, 0, _adapters_only)
    if asleep:
        masters = sharded_part(inputs, owner, inputs.per.master, from_stage=1, trained=True)
        return replace(masters, words=lambda: say("fp32 masters, which stay: {share}", share=masters.formula))
    found = sharded_part(inputs, owner, inputs.per.optimizer, from_stage=1, trained=True)
    if inputs.per.paged:
        paged = sharded_part(inputs, owner, inputs.per.paged, from_stage=1, trained=True)
        return replace(found, high=found.high + paged.expected, words=lambda: _paged(paged))
    if not inputs.per.master or inputs.per.master == inputs.per.optimizer:
        return found
    return replace(found, words=lambda: _masters_and_moments(inputs, found))


def _paged(paged: Part) -> str:
    return say("moments in unified memory, which leave a full card: at most {share}", share=paged.formula)


def _adapters_only() -> str:
    return say("adapters only")


def _masters_and_moments(inputs: Inputs, found: Part) -> str:
    return say(
        "{share} ({masters:g} B masters, {moments:g} B moments)",
        share=found.formula,
        masters=inputs.per.master,
        moments=inputs.per.optimizer - inputs.per.master,
    )


def sharded_part(inputs: Inputs, owner: Owner, per: float, from_stage: int, *, trained: bool = False) -> Part:
    """States of `per` bytes a parameter on one GPU, sharded from this ZeRO stage on; an interval where it is a guess.

    The file that would say the stage may also move the optimizer to the host, so its least is then nothing.
    """
    count = inputs.trained if trained else inputs.parameters
    size, words = _share(inputs, per, from_stage, count), _words(inputs, per, from_stage, count)
    if inputs.stage_known:
        return part(owner, size, words, basis=inputs.basis)
    whole = per * count
    low = 0.0 if from_stage == 1 else whole / inputs.shards
    return part(owner, size, words, low=low, high=whole, basis=inputs.basis)


def second_copy_parts(inputs: Inputs) -> list[Part]:
    """ZeRO++'s second shard (hpZ): after the forward pass the weights stay in bf16, spread over the GPUs of a group (a
    node), so that backward collects them from there and not over the network."""
    over = int(inputs.run.number("actor.second_shard") or 1)
    if inputs.trainer != "deepspeed" or inputs.stage < 3 or over <= 1:
        return []
    size = BF16 * inputs.parameters / min(over, inputs.shards)

    def words() -> str:
        count = show_params(inputs.parameters)
        return say("second copy for backward: 2 B x {count} parameters / {over} GPUs", count=count, over=over)

    return [part("gathered", size, words, basis=inputs.basis)]


def step_part(inputs: Inputs) -> Part:
    """Temporaries of the optimizer step: torch's foreach copies, or the upcast gradients of one ZeRO sub-group."""
    if inputs.by_tensor and inputs.per.step_extra:
        # Adapters and their moments are fp32, whatever the base is.
        words = partial(_adapter_temporaries, inputs.adapters)
        return part("buffers", FP32 * inputs.adapters, words, low=0, basis=inputs.basis)
    if inputs.adapters or not inputs.per.step_extra or offload_of(inputs, "actor").adam_on_host:
        return part("buffers", 0, lambda: say("none"))
    elements = _share(inputs, 1, 1, inputs.trained)
    if inputs.per.steps_in_backward:
        elements = min(elements, inputs.shape.vocab * inputs.shape.hidden)
    of_group = inputs.trainer == "deepspeed"
    if of_group:
        elements = min(elements, SUB_GROUP)
    size = inputs.per.step_extra * elements
    words = partial(_temporaries, inputs.per.step_extra, elements, of_group)
    return part("buffers", size, words, low=size * STEP_LOW, basis=inputs.basis)


def _adapter_temporaries(adapters: int) -> str:
    return say("foreach temporaries: {per} B x {count:.1f}M adapter parameters", per=FP32, count=adapters / 1e6)


def _temporaries(per: float, elements: float, of_group: bool) -> str:
    return say(
        "fp32 gradients of one sub-group: {per:g} B x {count} elements"
        if of_group
        else "foreach temporaries: {per:g} B x {count} elements",
        per=per,
        count=show_params(elements),
    )


def resident_states(inputs: Inputs, role: Role, moment: Moment) -> list[Part]:
    """The role's states that are on the card in `moment`."""
    inputs = inputs.of(role)
    own: tuple[Moment, ...] = _STEPPING if role == "actor" else ("critic_update",)
    offload = offload_of(inputs, role)
    stepping = moment in own
    kept: list[Part] = []
    if _weights_here(inputs, role, moment, offload, stepping):
        kept.append(weights_part(inputs, "weights" if role == "actor" else "critic"))
    if _gradients_here(inputs, moment, offload, stepping):
        kept.append(gradients_part(inputs, "gradients" if role == "actor" else "critic"))
    if _optimizer_here(inputs, role, moment, offload, stepping):
        kept.append(optimizer_part(inputs, "optimizer" if role == "actor" else "critic"))
    elif offload.sleeps and masters_stay(inputs) and moment != "rollout_init":
        kept.append(optimizer_part(inputs, "optimizer" if role == "actor" else "critic", asleep=True))
    return kept


def masters_stay(inputs: Inputs) -> bool:
    """Whether only the moments leave the card where the optimizer's state sleeps."""
    return inputs.mechanics.masters_stay and inputs.per.master > 0


def _weights_here(inputs: Inputs, role: Role, moment: Moment, offload: Offload, stepping: bool) -> bool:
    if offload.everything:
        return False
    if not offload.weights:
        return not (offload.weights_sleep and moment == "rollout_generate")
    if inputs.mechanics.offload_lowers_update:
        return False
    loaded: tuple[Moment, ...] = ("log_prob", "checkpoint")
    loaded += ("model_load", "weight_sync") if role == "actor" else ()
    # Where the weights are still there when the engine wakes (verl up to 0.3), they are when it starts, too.
    beside = role == "actor" and moment in ("wake", "rollout_init") and "weights" in inputs.mechanics.wakes_beside
    return stepping or moment in loaded or beside


def _gradients_here(inputs: Inputs, moment: Moment, offload: Offload, stepping: bool) -> bool:
    """DeepSpeed's ZeRO-3 keeps its gradient partition all the time; torch frees gradients after the step."""
    if offload.adam_on_host:
        return inputs.split is not None and stepping
    persistent = inputs.trainer == "deepspeed" and inputs.stage == 3 and moment != "model_load"
    return stepping or persistent or (moment == "wake" and "gradients" in inputs.mechanics.wakes_beside)


def _optimizer_here(inputs: Inputs, role: Role, moment: Moment, offload: Offload, stepping: bool) -> bool:
    if offload.adam_on_host:
        return False
    if stepping:
        return True
    mechanics = inputs.mechanics
    if moment in ("model_load", "rollout_init") and mechanics.lazy_optimizer:
        return False
    if offload.optimizer:
        return False
    if offload.sleeps:
        woken = role == "actor" and not {"moments", "master"}.isdisjoint(mechanics.wakes_beside)
        return moment == "model_load" or (woken and moment in ("wake", "weight_sync", "log_prob"))
    return True


def _share(inputs: Inputs, per_parameter: float, from_stage: int, count: int) -> float:
    """Bytes on one GPU of something that is sharded from this ZeRO stage on, of `count` parameters."""
    if inputs.split is not None:
        if from_stage > 1:
            frozen = inputs.parameters - count
            return per_parameter * (inputs.split.parameters - frozen)
        return per_parameter * inputs.split.optimizer * (1 - _on_cpu(inputs))
    return per_parameter * count / (inputs.shards if inputs.stage >= from_stage else 1)


def _on_cpu(inputs: Inputs) -> float:
    """Part of the optimizer that lives and steps on the CPU."""
    return min(1.0, max(0.0, inputs.run.number("actor.optimizer_cpu_part") or 0.0))


def _words(inputs: Inputs, per_parameter: float, from_stage: int, count: int) -> Words:
    if inputs.split is not None:
        return partial(_split_words, inputs, inputs.split, per_parameter, from_stage == 1)
    return partial(_even_words, inputs, per_parameter, count, inputs.shards if inputs.stage >= from_stage else 1)


def _split_words(inputs: Inputs, split: Split, per_parameter: float, optimizer: bool) -> str:
    share = share_words(per_parameter, split, optimizer=optimizer)
    on_cpu = _on_cpu(inputs) if optimizer else 0
    return say("{share}, {cpu:.0%} of it on the CPU", share=share, cpu=on_cpu) if on_cpu else share


def _even_words(inputs: Inputs, per_parameter: float, count: int, shards: int) -> str:
    told = {"per": per_parameter, "count": show_params(count), "shards": shards}
    if shards <= 1:
        return say("{per:g} B x {count} parameters", **told)
    if inputs.spans > 1:
        return say("{per:g} B x {count} parameters / {shards} GPUs on {nodes} nodes", nodes=inputs.spans, **told)
    if inputs.copies > 1 and inputs.run.topology.nodes > 1:
        return say(
            "{per:g} B x {count} parameters / {shards} GPUs of one node, {copies} copies in all",
            copies=inputs.copies,
            **told,
        )
    return say("{per:g} B x {count} parameters / {shards} GPUs", **told)
