"""Writes the remarks on a crash: what the sums say of it, contradictions, what shards the states, how batches count."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from advisor.crash.evidence import Crash, Evidence, ReadingKind
from advisor.diagnosis.allocation import FACT, OPEN, heads
from advisor.diagnosis.course_facts import rising_course
from advisor.diagnosis.fact import Facts, value_of
from advisor.diagnosis.facts import NEARLY_ALL, DiagnosisInputs
from advisor.diagnosis.host_remarks import LOADING, host_remarks
from advisor.diagnosis.size_remarks import as_scores, size_remarks, state_remarks
from advisor.knowledge.schema import Allocation
from advisor.language import clauses, listed, say, sentences
from advisor.memory.batches import far_beyond_a_row
from advisor.memory.calibrate import Correction
from advisor.memory.cells import Ledger, Place
from advisor.memory.constants import BF16, TYPICAL_IMAGE_PIXELS
from advisor.memory.fit import PLACES, capacity_of
from advisor.memory.seen_sums import FILLED
from advisor.regex import regex
from advisor.rules.tree import as_number
from advisor.run.run import Run
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, sentence, when

ELSEWHERE = "not-in-the-settings"
SAID_ALREADY = (ELSEWHERE, "not-memory", "nothing-failed", "unclear")
"""Causes that say so themselves, or without a shortage."""
OF_A_PASS = (*OPEN, "logits-too-big", "evaluation-too-big", "room-lost", "gpu-growth")
"""Causes to which the pictures of a batch may belong."""
RESUMING = "resume-too-big"
"""The cause that says so itself."""
WAYS = 3
"""Shown at most, of the ways in which a run that fits by count would fill its card."""
GROWING: tuple[tuple[Place, ReadingKind], ...] = (("host", "host_used"), ("gpu", "allocated"))
"""Readings that a run repeats at the same moment of each step."""
PACE = 20
"""Readings, the last ones, from which the pace is taken."""
_EVERYWHERE = ("0.0.0.0", "::", "0")  # noqa: S104  (nothing is bound)
"""Addresses that mean all of this node's."""
_DYING = ("cause", "echo", "victim", "pointer")
_ADDRESS = regex(r"\bip=([0-9A-Fa-f.:]{3,45}|[\w.-]{1,60})")
"""Ray's way of saying where a worker runs: "(pid=67842, ip=10.0.0.11, …"."""


def remarks(
    known: DiagnosisInputs, facts: Facts, found: tuple[Correction, ...], cause: str, made: Allocation | None = None
) -> tuple[str, ...]:
    """All remarks, the most important first. `made`: what the failing line was making."""
    crash, run, ledger = known.crash, known.run, known.ledger
    host = tuple(host_remarks(known, facts, found, cause))
    leads = cause == LOADING or value_of(facts, "memory") == "host"
    return (
        *_nearly_full(crash),
        *_a_digit_too_many(run, ledger, crash),
        *_alone(run, facts),
        *(host if leads else ()),  # copies in numbers: they are the cause, or decide among causes
        *(ledger.doubts if value_of(facts, "memory") != "none" else ()),
        *(_made(known, made, facts, cause) if made is not None and made.leads else ()),  # else its cause has said it
        *(_counted(known, facts, cause) if (run.settings or crash.settings) and not run.quoted else ()),
        *_address(crash),
        *_growing(crash, ledger),
        *(() if leads else host),
        *_contradiction(crash, facts),
        *_by_own_readings(facts),
        *_engine_there(facts, cause),
        *_resumes(facts, cause),
        *state_remarks(known, facts, cause),
        *size_remarks(known, facts, cause, made),
        *(_pictures(known, facts) if cause in OF_A_PASS else ()),
        *_cache_that_fits(crash),
        *_algebra(run, facts),
        *_more_nodes(run, cause),
        *_first_node(run, crash),
        *_inside_generate(run, crash),
        *_settle(crash),
        *_in_vain(facts),
        *_other_run(facts),
        *crash.doubts,
    )


def _a_digit_too_many(run: Run, ledger: Ledger, crash: Crash) -> Iterator[str]:
    """That the budget of the pass that died takes many times its longest row, and more than the card has."""
    phase = ledger.phase("gpu", crash.phase)
    found = far_beyond_a_row(run, crash.phase) if phase is not None else None
    if phase is None or found is None or phase.expected <= (ledger.gpu_capacity or phase.expected):
        return
    budget, length = round(run.number(found[0].name) or 0), found[1]
    told = {"key": found[0].key, "budget": budget, "rows": budget // length, "length": length, "tenth": budget // 10}
    yield say(
        "{key} = {budget} puts {rows} rows of the longest length ({length:,} tokens) into one pass: was {tenth} meant?",
        **told,
    )


def _in_vain(facts: Facts) -> Iterator[str]:
    """That what the report calls tried in vain is not proposed again first."""
    if (tried := facts.get("in_vain")) is not None:
        yield sentences((sentence(tried.because), say("Steps of that kind stand last.")))


def _other_run(facts: Facts) -> Iterator[str]:
    """That another run of the same post filled the other memory, which no step may fill more."""
    if (other := facts.get("other.full")) is not None:
        told = (
            say("The other one filled host RAM: what moves memory there stands last.")
            if other.value == "host"
            else say("The other one filled the card: what moves memory there stands last.")
        )
        yield sentences((sentence(other.because), told))


def _counted(known: DiagnosisInputs, facts: Facts, cause: str) -> Iterator[str]:
    """That what can be counted fits all the same, where the run died of that memory, and in which way it would not."""
    crash, ledger, memory = known.crash, known.ledger, facts.get("memory")
    place: Place | None = next((one for one in PLACES if memory is not None and memory.value == one), None)
    elsewhere = cause == ELSEWHERE
    if place is None or memory is None or memory.source == "script" or (cause in SAID_ALREADY and not elsewhere):
        return
    phase, room = ledger.phase(place, crash.phase) or ledger.crowded(place), capacity_of(ledger, place)
    if phase is None or not room or phase.expected > room * FILLED or ledger.missing:
        return
    if any(cell.owner == "unexplained" for cell in phase.cells):
        return
    told = {"size": show_bytes(phase.expected), "total": show_bytes(room), "when": when(phase.phase)}
    ways = known.otherwise(value_of(facts, "first_step") is False) if place == "gpu" and known.otherwise else ()
    if elsewhere:
        if ways:
            yield say(
                "What would fill {total}: {ways}.", total=told["total"], ways=clauses(w.clause for w in ways[:WAYS])
            )
        return
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


def _made(known: DiagnosisInputs, made: Allocation, facts: Facts, cause: str) -> Iterator[str]:
    """What the failing line was making, and what that follows."""
    told = heads(cause, made)
    if not told:
        yield say("What failed is {title} ({where}).", title=made.title, where=facts[FACT].because)
    yield from as_scores(known, facts, made)
    if not told:
        yield " ".join(made.says.split())


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


def _alone(run: Run, facts: Facts) -> Iterator[str]:
    """That what shares states out among processes has one process here, on one of several cards or on the only one."""
    memory, alone, idle = value_of(facts, "memory"), facts.get("one_process"), facts.get("idle_cards")
    if memory != "gpu" or alone is None or alone.value is not True:
        return
    shares = run.knobs.get("actor.zero_stage")
    key = shares.key or (run.unread.file if run.unread is not None else "") if shares is not None else ""
    if idle is not None:
        yield say(
            "{because}: states are shared out among processes alone, so each card needs one of its own.",
            because=sentence(idle.because).rstrip("."),
        )
    elif shares is not None and shares.source != "default" and (as_number(shares.value) or 0) >= 1 and key:
        yield say(
            "{because}: {key} has nobody to share weights, gradients and optimizer with.",
            because=sentence(alone.because).rstrip("."),
            key=key,
        )


def _by_own_readings(facts: Facts) -> Iterator[str]:
    """What the log's own figures say: of the pass, and of what lies there when the engine wakes."""
    if (peak := facts.get("gpu.peak_of_pass")) is not None and peak.value is True:
        yield say("By the log {because}: what a pass keeps fills the card.", because=peak.because)
    if "sleep.left_grows" in facts:
        yield say("By the log it grows: {because}.", because=facts["sleep.left_grows"].because)
    elif (left := facts.get("sleep.left")) is not None and "line.cumem-oom" in facts:
        yield say("By the log {because}: what the engine wakes to has to fit beside that.", because=left.because)


def _engine_there(facts: Facts, cause: str) -> Iterator[str]:
    """That the process beside the trainer is the run's own engine, where that is not the cause."""
    engine = facts.get("gpu.others_engine")
    if engine is not None and engine.value is True and cause != "engine-beside-trainer":
        yield say(
            "{because}: no stranger. A smaller share, or sleep mode in force, gives that back.",
            because=sentence(engine.because).rstrip("."),
        )


def _resumes(facts: Facts, cause: str) -> Iterator[str]:
    """That it goes on from a checkpoint: the optimizer's state then lies there from the first moment."""
    memory = value_of(facts, "memory")
    if memory == "gpu" and "resumes" in facts and cause != RESUMING:
        yield say(
            "It resumes from a checkpoint: the optimizer's state, and what loading it left, lie on the card before the "
            "first step; a fresh start has them only after it."
        )


def _pictures(known: DiagnosisInputs, facts: Facts) -> Iterator[str]:
    """What the sums count for a picture, where nothing limits its pixels and the card ran out."""
    memory = value_of(facts, "memory")
    named = any("pixels" in key for key in known.crash.described)  # whoever reads it
    if known.run.unlimited_pictures and memory == "gpu" and not named:
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
    if value_of(facts, "gpu.free_exceeds_request") is not True:
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


def _algebra(run: Run, facts: Facts) -> Iterator[str]:
    """How the fork's batch sizes become sequences per GPU, where a dialect multiplies or divides them."""
    held, micro = run.knobs.get("actor.sequences_per_gpu"), run.knobs.get("actor.micro_batch")
    if held is None or micro is None or not micro.times_samples or not isinstance(held.value, (int, float)):
        return
    binds, count = value_of(facts, "batch.binds"), min(float(held.value), float(micro.value or 0))
    told = {"held": held.note, "framework": run.title, "key": micro.key, "how": micro.note, "count": count}
    turned = say("{framework} turns {key} into sequences by (value // data-parallel ranks) * samples: {how}.", **told)
    if not count:
        then = say(
            "So no GPU gets a sequence: the value is not valid here, and is to be at least as many as there are ranks."
        )
    elif binds is True:
        then = say(
            "So a pass holds {count:g} sequences, and of the micro-batch one can say: it is not what binds.", **told
        )
    else:
        then = say("So a pass holds {count:g} sequences, and of the micro-batch one can say: it binds.", **told)
    yield sentences((say("One GPU holds {held} sequences of a step.", **told) if count else "", turned, then))


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
