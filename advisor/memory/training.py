"""The phases in which the trainer works: loading, scoring, the updates of actor and critic, the optimizer's step."""

from __future__ import annotations

from functools import partial

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory import lora, megatron
from advisor.memory.activations import scoring_parts, update_parts
from advisor.memory.batches import Pass
from advisor.memory.broadcast import copies_part
from advisor.memory.engine import engine_of, sleeping, sleeps
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part, total
from advisor.memory.per_parameter import embedding_parameters, layer_parameters
from advisor.memory.segments import lost_part
from advisor.memory.states import Moment, resident_states, second_copy_parts, sharded_part, step_part
from advisor.run.run import RewardPlace
from advisor.run.shape import size_in_name
from advisor.units import show_params

_CONTEXT = mark("CUDA context of {count} process x {size:.0f} MB")
_CONTEXTS = mark("CUDA context of {count} processes x {size:.0f} MB")
_DDP_BUCKETS = mark("DDP's buckets: {per:g} B x {count} gradients")
_REWARD = mark("reward model: 2 B x {count} parameters")
_REWARD_SHARDED = mark("reward model: 2 B x {count} parameters / {split} GPUs")
_TO_SHARDS = mark("embedding and head on their way to the shards: {per:g} B x {count}")
_PIECE = mark("the largest piece of the model, collected: {per:g} B x {count}")
_NOT_FILLED = mark(
    "torch's segments: half of the update's activations, whose blocks temporaries of the step do not fill"
)


def _counted(text: str, per: float, count: float) -> str:
    """`text` with bytes a parameter and a count of parameters."""
    return say(text, per=per, count=show_params(count))


def process_parts(inputs: Inputs, *, processes: int | None = None) -> list[Part]:
    """CUDA contexts, communicators and the buffers that stay: what is there in every phase."""
    count = inputs.mechanics.processes_per_gpu if processes is None else processes
    counted = not inputs.mechanics.context_bytes and inputs.card_context != c.CARD_CONTEXT
    size = inputs.mechanics.context_bytes or inputs.card_context
    contexts = part(
        "context",
        count * size,
        lambda: say(_CONTEXT if count == 1 else _CONTEXTS, count=count, size=size / 1e6),
        low=count * size * (c.CARD_CONTEXT_LOW if counted else c.CONTEXT_LOW),
        high=count * size * (c.CARD_CONTEXT_HIGH if counted else c.CONTEXT_HIGH),
        basis="estimated",
        pooled=False,
    )
    if inputs.run.topology.actor_gpus <= 1 and inputs.run.topology.rollout_gpus <= 1:
        return [contexts]
    words = partial(say, mark("NCCL communicators"))
    nccl = part("context", c.NCCL, words, low=c.NCCL_LOW, high=c.NCCL_HIGH, basis="estimated", pooled=False)
    return [contexts, nccl]


def buffers_part(inputs: Inputs) -> Part:
    """Buckets and allowances that the trainer holds all the time."""
    absent = inputs.trainer == "ddp" and inputs.mechanics.trainer == "deepspeed"
    size = 0 if absent else inputs.mechanics.fixed_buffer_bytes
    return part("buffers", size, lambda: say("buckets the trainer holds all the time"))


def bucket_parts(inputs: Inputs) -> list[Part]:
    """Gradients on their way to the other ranks: ZeRO's bucket, or DDP's buckets beside the gradients themselves."""
    if inputs.run.topology.actor_gpus <= 1:
        return []
    size = inputs.mechanics.zero2_bucket_bytes
    if inputs.trainer == "deepspeed" and inputs.stage in (1, 2) and size:
        return [part("buffers", size, lambda: say("the bucket that ZeRO fills with gradients"))]
    if inputs.trainer != "ddp":
        return []
    count, per = (inputs.adapters, c.FP32) if inputs.adapters else (inputs.trained, inputs.per.gradients)
    return [part("buffers", per * count, partial(_counted, _DDP_BUCKETS, per, count))]


def reference_parts(inputs: Inputs) -> list[Part]:
    """Reference weights on the actor's card; none where there is no reference, it lives elsewhere, or on the host."""
    topology = inputs.run.topology
    beside = topology.roles_share_cards or topology.reference_beside_actor
    if not inputs.has_reference or reference_on_host(inputs) or not beside:
        return []
    return [sharded_part(inputs, "reference", inputs.mechanics.reference_bytes, from_stage=3)]


def reward_parts(inputs: Inputs, beside: RewardPlace) -> list[Part]:
    """Weights of a reward model on the cards of `beside`; its size by its name, else that of the policy."""
    if inputs.run.topology.reward_on != beside:
        return []
    named = size_in_name(str(inputs.run.value("reward.path") or "").lower())
    size = named or inputs.parameters
    sharded = inputs.stage == 3 and inputs.shards > 1 and beside != "host"
    split = inputs.shards if sharded else 1
    words = partial(_reward_words, size, split if sharded else None, bool(named))
    return [part("reference", c.BF16 * size / split, words, basis="estimated")]


def _reward_words(size: float, split: int | None, named: bool) -> str:
    text = _REWARD if split is None else _REWARD_SHARDED
    said = say(text, count=show_params(size), split=split)
    return said if named else say("{reward} (as large as the policy, assumed)", reward=said)


def reference_on_host(inputs: Inputs) -> bool:
    """The reference streams from host RAM."""
    return inputs.mechanics.reference_on == "host" or inputs.run.is_on("reference.offload")


def states_in(inputs: Inputs, moment: Moment) -> list[Part]:
    """Everything of the trainer that stays on the card in `moment`: actor, critic, reference, buffers."""
    kept = resident_states(inputs, "actor", moment)
    if inputs.run.has_critic and inputs.run.topology.roles_share_cards:
        kept += resident_states(inputs, "critic", moment)
    return [*kept, *reference_parts(inputs), *reward_parts(inputs, "actor"), buffers_part(inputs)]


def adapter_states(inputs: Inputs, *, certain: bool) -> list[Part]:
    """AdamW's moments of adapters that are counted tensor by tensor; elsewhere they are with the adapters' weights."""
    return [lora.states_part(inputs, certain=certain)] if inputs.by_tensor else []


def between_updates(inputs: Inputs) -> list[Part]:
    """The same between two updates; where the peak in question is that of a fresh process, before the first."""
    return adapter_states(inputs, certain=not inputs.mechanics.moments_after_first_pass)


def segment_parts(inputs: Inputs, *, kept: bool) -> list[Part]:
    """What the allocator's segments lose where every tensor is counted; `kept`: layer inputs were cut from them."""
    if not inputs.by_tensor:
        return []
    checkpointed = inputs.run.is_on("actor.gradient_checkpointing")
    return [lost_part(inputs, lora.kept_part(inputs, inputs.update, checkpointed).expected if kept else 0)]


def beside_training(inputs: Inputs) -> list[Part]:
    """The rollout engine while the trainer works: nothing (other cards), its residue (asleep), or its whole share."""
    if not inputs.has_engine or not inputs.run.topology.colocated:
        return []
    if sleeps(inputs):
        return sleeping(inputs)
    return engine_of(inputs, at_start(inputs)).awake()


def at_start(inputs: Inputs) -> int:
    """Bytes others hold on the card when a colocated engine starts and measures free memory."""
    return total([*states_in(inputs, "rollout_init"), *process_parts(inputs)])


def load_parts(inputs: Inputs) -> list[Part]:
    """Loading: the states that exist then, and the largest unit on its way to its shards."""
    moving = []
    if inputs.stage == 3 and inputs.shards > 1 and inputs.split is None:
        root = embedding_parameters(inputs.shape)
        per = inputs.per.weights if inputs.trainer == "fsdp" else c.BF16
        words = partial(_counted, _TO_SHARDS, per, root)
        moving.append(part("loading", per * root, words, low=0))
    return [*states_in(inputs, "model_load"), *moving, *process_parts(inputs)]


def log_prob_parts(inputs: Inputs, step: Pass | None = None) -> list[Part]:
    """Old and reference log-probabilities; `step`: another pass without gradients (evaluation)."""
    return [
        *states_in(inputs, "log_prob"),
        *between_updates(inputs),
        *scoring_parts(inputs, step or inputs.scoring),
        *segment_parts(inputs, kept=False),
        *beside_training(inputs),
        *process_parts(inputs),
    ]


def actor_parts(inputs: Inputs) -> list[Part]:
    """Forward and backward of the actor's update, from the second step on (all states exist)."""
    certain = not inputs.mechanics.moments_after_first_pass or lora.several_passes(inputs)
    states = states_in(inputs, "actor_update")
    gradients = [p for p in states if p.owner == "gradients"]
    held = [
        *(p for p in states if p.owner != "gradients"),
        *adapter_states(inputs, certain=certain),
        *update_parts(inputs, inputs.update, "actor", gradients),
        *second_copy_parts(inputs),
        *bucket_parts(inputs),
        *segment_parts(inputs, kept=True),
        *beside_training(inputs),
        *process_parts(inputs),
    ]
    return [*held, *copies_part(inputs, held)]


def critic_parts(inputs: Inputs) -> list[Part]:
    """Forward and backward of the critic's update: no logits; its step needs less than its activations."""
    states = states_in(inputs, "critic_update")
    if not inputs.run.topology.roles_share_cards:
        reward = reward_parts(inputs, "critic")
        states = [*resident_states(inputs, "critic", "critic_update"), *reward, buffers_part(inputs)]
    return [
        *states,
        *update_parts(inputs, inputs.critic, "critic"),
        *second_copy_parts(inputs.of("critic")),
        *beside_training(inputs),
        *process_parts(inputs),
    ]


def step_parts(inputs: Inputs) -> list[Part]:
    """The optimizer's step."""
    states = [*states_in(inputs, "optimizer_step"), *adapter_states(inputs, certain=True)]
    if inputs.by_tensor:
        states += [lora.gradients_part(inputs), *segment_parts(inputs, kept=True)]
    if inputs.split is not None:
        states.append(megatron.buffers_part(inputs.shape))
    return [*states, step_part(inputs), *_held_from_update(inputs), *beside_training(inputs), *process_parts(inputs)]


def checkpoint_parts(inputs: Inputs) -> list[Part]:
    """Saving: the states that stay on the card, and the piece of the model that is collected at once."""
    collected = []
    if inputs.stage == 3 and inputs.shards > 1 and inputs.split is None and not inputs.adapters:
        unit = max(layer_parameters(inputs.shape), inputs.shape.vocab * inputs.shape.hidden)
        per = inputs.per.weights if inputs.trainer == "fsdp" else c.BF16
        words = partial(_counted, _PIECE, per, unit)
        collected.append(part("gathered", per * unit, words, low=0, basis=inputs.basis))
    states = [*states_in(inputs, "checkpoint"), *adapter_states(inputs, certain=True)]
    return [*states, *collected, *beside_training(inputs), *process_parts(inputs)]


def _held_from_update(inputs: Inputs) -> list[Part]:
    """Segments of the update's activations that torch's optimizer finds reserved and uses only in part."""
    if inputs.trainer != "ddp" or inputs.by_tensor or not inputs.per.step_extra or inputs.adapters:
        return []
    size = total(update_parts(inputs, inputs.update))
    words = partial(say, _NOT_FILLED)
    return [part("fragmentation", size / 2, words, low=0, high=size, basis="estimated")]
