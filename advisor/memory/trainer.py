"""Decides what trains a run and shares its states: kind of trainer, ZeRO stage, shards, and the engine beside it."""

from __future__ import annotations

from advisor.language import say
from advisor.memory.constants import ASSUMED_STAGE
from advisor.memory.parameters import Trainer
from advisor.run.run import Run

_NO_ENGINE = ("false", "hf", "transformers", "huggingface", "none", "native")


def trainer_of(run: Run) -> Trainer:
    """DeepSpeed without a configuration is plain data parallelism, or FSDP where a shard size is given."""
    if run.mechanics.trainer == "deepspeed" and run.value("actor.zero_stage") is None:
        if (run.number("actor.shard_size") or 0) > 1:
            return "fsdp"
        # an optimizer is in host RAM by ZeRO alone, which shares it
        return "deepspeed" if unread_stage(run) or run.is_on("actor.optimizer_offload") else "ddp"
    return run.mechanics.trainer


def unread_stage(run: Run) -> str:
    """What should say the ZeRO stage but could not be read (a DeepSpeed file, a variable); "" where nothing does."""
    knob = run.knobs.get("actor.zero_stage")
    if knob is not None and knob.value is not None:
        return ""
    file = run.value("deepspeed.config")
    if file:
        return str(file)
    carriers = [s for s in run.settings if knob is not None and s.key.lstrip("-") == knob.key]
    unread = next((s for s in carriers if not s.resolved), None)
    if unread is None and run.launcher_unseen and run.topology.actor_gpus > 1:
        return say("the command that starts it")
    if unread is None or not unread.reason:
        return "" if unread is None else unread.key
    return say("{key} (it depends on {reason})", key=unread.key, reason=unread.reason)


def stage_of(run: Run, trainer: Trainer) -> int:
    if trainer in ("fsdp", "megatron"):
        return 3
    if trainer == "ddp":
        return 0
    known = run.number("actor.zero_stage")
    return ASSUMED_STAGE if known is None else int(known)


def shards_of(run: Run) -> int:
    """GPUs over which one copy of the training states is spread; a shard size of -1 (or none) means all of them. Beside
    tensor parallelism the shard size counts the mesh's other dimension."""
    everyone = max(1, run.topology.actor_gpus)
    size = run.number("actor.shard_size")
    return everyone if size is None or size < 1 else min(int(size) * tensor_ways(run), everyone)


def tensor_ways(run: Run) -> int:
    """GPUs that split every matrix of an FSDP trainer; 1: none do, or another trainer."""
    if run.mechanics.trainer != "fsdp":
        return 1
    return max(1, int(run.number("actor.tensor_parallel") or run.topology.actor_tensor_parallel))


def whole_on_each(run: Run) -> bool:
    """Whether every card holds the same however many there are: all states of the model, and no engine beside them."""
    trainer = trainer_of(run)
    return run.seen_whole and run.recipe.answers == "given" and trainer == "ddp" and stage_of(run, trainer) == 0


def has_engine(run: Run) -> bool:
    """Whether a rollout engine stands on cards of this run."""
    engine = run.value("rollout.engine")
    own = engine is None and (run.mechanics.generates_itself or run.mechanics.gathers_to_generate)
    named = str(engine).lower() in _NO_ENGINE and engine is not None and engine is not True
    return run.topology.rollout_gpus > 0 and run.recipe.answers == "generated" and not own and not named
