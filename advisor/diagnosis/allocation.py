"""Finds what the failing line was making among the allocations that the knowledge knows, and lets its lever lead."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from advisor.crash.evidence import Crash, Frame
from advisor.crash.phase import frame_words
from advisor.diagnosis.fact import Fact, Facts, holds, value_of
from advisor.knowledge.schema import Allocation, Cause, CauseWords, Knowledge
from advisor.regex import compiled, regex

INNERMOST = 3
"""Frames in which the allocation is looked for; further out stands what called it."""
_PLUMBING = regex(r"^(?:_?(?:wrapped_)?call_impl|decorate_context|inner|wrapper|wrapped_fn|_fn|ret_val_func)$")
"""Functions that only call what they wrap (torch, DeepSpeed, transformers)."""
OPEN = ("batch-or-states", "batch-too-big", "long-sequence", "not-in-the-settings")
"""Causes that leave open what the failing line made, or say only that there was too much of it."""
HEADED = ("batch-too-big", "states-too-big", "engine-start-too-big")
"""Causes that are many things: what the failing line made names the one."""
FACT = "frame.allocation"


def allocation_facts(crash: Crash, known: Sequence[Allocation], facts: Facts) -> dict[str, Fact]:
    """frame.allocation, the cause it leads to (frame.cause), and what else its frame proves; {} where none is known.

    Where no frame names it, the size that was asked for may.
    """
    found = _found(crash.failing, known) if crash.memory in ("gpu", "unknown") else None
    if found is None:
        return _by_size(facts.get("attribution"), known)
    one, frame = found
    because = frame_words(frame)
    facts = {FACT: Fact(one.id, "log", because), **{name: Fact(to, "log", because) for name, to in one.sets.items()}}
    return {**facts, "frame.cause": Fact(one.cause, "log", because)} if one.cause else facts


def _by_size(made: Fact | None, known: Sequence[Allocation]) -> dict[str, Fact]:
    """The same of an allocation whose size was asked for."""
    one = next((one for one in known if made is not None and one.of_size == made.value), None)
    if one is None or made is None:
        return {}
    told = {FACT: Fact(one.id, "log", made.because, made.evidence)}
    return {**told, "frame.cause": Fact(one.cause, "log", made.because, made.evidence)} if one.cause else told


def allocation_of(facts: Facts, knowledge: Knowledge) -> Allocation | None:
    """The allocation that a fact names."""
    return next((one for one in knowledge.allocations if one.id == value_of(facts, FACT)), None)


def heads(cause: str, made: Allocation | None) -> bool:
    """Whether what the failing line made is the heading of a cause that says less by itself."""
    return made is not None and cause == made.cause and cause in HEADED


def narrower(cause: Cause, facts: Facts) -> CauseWords | None:
    """The narrower words for a cause that a fact has."""
    return next((one for one in cause.narrower if holds(one.when, facts) is not None), None)


def led(cause: Cause, facts: Facts, knowledge: Knowledge) -> tuple[str, ...]:
    """The remedies that lead the plan of a cause, because it is a narrower one, or the failing line names what
    they make smaller."""
    if (words := narrower(cause, facts)) is not None and words.leads:
        return words.leads
    one = allocation_of(facts, knowledge)
    return (
        one.leads
        if one is not None and cause.memory == "gpu" and cause.id in ("", one.cause or cause.id, *OPEN)
        else ()
    )


def in_order(cause: Cause, first: Sequence[str]) -> Cause:
    """The cause with these remedies before its own; they keep their place although they change results."""
    remedies = tuple(dict.fromkeys((*first, *cause.remedies)))
    return replace(cause, remedies=remedies, leads=(*first, *cause.leads)) if first else cause


def _found(frames: Sequence[Frame], known: Sequence[Allocation]) -> tuple[Allocation, Frame] | None:
    names = [f"{frame.file}:{frame.function} {frame.text}".replace("\\", "/") for frame in frames]
    near = [i for i in range(len(frames) - 1, -1, -1) if not _PLUMBING.match(frames[i].function)]
    for i in islice(near, INNERMOST):
        for one in known:
            if compiled(one.at).search(names[i]) and _among(one, names[: i + 1]):
                return one, frames[i]
    return None


def _among(one: Allocation, names: Sequence[str]) -> bool:
    """Whether the callers are those that this allocation has."""
    under = not one.under or any(compiled(one.under).search(name) for name in names)
    return under and not (one.not_under and any(compiled(one.not_under).search(name) for name in names))
