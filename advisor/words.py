"""The closed vocabularies of the JSON contract. Everything above speaks these words and no others."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from advisor.language import ENGLISH, Sayings, listed, say, spoken

_NAMED = re.compile(r"\{(\w{1,40})\}")
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

PHASE_TITLES: Sayings[Phase] = Sayings(
    {
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
)
PHASE_NAMES: Sayings[Phase] = Sayings(
    {
        "model_load": "model_load",
        "rollout_init": "rollout_init",
        "rollout_generate": "rollout_generate",
        "weight_sync": "weight_sync",
        "log_prob": "log_prob",
        "actor_update": "actor_update",
        "critic_update": "critic_update",
        "optimizer_step": "optimizer_step",
        "checkpoint": "checkpoint",
        "validation": "validation",
        "data": "data",
        "unknown": "unknown",
    }
)
"""Short names, for narrow tables: in English those of JSON."""
_WHEN: Sayings[Phase] = Sayings(
    {
        "model_load": "while loading the model",
        "rollout_init": "while starting the rollout engine",
        "rollout_generate": "while generating rollouts",
        "weight_sync": "while syncing weights into the rollout engine",
        "log_prob": "while computing log-probabilities",
        "actor_update": "during the actor update",
        "critic_update": "during the critic update",
        "optimizer_step": "during the optimizer step",
        "checkpoint": "while saving a checkpoint",
        "validation": "during validation",
        "data": "while loading data",
        "unknown": "during a phase the log does not show",
    }
)


def when(phase: Phase) -> str:
    """When in a step: "while syncing weights into the rollout engine", "during the actor update"."""
    return _WHEN[phase]


def when_either(phases: Sequence[Phase]) -> str:
    """When, where several phases are possible: "during the actor update or while computing log-probabilities"."""
    *others, last = (_WHEN[phase] for phase in phases)
    return say("{whens} or {last}", whens=listed(others), last=last) if others else last


def both(phases: Sequence[Phase]) -> str:
    """Phases that share something: "the actor update and computing log-probabilities"."""
    *others, last = (PHASE_TITLES[phase] for phase in phases)
    return say("{phases} and {last}", phases=listed(others), last=last) if others else last


MEMORY_TITLES: Sayings[Memory] = Sayings(
    {
        "gpu": "GPU memory",
        "host": "Host RAM",
        "shm": "Shared memory (/dev/shm)",
        "none": "No memory",
        "unknown": "An unknown memory",
    }
)
BASIS_TITLES: Sayings[Basis] = Sayings(
    {"measured": "measured", "computed": "computed", "estimated": "estimated", "documented": "documented"}
)
OWNER_TITLES: Sayings[str] = Sayings(
    {
        "weights": "weights",
        "gradients": "gradients",
        "optimizer": "optimizer",
        "gathered": "gathered",
        "activations": "activations",
        "logits": "logits",
        "reference": "reference",
        "critic": "critic",
        "engine_weights": "engine weights",
        "kv_cache": "kv cache",
        "engine_rest": "engine rest",
        "context": "context",
        "buffers": "buffers",
        "fragmentation": "fragmentation",
        "offloaded_weights": "offloaded weights",
        "offloaded_optimizer": "offloaded optimizer",
        "offloaded_activations": "offloaded activations",
        "engine_copy": "engine copy",
        "processes": "processes",
        "object_store": "object store",
        "swap": "swap",
        "loading": "loading",
        "unexplained": "unexplained",
        "driver": "driver",
        "checkpoint": "checkpoint",
    }
)
"""Owners of the memory ledger, as tables name them."""


def sentence(words: str) -> str:
    """With a full stop and, in English, a capital; "" stays empty."""
    if not words:
        return ""
    whole = words if words[-1] in ".!?。！？" else say("{clause}.", clause=words)
    return whole if spoken() != ENGLISH else whole[0].upper() + whole[1:]


_ERRORS: Sayings[int] = Sayings(
    {
        errno.ENOENT: "no such file or directory",
        errno.EACCES: "permission denied",
        errno.EPERM: "operation not permitted",
        errno.EISDIR: "is a directory",
        errno.ENOTDIR: "not a directory",
        errno.EEXIST: "file exists",
        errno.ENOSPC: "no space left on device",
        errno.EROFS: "read-only file system",
    }
)


def filled(sentence: str, words: Mapping[str, str]) -> str:
    """A sentence of the knowledge with its {names} replaced; whoever wrote it, nothing else in it means anything."""
    return _NAMED.sub(lambda found: words.get(found[1], found[0]), sentence)


def os_words(error: OSError) -> str:
    """What the system says of an error, in small letters; what was raised in words of its own keeps them."""
    said = (error.strerror or str(error)).lower()
    number = error.errno or 0
    return _ERRORS[number] if number in _ERRORS and said == os.strerror(number).lower() else said


def weakest(*bases: Basis) -> Basis:
    """The basis a conclusion may claim when it rests on all of these; `measured` when there are none."""
    return max(bases, key=BASES.index, default="measured")
