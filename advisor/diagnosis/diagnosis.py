"""Holds the path through the tree: each question, its answer, who answered, what was ruled out and by what."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from advisor.words import Basis, Memory, Phase

AnsweredBy = Literal["log", "script", "machine", "user", "unknown"]
UNKNOWN = "unknown"
"""The answer "I don't know"; every question takes it."""


class Choice(Struct, frozen=True):
    """One answer a question offers."""

    id: str
    title: str


class QuestionStep(Struct, frozen=True):
    """One question on the path. `answer` is a Choice id, or UNKNOWN."""

    question: str
    asks: str
    why: str
    choices: tuple[Choice, ...]
    answer: str
    source: AnsweredBy
    because: str = ""
    """What answered it: "the log, line 41 207: …"."""
    evidence: tuple[int, ...] = ()
    """Indices into Crash.evidence."""
    if_unknown: str = ""
    suggested: str = ""
    """What the evidence says, where the user answered otherwise."""
    guess: bool = False
    """The answer is only likely; `because` says why, and the user may know better."""

    def is_a_fact(self, *sources: AnsweredBy) -> bool:
        """Answered by what was read, and more than the verdict says already."""
        return self.source in sources and not self.guess and self.question not in ("memory", "phase")


class RuledOut(Struct, frozen=True):
    """A cause that was considered, and what speaks against it: a proof, or an answer that led away from it."""

    cause: str
    title: str
    because: str
    question: str = ""
    """The question whose answer led away from it; "" where a proof excluded it by itself."""


class CaseMatch(Struct, frozen=True):
    """A documented case and how many of its facts agree."""

    id: str
    title: str
    source: str
    agree: int
    of: int
    differs: tuple[str, ...] = ()
    alike: bool = False
    """Framework and phase are the same, and so is something that not every run of the framework shares."""


class Advice(Struct, frozen=True):
    """An advisory that concerns a library of this run."""

    id: str
    library: str
    version: str
    title: str
    says: str
    source: str


class Diagnosis(Struct, frozen=True):
    """The cause, and how it was reached."""

    cause: str
    title: str
    explains: str
    basis: Basis
    memory: Memory
    phase: Phase
    path: tuple[QuestionStep, ...]
    ruled_out: tuple[RuledOut, ...] = ()
    """Causes that a proof excludes."""
    less_likely: tuple[RuledOut, ...] = ()
    """Causes that only an answer led away from: they stay possible where the answer is mistaken."""
    cases: tuple[CaseMatch, ...] = ()
    advisories: tuple[Advice, ...] = ()
    remarks: tuple[str, ...] = ()
    """Sentences that belong to this crash: the victim, what the ledger explains and does not, contradictions."""
    record_next_time: str = ""
    is_verdict: bool = False
    """The cause itself says what ran out, and that it was not the memory that the message names."""
    open_questions: tuple[str, ...] = ()
    """Question ids that were answered "I don't know"."""
