"""Defines the closed vocabularies of the JSON contract. Everything above speaks these words and no others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar, get_args

from advisor.language import ENGLISH, Sayings, as_now, listed, mark, say, spoken
from advisor.regex import regex

T = TypeVar("T")
BETWEEN_SENTENCES = regex(r"(?<=[.!?]) (?=[A-Z\d])|(?<=[。！？])")
_NAMED = regex(r"\{(\w{1,40})\}")
_CHINESE = r"\u3001-\u303f\u4e00-\u9fff\uff01-\uff5e"
_BETWEEN_CHINESE = regex(f"(?<=[{_CHINESE}]) (?=[{_CHINESE}])")
"""A space that was kept for a number, where a word came in its place."""
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
Full = Literal["card", "share", "job"]
"""What was full: the memory itself, the share of it that a rollout engine may use, or what a job may have of a node."""
Source = Literal["measured", "described", "log", "script"]
"""Where a fact about the machine comes from."""

Platform = Literal["cuda", "mps", "cpu", "tpu", "jax", "tensorflow", "other"]
"""What computes: torch on cards of its own, of any vendor; torch or MLX on a Mac, which has one memory; torch without a
card; JAX and TensorFlow, which hold the card by rules of their own; a runtime of which nothing is known here."""

PHASES: tuple[Phase, ...] = get_args(Phase)
PLATFORMS: tuple[Platform, ...] = get_args(Platform)
MEMORIES: tuple[Memory, ...] = get_args(Memory)
BASES: tuple[Basis, ...] = get_args(Basis)


class PhaseRow(NamedTuple):
    """One phase in words."""

    name: str
    """Short, for narrow tables: in English that of JSON."""
    title: str
    when: str
    first_step: int | None
    """Its place in a run's first step; None where it has none."""
    of_given: tuple[str, str, str] | None = None
    """Name, title and when of a run that trains on given answers, where they are others: it has no actor."""


PHASE_TABLE: dict[Phase, PhaseRow] = {
    "model_load": PhaseRow(mark("model_load"), mark("loading the model"), mark("while loading the model"), 0),
    "rollout_init": PhaseRow(
        mark("rollout_init"), mark("starting the rollout engine"), mark("while starting the rollout engine"), 1
    ),
    "rollout_generate": PhaseRow(
        mark("rollout_generate"), mark("generating rollouts"), mark("while generating rollouts"), 3
    ),
    "weight_sync": PhaseRow(
        mark("weight_sync"),
        mark("syncing weights into the rollout engine"),
        mark("while syncing weights into the rollout engine"),
        2,
    ),
    "log_prob": PhaseRow(
        mark("log_prob"), mark("computing log-probabilities"), mark("while computing log-probabilities"), 5
    ),
    "actor_update": PhaseRow(
        mark("actor_update"),
        mark("the actor update"),
        mark("during the actor update"),
        7,
        (mark("training_step"), mark("the training step"), mark("during the training step")),
    ),
    "critic_update": PhaseRow(mark("critic_update"), mark("the critic update"), mark("during the critic update"), 6),
    "optimizer_step": PhaseRow(
        mark("optimizer_step"), mark("the optimizer step"), mark("during the optimizer step"), 8
    ),
    "checkpoint": PhaseRow(mark("checkpoint"), mark("saving a checkpoint"), mark("while saving a checkpoint"), 9),
    "validation": PhaseRow(mark("validation"), mark("validation"), mark("during validation"), 4),
    "data": PhaseRow(mark("data"), mark("loading data"), mark("while loading data"), None),
    "unknown": PhaseRow(
        mark("unknown"), mark("a phase the log does not show"), mark("during a phase the log does not show"), None
    ),
}
"""In the order of JSON, which is that of a usual step."""
GENERATING: frozenset[Phase] = frozenset(("rollout_init", "rollout_generate", "weight_sync"))
"""Phases that only a run has which generates answers."""


class _RunSpokenOf:
    """Of what kind of run is spoken in this process."""

    given = False


def speak_of(answers: str) -> None:
    """Speak of a run whose answers are "given" (SFT, DPO, reward models) or "generated" from now on."""
    _RunSpokenOf.given = answers == "given"


def spoken_of_now(work: Callable[[], T]) -> Callable[[], T]:
    """`work`, done later in the language, the names and the words for a run that are in force now."""
    given = _RunSpokenOf.given

    def later() -> T:
        before, _RunSpokenOf.given = _RunSpokenOf.given, given
        try:
            return work()
        finally:
            _RunSpokenOf.given = before

    return as_now(later)


def _of_run(row: PhaseRow) -> tuple[str, str, str]:
    """Name, title and when, in the words for the run spoken of."""
    return row.of_given if _RunSpokenOf.given and row.of_given is not None else (row.name, row.title, row.when)


class _PhaseSayings(Sayings[Phase]):
    """Phase → its name (0) or title (1), in the words for the run spoken of."""

    def __init__(self, which: int) -> None:
        super().__init__({phase: _of_run(row)[which] for phase, row in PHASE_TABLE.items()})
        self.which = which

    def __getitem__(self, key: Phase) -> str:
        return say(_of_run(PHASE_TABLE[key])[self.which])


ONCE: tuple[Phase, ...] = ("model_load", "rollout_init")
"""Phases that come once, before the first step."""
NOW_AND_THEN: tuple[Phase, ...] = ("checkpoint", "validation")
"""Phases that need not come in a step."""
PHASE_NAMES: Sayings[Phase] = _PhaseSayings(0)
PHASE_TITLES: Sayings[Phase] = _PhaseSayings(1)


def when(phase: Phase) -> str:
    """When in a step: "while syncing weights into the rollout engine", "during the actor update"."""
    return say(_of_run(PHASE_TABLE[phase])[2])


def when_either(phases: Sequence[Phase]) -> str:
    """When, where several phases are possible: "during the actor update or while computing log-probabilities"."""
    *others, last = (when(phase) for phase in phases)
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
    told = _NAMED.sub(lambda found: words.get(found[1], found[0]), sentence)
    return _BETWEEN_CHINESE.sub("", told)


def os_words(error: OSError) -> str:
    """What the system says of an error, in small letters; what was raised in words of its own keeps them."""
    said = (error.strerror or str(error)).lower()
    number = error.errno or 0
    return _ERRORS[number] if number in _ERRORS and said == os.strerror(number).lower() else said


def weakest(*bases: Basis) -> Basis:
    """The basis a conclusion may claim when it rests on all of these; `measured` when there are none."""
    return max(bases, key=BASES.index, default="measured")
