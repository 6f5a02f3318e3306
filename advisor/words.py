"""The closed vocabularies of the JSON contract. Everything above speaks these words and no others."""

from __future__ import annotations

from typing import Literal, get_args

Memory = Literal["gpu", "host", "shm", "none", "unknown"]
Phase = Literal[
    "model_load",
    "rollout_init",
    "rollout_generate",
    "weight_sync",
    "log_prob",
    "actor_update",
    "critic_update",
    "optimizer_step",
    "checkpoint",
    "validation",
    "data",
    "unknown",
]
Verdict = Literal["oom", "not_oom", "unclear"]
Results = Literal["unchanged", "changed"]
Basis = Literal["measured", "computed", "estimated", "documented"]
"""How a number is known, strongest first."""
Source = Literal["measured", "described", "log"]
"""Where a fact about the machine comes from."""

PHASES: tuple[Phase, ...] = get_args(Phase)
MEMORIES: tuple[Memory, ...] = get_args(Memory)
BASES: tuple[Basis, ...] = get_args(Basis)

PHASE_TITLES: dict[Phase, str] = {
    "model_load": "loading the model",
    "rollout_init": "starting the rollout engine",
    "rollout_generate": "generating rollouts",
    "weight_sync": "syncing weights into the rollout engine",
    "log_prob": "computing log-probabilities",
    "actor_update": "the actor update",
    "critic_update": "the critic update",
    "optimizer_step": "the optimizer step",
    "checkpoint": "saving a checkpoint",
    "validation": "validation",
    "data": "loading data",
    "unknown": "a phase the log does not show",
}


def when(phase: Phase) -> str:
    """When in a step, as English has it: "while syncing weights into the rollout engine", "during the actor update"."""
    title = PHASE_TITLES[phase]
    return f"while {title}" if title.partition(" ")[0].endswith("ing") else f"during {title}"


MEMORY_TITLES: dict[Memory, str] = {
    "gpu": "GPU memory",
    "host": "Host RAM",
    "shm": "Shared memory (/dev/shm)",
    "none": "No memory",
    "unknown": "An unknown memory",
}


def weakest(*bases: Basis) -> Basis:
    """The basis a conclusion may claim when it rests on all of these; `measured` when there are none."""
    return max(bases, key=BASES.index, default="measured")
