"""Writes who holds host RAM: the victim of a kill, what the sums explain, and what whole copies of the model take."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.crash.evidence import Crash
from advisor.diagnosis.fact import Facts, value_of
from advisor.diagnosis.facts import DiagnosisInputs
from advisor.diagnosis.state_facts import MASTERS_AND_MOMENTS
from advisor.language import listed, say, sentences
from advisor.memory.calibrate import Correction
from advisor.memory.cells import TITLES, Ledger
from advisor.memory.constants import BF16, FP32
from advisor.run.run import Run
from advisor.run.shape import served_bits
from advisor.units import GIB, show_bytes, show_params

BITS = 8 * BF16
SUMS = ("host.offload_share", "host.states_share", "host.cpu_adam", "host.off_card")
"""Facts that say what offloaded states take, as the cause tells it."""
OF_DATA = ("loaders-fill-host", "data-preparation", "workers-hold-data", "object-store")
"""Causes beside which no copy of a model counts."""
LOADING, NUMA = "loading-per-rank", "numa-bound"


def host_remarks(known: DiagnosisInputs, facts: Facts, found: tuple[Correction, ...], cause: str) -> Iterator[str]:
    """What is known of the RAM of a node, the victim first."""
    yield from _victim(known.crash, facts)
    if (bound := facts.get("numa.bound")) is not None and cause not in ("", NUMA):
        yield say(
            "The command starts each process under {limit}: it may take the RAM of the named NUMA nodes alone, not "
            "that of the whole machine.",
            limit=bound.because,
        )
    yield from _loading(known) if cause == LOADING else ()
    yield from _explained(known.ledger, found) if not known.run.quoted else ()  # what was not seen may hold it
    summed = cause == "offload-fills-host" and any(name in facts for name in SUMS)
    yield from _whole_copies(known, facts) if cause not in OF_DATA and not summed else ()
    yield from _models(known.run, cause)
    yield from _gathered_to_save(known, cause)


def _victim(crash: Crash, facts: Facts) -> Iterator[str]:
    if value_of(facts, "host.victim") is not True or not crash.evidence:
        return
    fields = crash.evidence[0].fields
    name, held, used = fields.get("task"), fields.get("task_bytes"), fields.get("node_used_bytes")
    if isinstance(held, int) and isinstance(used, int):
        sizes = {"held": held / GIB, "used": used / GIB}
        told = (
            say(
                "{task} was killed while it held {held:.2f} of {used:.2f} GiB in use: it is the victim, not the cause.",
                task=name,
                **sizes,
            )
            if name
            else say(
                "The task was killed while it held {held:.2f} of {used:.2f} GiB in use: it is the victim, not the "
                "cause.",
                **sizes,
            )
        )
        look = "" if crash.top_users else say("Look at the top users.")
        yield sentences((told, say("Ray kills the newest task, not the largest."), look))


def _explained(ledger: Ledger, found: tuple[Correction, ...]) -> Iterator[str]:
    for correction in found:
        if not correction.is_level:  # a limit that was passed, or a reading before the end, is not what was in use
            continue
        phase = ledger.phase("host", correction.phase)
        if phase is None:
            continue
        known = [cell for cell in phase.cells if cell.owner != "unexplained"]
        low, expected, high = (sum(getattr(c, part) for c in known) for part in ("low", "expected", "high"))
        largest = sorted(known, key=lambda cell: -cell.expected)[:4]
        parts = listed(f"{TITLES[cell.owner]} {cell.expected / GIB:.0f}" for cell in largest)
        yield say(
            "The ledger explains {expected:.0f} GiB ({low:.0f}–{high:.0f}) of the {measured:.0f} GiB in use ({parts}); "
            "the other {extra:.0f} GiB are not explained by any setting. If RAM grows from step to step, that part is "
            "a leak, and these changes only delay it.",
            expected=expected / GIB,
            low=low / GIB,
            high=high / GIB,
            measured=correction.measured / GIB,
            parts=parts,
            extra=correction.extra / GIB,
        )


def _whole_copies(known: DiagnosisInputs, facts: Facts) -> Iterator[str]:
    """What copies of the whole model take of a node's RAM, where no table of users and no sum says what lay there: by
    them a user tells loading from saving, offload and data."""
    run, machine, memory = known.run, known.machine, value_of(facts, "memory")
    if memory != "host" or run.model is None or "host.top_user" in facts:
        return
    if known.ledger.host and known.ledger.host_limit is not None:
        return
    ranks = min(machine_ranks, run.topology.actor_gpus) if (machine_ranks := len(machine.usable)) else 0
    ram, whole = machine.host.ceiling_bytes, BF16 * run.model.parameters
    told = {
        "parameters": show_params(run.model.parameters),
        "whole": show_bytes(whole),
        "fp32": show_bytes(FP32 * run.model.parameters),
        "count": ranks,
        "loaded": show_bytes(whole * ranks),
        "loaded_fp32": show_bytes(FP32 * run.model.parameters * ranks),
        "ram": show_bytes(ram or 0),
        "states": show_bytes((BF16 + BF16 + MASTERS_AND_MOMENTS) * run.model.parameters),
    }
    each = (
        say("{count} ranks that each load one hold {loaded} ({loaded_fp32} in fp32)", **told)
        if ranks > 1
        else say("each rank that loads it by itself holds one", **told)
    )
    yield sentences(
        (
            say(
                "A whole copy of the model ({parameters} parameters) is {whole} in bf16, {fp32} in fp32: {each}, "
                "and a gather to save or merge it holds one once.",
                **told,
                each=each,
            ),
            "" if run.trains_adapters else say("All states, offloaded, are {states}.", **told),
            say("A node has {ram}.", **told) if ram else "",
            _unpacked(run),
        )
    )


def _unpacked(run: Run) -> str:
    """That files of few bits a weight come to 16, where the model is published so; else ""."""
    bits = served_bits(run.model_name, run.model) if run.model is not None else BITS
    return "" if bits >= BITS else say("Its files hold {bits} bits, which loading unpacks to 16.", bits=bits)


def _loading(known: DiagnosisInputs) -> Iterator[str]:
    """What the model takes while it loads, by how its framework does that, and what a copy in each process would."""
    run, phase = known.run, known.ledger.phase("host", "model_load")
    held = next((cell for cell in phase.cells if cell.owner == "loading"), None) if phase is not None else None
    if held is None or run.model is None:
        return
    ranks = min(run.topology.gpus_per_node, run.topology.actor_gpus)
    least, every = (width * run.model.parameters * ranks for width in (BF16, FP32))
    told = {"formula": held.formula, "size": show_bytes(held.expected), "count": ranks}
    once = run.knobs.get("host.load_once")  # as is stated, the sum says which of both it was
    settled = (once is not None and once.source not in ("assumed", "default")) or run.number("actor.quantized_bits")
    if held.expected < every and ranks > 1 and not settled:
        yield say(
            "A copy of the model in each of the {count} processes of a node is {least} in 16 bits, {every} in 32; "
            "shared out while it loads, {size}. The table of memory users tells which of both it was.",
            **told,
            least=show_bytes(least),
            every=show_bytes(every),
        )
    else:
        yield say("By how it loads: {formula}, {size} on a node.", **told)
    yield from filter(None, (_unpacked(run),))


def _models(run: Run, cause: str) -> Iterator[str]:
    """What the models of one process come to, if all are as large as the trained one."""
    if cause != "models-in-one-process" or run.model is None:
        return
    lora = run.trains_adapters
    roles = [
        *(("reference",) if run.recipe.reference and not lora else ()),
        *(("critic", "reward") if run.has_critic else ()),
    ]
    count = 1 + len(roles)
    if not roles:
        return  # what one copy takes is said beside it
    yield say(
        "{count} models stand in this process ({algorithm}); if all are as large as {model}, they come to {full} in "
        "fp32 and to {half} in bf16.",
        count=count,
        algorithm=run.recipe.title,
        model=run.model_name or run.model.name,
        full=show_bytes(2 * BF16 * run.model.parameters * count),
        half=show_bytes(BF16 * run.model.parameters * count),
    )


def _gathered_to_save(known: DiagnosisInputs, cause: str) -> Iterator[str]:
    """What one rank gathers for a checkpoint in one piece, by the parameters alone."""
    run, ram = known.run, known.machine.host.ceiling_bytes
    if cause != "checkpoint-in-ram" or run.model is None or run.trains_adapters:
        return
    count = run.model.parameters
    told = {
        "parameters": show_params(count),
        "weights": show_bytes(BF16 * count),
        "least": show_bytes(3 * BF16 * count),
        "most": show_bytes((BF16 + MASTERS_AND_MOMENTS) * count),
        "ram": show_bytes(ram or 0),
    }
    yield sentences(
        (
            say(
                "Gathered whole on one rank, {parameters} parameters are {weights} in bf16; with the optimizer's state "
                "{least} (moments in bf16) to {most} (fp32 masters and moments).",
                **told,
            ),
            say("A node has {ram}.", **told) if ram else "",
        )
    )
