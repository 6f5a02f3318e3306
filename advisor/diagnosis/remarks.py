"""Sentences that belong to this crash: the victim, what the ledger explains, contradictions, the batch's algebra."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.crash.evidence import Crash
from advisor.diagnosis.fact import Facts
from advisor.memory.calibrate import Correction
from advisor.memory.cells import Ledger
from advisor.run.run import Run
from advisor.units import GIB, show_bytes
from advisor.words import PHASE_TITLES


def remarks(
    crash: Crash, run: Run, ledger: Ledger, facts: Facts, found: tuple[Correction, ...], cause: str
) -> tuple[str, ...]:
    """All remarks, the most important first."""
    return (
        *ledger.doubts,
        *_victim(crash, facts),
        *_explained(ledger, found),
        *_contradiction(crash, facts),
        *_algebra(run, facts),
        *_more_nodes(run, cause),
        *_inside_generate(run, crash),
        *_settle(crash),
    )


def _victim(crash: Crash, facts: Facts) -> Iterator[str]:
    fact = facts.get("host.victim")
    if fact is None or fact.value is not True or not crash.evidence:
        return
    fields = crash.evidence[0].fields
    name, held, used = fields.get("task"), fields.get("task_bytes"), fields.get("node_used_bytes")
    if isinstance(held, int) and isinstance(used, int):
        named = f"{name} " if name else "The task "
        yield (
            f"{named}was killed while it held {held / GIB:.2f} of {used / GIB:.2f} GB in use: it is the victim, not "
            "the cause. Ray kills the newest task, not the largest; look at the top users."
        )


def _explained(ledger: Ledger, found: tuple[Correction, ...]) -> Iterator[str]:
    for correction in found:
        if correction.place != "host":
            continue
        phase = ledger.phase("host", correction.phase)
        if phase is None:
            continue
        known = [cell for cell in phase.cells if cell.owner != "unexplained"]
        low, expected, high = (sum(getattr(c, part) for c in known) for part in ("low", "expected", "high"))
        largest = sorted(known, key=lambda cell: -cell.expected)[:4]
        parts = ", ".join(f"{cell.owner.replace('_', ' ')} {cell.expected / GIB:.0f}" for cell in largest)
        yield (
            f"The ledger explains {expected / GIB:.0f} GB ({low / GIB:.0f}–{high / GIB:.0f}) of the "
            f"{correction.measured / GIB:.0f} GB in use ({parts}); the other {correction.extra / GIB:.0f} GB "
            "are not explained by any setting. If RAM grows from step to step, that part is a leak, and these "
            "changes only delay it."
        )


def _contradiction(crash: Crash, facts: Facts) -> Iterator[str]:
    fact = facts.get("gpu.free_exceeds_request")
    if fact is None or fact.value is not True:
        return
    fields = crash.evidence[0].fields
    free, tried = fields.get("free_bytes"), fields.get("tried_bytes")
    if isinstance(free, int) and isinstance(tried, int):
        yield (
            f"The message contradicts itself: {show_bytes(free)} free, {show_bytes(tried)} asked for. Another process "
            "may have given memory back in between, the free memory may be in pieces or in a pool that the driver does "
            "not see, or the allocator itself is in trouble. nvidia-smi sampled every second during a new run tells "
            "them apart."
        )


def _algebra(run: Run, facts: Facts) -> Iterator[str]:
    """How the fork's batch sizes become sequences per GPU, where a dialect multiplies or divides them."""
    held, micro = run.knobs.get("actor.sequences_per_gpu"), run.knobs.get("actor.micro_batch")
    if held is None or micro is None or "samples" not in micro.note or not isinstance(held.value, (int, float)):
        return
    binds = facts.get("batch.binds")
    verdict = "it is not what binds" if binds is not None and binds.value is True else "it binds"
    yield (
        f"One GPU holds {held.note} sequences of a step. {run.title} turns {micro.key} into sequences by "
        f"(value // data-parallel ranks) * samples: {micro.note}. So a pass holds "
        f"{min(float(held.value), float(micro.value or 0)):g} sequences, and of the micro-batch one can say: {verdict}."
    )


def _more_nodes(run: Run, cause: str) -> Iterator[str]:
    if cause != "library-regression" or run.model is None:
        return
    full, shard = 2 * run.model.parameters, 2 * run.model.parameters // max(1, run.topology.actor_gpus)
    yield (
        f"More nodes do not help: the gathered weights that are not released grow to up to 2 bytes per parameter, "
        f"{show_bytes(full)}, on every GPU, however many share the model; the shard itself is only {show_bytes(shard)} "
        f"on each of {run.topology.actor_gpus} GPUs, so there is little left to divide."
    )


def _inside_generate(run: Run, crash: Crash) -> Iterator[str]:
    functions = [frame.function for frame in crash.frames]
    if crash.phase == "log_prob" and "generate_sequences" in functions:
        yield (
            f"The traceback passes through generate_sequences, but the engine had already finished: {run.title} "
            f"computes the old log-probabilities inside it. The phase is {PHASE_TITLES['log_prob']}, not the rollout."
        )


def _settle(crash: Crash) -> Iterator[str]:
    if crash.verdict == "unclear" and crash.unclear_because and crash.lines_read:
        hints = "; ".join(hint.rstrip(".") for hint in crash.settle_by)
        settle = f" To settle it: {hints}." if hints else ""
        yield f"{crash.unclear_because[:1].upper()}{crash.unclear_because[1:].rstrip('.')}.{settle}"
