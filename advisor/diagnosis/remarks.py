"""Writes the remarks on a crash: the victim, what the ledger explains, contradictions, the batch's algebra."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil

from advisor.crash.evidence import Crash, Evidence, ReadingKind
from advisor.diagnosis.allocation import FACT
from advisor.diagnosis.fact import Facts
from advisor.diagnosis.facts import NEARLY_ALL, DiagnosisInputs, rising_course
from advisor.diagnosis.model_facts import names_adapters, pass_tokens
from advisor.diagnosis.state_facts import MASTERS_AND_MOMENTS
from advisor.knowledge.schema import Allocation
from advisor.language import clauses, listed, say, sentences
from advisor.memory.attribution import completes, tried_bytes, usual_vocabularies
from advisor.memory.calibrate import Correction
from advisor.memory.cells import TITLES, Ledger, Match, Place
from advisor.memory.constants import BF16, FP32, TYPICAL_IMAGE_PIXELS
from advisor.memory.fit import PLACES, capacity_of
from advisor.memory.otherwise import FILLED
from advisor.run.run import Run
from advisor.units import GIB, show_bytes, show_params
from advisor.words import PHASE_TITLES, sentence, when

SAID_ALREADY = ("not-in-the-settings", "not-memory", "nothing-failed", "unclear")
"""Causes that say so themselves, or without a shortage."""
LOGITS = "logits-too-big"
LOADING = "loading-per-rank"
LARGE = 4 * GIB
"""Bytes of logits from which they are worth a word where the model is not known (judgement)."""
A_THOUSAND = 1_000
"""Tokens for which logits are told where nobody knows how many a pass has."""
MANY = 2
"""Cards from which on there is something to share out."""
WAYS = 3
"""Shown at most, of the ways in which a run that fits by count would fill its card."""
OF_PASSES = ("log_prob", "actor_update", "critic_update", "validation")
"""Phases in which a batch goes through the model and leaves logits."""
GROWING: tuple[tuple[Place, ReadingKind], ...] = (("host", "host_used"), ("gpu", "allocated"))
"""Readings that a run repeats at the same moment of each step."""
PACE = 20
"""Readings, the last ones, from which the pace is taken."""
_EVERYWHERE = ("0.0.0.0", "::", "0")  # noqa: S104  (nothing is bound)
"""Addresses that mean all of this node's."""
_DYING = ("cause", "echo", "victim", "pointer")
_ADDRESS = re.compile(r"\bip=([0-9A-Fa-f.:]{3,45}|[\w.-]{1,60})")
"""Ray's way of saying where a worker runs: "(pid=67842, ip=10.0.0.11, …"."""


def remarks(
    known: DiagnosisInputs, facts: Facts, found: tuple[Correction, ...], cause: str, made: Allocation | None = None
) -> tuple[str, ...]:
    """All remarks, the most important first. `made`: what the failing line was making."""
    crash, run, ledger = known.crash, known.run, known.ledger
    return (
        *_nearly_full(crash),
        *(_loading(known) if cause == LOADING else ()),
        *ledger.doubts,
        *(_made(made, facts) if made is not None and made.leads else ()),  # else its cause has said it
        *(_counted(known, facts, cause) if (run.settings or crash.settings) and not run.quoted else ()),
        *_address(crash),
        *_victim(crash, facts),
        *_growing(crash, ledger),
        *_explained(ledger, found),
        *_contradiction(crash, facts),
        *_beyond_any_card(facts),
        *_unsharded(run),
        *_whole_copies(known, facts),
        *_whole_on_card(known, facts, cause),
        *(_one_pass(run) if _in_a_pass(facts) else ()),
        *_in_tokens(run, known.attribution if _may_be_logits(facts) else []),
        *_as_weights(known, facts),
        *_pictures(known, facts),
        *_cache_that_fits(crash),
        *_models(run, cause),
        *_algebra(run, facts),
        *_more_nodes(run, cause),
        *_first_node(run, crash),
        *_inside_generate(run, crash),
        *_settle(crash),
        *crash.doubts,
    )


def _counted(known: DiagnosisInputs, facts: Facts, cause: str) -> Iterator[str]:
    """That what can be counted fits all the same, where the run died of that memory, and in which way it would not."""
    crash, ledger, memory = known.crash, known.ledger, facts.get("memory")
    place: Place | None = next((one for one in PLACES if memory is not None and memory.value == one), None)
    if place is None or memory is None or memory.source == "script" or cause in SAID_ALREADY:
        return
    phase, room = ledger.phase(place, crash.phase) or ledger.crowded(place), capacity_of(ledger, place)
    if phase is None or not room or phase.expected > room * FILLED or ledger.missing:
        return
    if any(cell.owner == "unexplained" for cell in phase.cells):
        return
    told = {"size": show_bytes(phase.expected), "total": show_bytes(room), "when": when(phase.phase)}
    first = facts.get("first_step")
    ways = known.otherwise(first is not None and first.value is False) if place == "gpu" and known.otherwise else ()
    if ways:
        yield say("By what is counted {size} of {total} are in use {when}, too little to run out.", **told)
        told["ways"] = clauses(way.clause for way in ways[:WAYS])
        yield say("What would fill {total}: {ways}.", **told)
        return
    yield say(
        "By what is counted {size} of {total} are in use {when}, too little to run out. What is missing is a "
        "length, a model or a file that was seen otherwise, another process, or memory that grows: torch's own "
        "message, or nvidia-smi right before it fails, tells which."
        if place == "gpu"
        else "By what is counted {size} of {total} are in use {when}, too little to run out. What is missing is "
        "data, a copy of weights or a process that no setting shows: RAM per process right before it fails tells "
        "which.",
        **told,
    )


def _made(made: Allocation, facts: Facts) -> Iterator[str]:
    """What the failing line was making, and what that follows."""
    yield say("What failed is {title} ({where}).", title=made.title, where=facts[FACT].because)
    yield " ".join(made.says.split())


def _may_be_logits(facts: Facts) -> bool:
    """Whether what was asked for may be logits, by the failing line."""
    named = facts.get("frame.cause")
    return "frame.attention" not in facts and (named is None or named.value == LOGITS)


def _address(crash: Crash) -> Iterator[str]:
    """Where nothing answered, and whether that can be an address to call at all."""
    first = crash.evidence[0] if crash.evidence else None
    if first is None or crash.verdict != "not_oom" or not first.fields.get("port"):
        return
    told = {"host": first.fields.get("host"), "port": first.fields.get("port")}
    if told["host"] in _EVERYWHERE:
        yield say(
            "Nothing answered at {host}:{port}. {host} is what a server listens on; another node is reached by its own "
            "address.",
            **told,
        )
    else:
        yield say("Nothing answered at {host}:{port}.", **told)


def _victim(crash: Crash, facts: Facts) -> Iterator[str]:
    fact = facts.get("host.victim")
    if fact is None or fact.value is not True or not crash.evidence:
        return
    fields = crash.evidence[0].fields
    name, held, used = fields.get("task"), fields.get("task_bytes"), fields.get("node_used_bytes")
    if isinstance(held, int) and isinstance(used, int):
        sizes = {"held": held / GIB, "used": used / GIB}
        yield (
            say(
                "{task} was killed while it held {held:.2f} of {used:.2f} GiB in use: it is the victim, not the cause. "
                "Ray kills the newest task, not the largest; look at the top users.",
                task=name,
                **sizes,
            )
            if name
            else say(
                "The task was killed while it held {held:.2f} of {used:.2f} GiB in use: it is the victim, not the "
                "cause. Ray kills the newest task, not the largest; look at the top users.",
                **sizes,
            )
        )


def _growing(crash: Crash, ledger: Ledger) -> Iterator[str]:
    """Readings of the log that rise from step to step, and when what is there would be full at their pace."""
    for place, kind in GROWING:
        course = rising_course(crash.readings, kind)
        if course is None:
            continue
        first, last, recent = course[0], course[-1], course[-PACE:]  # the last ones are never thinned
        told = {"first": show_bytes(first.bytes), "last": show_bytes(last.bytes), "line": last.line}
        yield (
            say("Host RAM in use rose from {first} to {last} by the log (line {line}).", **told)
            if place == "host"
            else say("GPU memory allocated rose from {first} to {last} by the log (line {line}).", **told)
        )
        pace, room = (last.bytes - recent[0].bytes) / (len(recent) - 1), capacity_of(ledger, place)
        if pace > 0 and room is not None and room > last.bytes:
            left = {
                "size": show_bytes(round(pace)),
                "room": show_bytes(room),
                "count": ceil((room - last.bytes) / pace),
            }
            yield say(
                "It grows by {size} a reading: at that pace {room} would be full after {count} more readings.",
                **left,
            )


def _nearly_full(crash: Crash) -> Iterator[str]:
    """How full the host was before an end that nothing explains: short of a proof, and what speaks for one."""
    if crash.verdict != "unclear" or crash.host_filled is None or crash.host_filled[0] < NEARLY_ALL:
        return
    percent, line = crash.host_filled
    yield say(
        "Before that, {percent:.1f}% of the machine's RAM were in use (line {line}): if it was killed, then most "
        "likely because host RAM ran out.",
        percent=percent,
        line=line,
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


def _whole_on_card(known: DiagnosisInputs, facts: Facts, cause: str) -> Iterator[str]:
    """What the weights take of a card that loads them whole, and of each that shares them: one number decides."""
    run, phase, card = known.run, facts.get("phase"), known.ledger.gpu_capacity or known.machine.gpu_bytes
    bits, packed = run.number("actor.quantized_bits"), facts.get("prequantised")
    loading = phase is not None and phase.value == "model_load"
    if cause != "states-too-big" or not loading or run.model is None or not card:
        return
    if (bits is not None and bits < 8 * BF16) or (packed is not None and packed.value is True):
        return
    whole, cards = BF16 * run.model.parameters, len(known.machine.usable) * (known.machine.nodes or 1)
    told = {
        "parameters": show_params(run.model.parameters),
        "whole": show_bytes(whole),
        "fp32": show_bytes(FP32 * run.model.parameters),
        "card": show_bytes(card),
        "count": cards,
        "share": show_bytes(whole // max(1, cards)),
    }
    yield say(
        "The weights ({parameters} parameters) take {whole} in bf16 ({fp32} in fp32) of each card that loads them "
        "whole; a card has {card}.",
        **told,
    )
    if cards >= MANY and known.machine.sources.get("gpus") != "log":
        yield say("Shared over {count} cards they are {share} on each.", **told)


def _whole_copies(known: DiagnosisInputs, facts: Facts) -> Iterator[str]:
    """What copies of the whole model take of a node's RAM, where no table of users and no sum says what lay there: by
    them a user tells loading from saving, offload and data."""
    run, machine, memory = known.run, known.machine, facts.get("memory")
    if memory is None or memory.value != "host" or run.model is None or "host.top_user" in facts:
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
                "A whole copy of the model ({parameters} parameters) is {whole} in bf16, {fp32} in fp32: {each}, a "
                "gather to save or merge it holds one once, and all states, offloaded, are {states}.",
                **told,
                each=each,
            ),
            say("A node has {ram}.", **told) if ram else "",
        )
    )


def _loading(known: DiagnosisInputs) -> Iterator[str]:
    """What the model takes while it loads, by how its framework does that, and what a copy in each process would."""
    run, phase = known.run, known.ledger.phase("host", "model_load")
    held = next((cell for cell in phase.cells if cell.owner == "loading"), None) if phase is not None else None
    if held is None or run.model is None:
        return
    ranks = min(run.topology.gpus_per_node, run.topology.actor_gpus)
    least, every = (width * run.model.parameters * ranks for width in (BF16, FP32))
    told = {"formula": held.formula, "size": show_bytes(held.expected), "count": ranks}
    if held.expected < every and ranks > 1:
        yield say(
            "A copy of the model in each of the {count} processes of a node is {least} in 16 bits, {every} in 32; "
            "shared out while it loads, {size}. The table of memory users tells which of both it was.",
            **told,
            least=show_bytes(least),
            every=show_bytes(every),
        )
    else:
        yield say("By how it loads: {formula}, {size} on a node.", **told)


def _unsharded(run: Run) -> Iterator[str]:
    """What lies on each card where a process per card is started and nothing in sight shards."""
    count = run.topology.actor_gpus
    if not run.unsharded or run.model is None or count < MANY:
        return
    each = run.mechanics
    states = each.weight_bytes + each.gradient_bytes + each.master_bytes + each.moment_bytes
    adapters = names_adapters(run)
    told = {
        "launcher": run.unsharded,
        "count": count,
        "weights": show_bytes(BF16 * run.model.parameters),
        "states": show_bytes(states * run.model.parameters),
        "bytes": states,
        "parameters": show_params(run.model.parameters),
        "setting": adapters,
    }
    if adapters:
        yield say(
            "{launcher} starts a process on each of {count} cards, and nothing in the launch shards: each card holds "
            "all the frozen weights ({parameters} parameters, {weights} in bf16; less where they are packed: "
            "{setting}).",
            **told,
        )
    else:
        yield say(
            "{launcher} starts a process on each of {count} cards, and nothing in the launch shards: unless the "
            "program does, each card holds the whole model, {weights} of weights in bf16 and {states} with gradients, "
            "masters and AdamW's moments ({parameters} parameters × {bytes:g} bytes). More cards do not help before a "
            "sharding file is given (DeepSpeed ZeRO-3, FSDP).",
            **told,
        )


def _in_a_pass(facts: Facts) -> bool:
    """Whether it may have died in a pass over a batch: GPU memory, as far as is known, in one of those phases."""
    memory, phase = (facts[name].value if name in facts else None for name in ("memory", "phase"))
    return memory in (None, "gpu", "unknown") and phase in (None, "unknown", *OF_PASSES)


def _one_pass(run: Run) -> Iterator[str]:
    """What the logits of one pass take where the model is not known: of its tokens, else of each thousand."""
    if run.model is not None or run.is_on("actor.fused_loss") or not run.settings:
        return
    words, tokens = usual_vocabularies()[0], pass_tokens(run)
    size = round(FP32 * words * (tokens or A_THOUSAND))
    told = {"tokens": f"{tokens or A_THOUSAND:,.0f}", "words": words, "size": show_bytes(size)}
    if tokens is None and run.framework != "unknown":
        yield say(
            "With a usual vocabulary of {words:,} each {tokens} tokens of a pass take {size} for each fp32 copy of "
            "their logits, and loss and backward pass hold several.",
            **told,
        )
    elif tokens is not None and size > LARGE:
        yield say(
            "A pass holds up to {tokens} tokens: with a usual vocabulary of {words:,} each fp32 copy of its logits "
            "takes {size}, and loss and backward pass hold several.",
            **told,
        )


def _in_tokens(run: Run, matches: Sequence[Match]) -> Iterator[str]:
    """How many tokens the size asked for would be, where no model is named or they are more than the run's budget."""
    of_logits = next((match for match in matches if match.of_logits and not match.matches), None)
    bounds = run.is_on("actor.dynamic_batch")
    budget = run.knobs.get("actor.tokens_per_gpu") if bounds else None
    if of_logits is None or (run.model is not None and budget is None):
        return
    told = {"tried": show_bytes(of_logits.bytes), "formula": of_logits.formula}
    if run.model is None:
        yield say("The {tried} asked for, counted as logits: {formula}. Hold that against your lengths.", **told)
    elif budget is not None and isinstance(budget.value, (int, float)) and of_logits.tokens > budget.value:
        told |= {"key": budget.key, "budget": f"{budget.value:g}"}
        yield say(
            "The {tried} asked for, counted as logits: {formula}. That is above {key} = {budget}: one sample alone is "
            "longer, or the budget does not bound this pass.",
            **told,
        )


def _as_weights(known: DiagnosisInputs, facts: Facts) -> Iterator[str]:
    """That the size asked for is, or may be, of weights, and whether it completes the whole model on this card."""
    crash, model = known.crash, known.run.model
    may_be = next((match for match in known.attribution if match.parameters), None)
    each = may_be.whole if may_be is not None else completes(crash, model.parameters) if model is not None else 0
    count = may_be.parameters if may_be is not None else model.parameters if model is not None else 0
    if may_be is not None:
        told = {"tried": show_bytes(may_be.bytes), "formula": may_be.formula, "tensor": may_be.tensor}
        yield say("The {tried} asked for is also the size of the {tensor}: {formula}.", **told)
    empty = facts.get("gpu.empty")
    if each and not (empty is not None and empty.value is True):  # where most of the card is free, nothing fills it
        fields = crash.evidence[0].fields
        sizes = {"tried": show_bytes(tried_bytes(crash) or 0), "allocated": show_bytes(int(fields["allocated_bytes"]))}
        yield say(
            "With it the {allocated} allocated come to the whole model, {parameters} parameters × {bytes} bytes: most "
            "likely it is being put on this card whole, and nothing shards it.",
            parameters=show_params(count),
            bytes=each,
            **sizes,
        )


def _pictures(known: DiagnosisInputs, facts: Facts) -> Iterator[str]:
    """What the sums count for a picture, where nothing limits its pixels and the card ran out."""
    memory = facts.get("memory")
    if known.run.unlimited_pictures and memory is not None and memory.value == "gpu":
        yield pixels_unlimited()


def pixels_unlimited() -> str:
    """That the sums count a usual picture, and a larger one is possible: a word on the sums, not on the crash."""
    return say(
        "Nothing limits the pixels of a picture, and the sums count {pixels:,} of each: a photograph has ten to "
        "fifty times as many, which the vision tower and the rows hold.",
        pixels=TYPICAL_IMAGE_PIXELS,
    )


def _cache_that_fits(crash: Crash) -> Iterator[str]:
    """The engine's own count of the cache that would fit."""
    told = crash.engine_figures.get("rollout.cache_that_fits", "")
    if told.isdigit():
        size = show_bytes(int(told))
        yield say("The engine's own line says what fits: --kv-cache-memory={bytes} ({size}).", bytes=told, size=size)


def _contradiction(crash: Crash, facts: Facts) -> Iterator[str]:
    fact = facts.get("gpu.free_exceeds_request")
    if fact is None or fact.value is not True:
        return
    fields = crash.evidence[0].fields
    free, tried = fields.get("free_bytes"), fields.get("tried_bytes")
    if isinstance(free, int) and isinstance(tried, int):
        yield say(
            "The message contradicts itself: {free} free, {tried} asked for. Another process may have given memory "
            "back in between, the free memory may be in pieces or in a pool that the driver does not see, or the "
            "allocator itself is in trouble. nvidia-smi sampled every second during a new run tells them apart.",
            free=show_bytes(free),
            tried=show_bytes(tried),
        )


def _beyond_any_card(facts: Facts) -> Iterator[str]:
    """That a request is larger than the whole card, so that nothing but a smaller tensor can help."""
    beyond = facts.get("gpu.beyond_card")
    if beyond is not None and beyond.value is True:
        yield say(
            "{because}, so that no share, offload or sharding makes room for it: look at the rows and tokens of that "
            "one pass, at packing, and at an attention that was patched.",
            because=beyond.because,
        )


def _algebra(run: Run, facts: Facts) -> Iterator[str]:
    """How the fork's batch sizes become sequences per GPU, where a dialect multiplies or divides them."""
    held, micro = run.knobs.get("actor.sequences_per_gpu"), run.knobs.get("actor.micro_batch")
    if held is None or micro is None or not micro.times_samples or not isinstance(held.value, (int, float)):
        return
    binds = facts.get("batch.binds")
    told = {
        "held": held.note,
        "framework": run.title,
        "key": micro.key,
        "how": micro.note,
        "count": min(float(held.value), float(micro.value or 0)),
    }
    if not told["count"]:
        yield say(
            "{framework} turns {key} into sequences by (value // data-parallel ranks) * samples: {how}. So no GPU gets "
            "a sequence: the value is not valid here, and is to be at least as many as there are ranks.",
            **told,
        )
    elif binds is not None and binds.value is True:
        yield say(
            "One GPU holds {held} sequences of a step. {framework} turns {key} into sequences by (value // "
            "data-parallel ranks) * samples: {how}. So a pass holds {count:g} sequences, and of the micro-batch one "
            "can say: it is not what binds.",
            **told,
        )
    else:
        yield say(
            "One GPU holds {held} sequences of a step. {framework} turns {key} into sequences by (value // "
            "data-parallel ranks) * samples: {how}. So a pass holds {count:g} sequences, and of the micro-batch one "
            "can say: it binds.",
            **told,
        )


def _first_node(run: Run, crash: Crash) -> Iterator[str]:
    """Where a run on several nodes died first, by the first line that names a node, and who followed."""
    if run.topology.nodes < 2 or crash.verdict != "oom":
        return
    now = [evidence for evidence in crash.evidence if evidence.runs_ago == 0 and evidence.role in _DYING]
    named = list(dict.fromkeys(node for evidence in now if (node := _node_of(evidence))))
    if not named:
        return
    told = {"node": named[0], "nodes": run.topology.nodes, "others": listed(named[1:5])}
    if len(named) > 1:
        yield say("Of the {nodes} nodes, {node} died first; then {others}.", **told)
    else:
        yield say("Of the {nodes} nodes, {node} died first.", **told)


def _node_of(evidence: Evidence) -> str:
    """Name or address of the node that a line speaks of; "" where it names none."""
    for name in ("ip", "node"):
        if found := evidence.fields.get(name):
            return str(found)
    match = _ADDRESS.search(evidence.text)
    return match[1] if match else ""


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


def _more_nodes(run: Run, cause: str) -> Iterator[str]:
    if cause != "library-regression" or run.model is None or not run.is_on("leak.gathered_weights"):
        return
    full = BF16 * run.model.parameters
    shard = full // max(1, run.topology.actor_gpus)
    yield say(
        "More nodes do not help: the gathered weights that are not released grow to up to 2 bytes per parameter, "
        "{full}, on every GPU, however many share the model; the shard itself is only {shard} on each of {count} "
        "GPUs, so there is little left to divide.",
        full=show_bytes(full),
        shard=show_bytes(shard),
        count=run.topology.actor_gpus,
    )


def _inside_generate(run: Run, crash: Crash) -> Iterator[str]:
    functions = [frame.function for frame in crash.frames]
    if crash.phase == "log_prob" and "generate_sequences" in functions:
        yield say(
            "The traceback passes through generate_sequences, but the engine had already finished: {framework} "
            "computes the old log-probabilities inside it. The phase is {phase}, not the rollout.",
            framework=run.title,
            phase=PHASE_TITLES["log_prob"],
        )


def _settle(crash: Crash) -> Iterator[str]:
    if crash.verdict == "unclear" and crash.unclear_because and crash.lines_read:
        hints = clauses(hint.rstrip(".。") for hint in crash.settle_by)
        settle = say("To settle it: {hint}.", hint=hints) if hints else ""
        yield sentences((sentence(crash.unclear_because.rstrip(".。")), settle))
