"""Turns what the ledger predicts into facts, for questions that no log line answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.holders import is_empty
from advisor.diagnosis.fact import Fact
from advisor.diagnosis.frame_facts import backend_facts
from advisor.diagnosis.model_facts import saved_facts
from advisor.diagnosis.state_facts import flat_buffer
from advisor.language import Sayings, clauses, say
from advisor.memory.allocator import can_mean
from advisor.memory.attribution import LEAST_LOGITS, beyond_weights, completes, part_of_flat, tried_bytes
from advisor.memory.batches import LENGTHS, Assumptions, sequence_length
from advisor.memory.cells import ENGINE, TITLES, Ledger, Match, PhaseSum, owners_of
from advisor.memory.constants import BF16, FP32
from advisor.memory.inputs import unread_parts
from advisor.memory.ledger import implausible, refuted
from advisor.regex import regex
from advisor.run.natives import last_part
from advisor.run.run import Run
from advisor.run.values import parse_value
from advisor.units import show_bytes, show_params
from advisor.words import PHASE_TITLES, when

FP32_SHAPE = "fp32 "
"""How the shape of a tensor of 4-byte numbers begins (memory/attribution.py)."""

_TRAINS = regex(r"\b(?:train|fit|_?inner_training_loop|training_step|train_step)\(")
"""Calls and functions in which a trainer that was built runs."""
ROOM = 0.8
"""A run whose upper bound takes less of the card fits with room to spare (judgement)."""
TIGHT = 0.9
"""Of a card: what is counted to take more may as well have run out (judgement)."""
SMALL = 0.35
"""Of a card: what lasts and takes less does not fill it, should it be half as much again (judgement)."""
LARGE_PART = 0.3
"""Of the states, from which on another model's are told by themselves (judgement)."""
LONG_ROW = 4096
"""Tokens: a longer row may hold what no sum counts, attention that is not fused or a cache (judgement)."""
SMALL_PASS = 0.1
"""Of a card: a pass that takes less with its longest rows fills no card by them (judgement)."""
USUAL_BUCKET = 5e8
"""Numbers in a bucket of ZeRO unless a file says otherwise (deepspeedai/DeepSpeed docs/_pages/config-json.md)."""
MUCH = 0.15
"""Of a card: what one tensor of a pass takes of it is logits, unless attention is not fused (judgement)."""
OF_PASSES = ("log_prob", "actor_update", "critic_update", "validation")
LARGEST_CARD = 288 * 10**9
"""Bytes of the largest card that is sold (NVIDIA B300, AMD MI355X): what fills half of it fills half of any."""
_GROUPS: Sayings[str] = Sayings({"states": "states", "batch": "batch", "engine": "engine"})
"""Owners of the ledger, in groups."""


def ledger_facts(
    ledger: Ledger, run: Run, crash: Crash, attribution: Sequence[Match], ran: bool = False
) -> dict[str, Fact]:
    """The fullest group of owners, whether the GPUs hold the run, who holds host RAM, and what the failed tensor is.

    `ran`: steps were done before; a ledger by which they could not have been says nothing.
    """
    facts: dict[str, Fact] = {}
    if run.framework == "unknown" or not (run.settings or crash.settings):
        return _tensor(attribution, run, crash, ran)  # a ledger of nothing but defaults says nothing of this run
    facts.update(_small_pass(ledger, run))
    if implausible(run, ledger) or refuted(ledger, ran):
        return {**facts, **_tensor(attribution, run, crash, ran)}
    fullest = ledger.peak("gpu") if run.topology.colocated else ledger.crowded("gpu")
    phase = ledger.phase("gpu", crash.phase) or fullest
    if phase is not None:
        share: dict[str, int] = dict.fromkeys((cell.owner for cell in phase.cells), 0)
        for cell in phase.cells:
            share[cell.owner] += cell.expected
        groups = {"states": owners_of("states", "models"), "batch": owners_of("batch"), "engine": ENGINE}
        sizes = {name: sum(share.get(owner, 0) for owner in owners) for name, owners in groups.items()}
        # where they alone fill the card, no batch is small enough
        alone = ledger.gpu_capacity is not None and sizes["states"] >= ledger.gpu_capacity
        largest = "states" if alone else max(sizes, key=lambda name: sizes[name])
        dark = share.get("unexplained", 0)
        because = say(
            "the count of {phase}: {group} {size} of {total}",
            phase=PHASE_TITLES[phase.phase],
            group=_GROUPS[largest],
            size=show_bytes(sizes[largest]),
            total=show_bytes(phase.expected),
        )
        because = clauses((because, *_of_another(phase, sizes["states"]))) if largest == "states" else because
        room = ROOM if not unread_parts(run) else 1  # what lacks a part tells its largest only where it is too much
        fills = ledger.gpu_capacity is None or phase.expected > room * ledger.gpu_capacity
        if fills and dark < sizes[largest]:  # else what holds most is none of the owners that the ledger knows
            facts["ledger.largest"] = Fact(largest, "script", because)
        for name, size in sizes.items():
            facts[f"ledger.{name}_share"] = Fact(size / (ledger.gpu_capacity or LARGEST_CARD), "script", because)
        if ledger.gpu_capacity is not None:
            of_card = {"size": show_bytes(sizes["states"]), "total": show_bytes(ledger.gpu_capacity)}
            told = say(
                "weights, gradients and optimizer take {size} of each card by the settings; it has {total}", **of_card
            )
            facts["ledger.states_share"] = replace(facts["ledger.states_share"], because=told)
        logits, kept = share.get("logits", 0), share.get("activations", 0)
        told = say(
            "the count of {phase}: logits {logits}, activations {activations}",
            phase=PHASE_TITLES[phase.phase],
            logits=show_bytes(logits),
            activations=show_bytes(kept),
        )
        facts["ledger.logits_larger"] = Fact(logits > kept, "script", told)
        facts["ledger.gpu_room"] = _room(ledger, phase, run)
        facts["ledger.states_of_phase"] = Fact(sizes["states"] / max(1, phase.expected), "script", because)
        facts.update(_left_to_pass(ledger, phase, sizes["states"] + sizes["engine"]))
    facts.update(_gathered(ledger))
    facts.update(_unexplained(ledger))
    facts.update(_host_holder(ledger, crash))
    if fullest is not None and ledger.gpu_capacity is not None:
        size_sentences = {"size": show_bytes(fullest.expected), "total": show_bytes(ledger.gpu_capacity)}
        told = say("the ledger: up to {size} of {total}", **size_sentences)
        fits = fullest.expected <= ledger.gpu_capacity
        if not fits or not unread_parts(run):
            facts["ledger.gpu_fits"] = Fact(fits, "script", told)
        facts["ledger.gpu_tight"] = Fact(fullest.expected > TIGHT * ledger.gpu_capacity, "script", "")
    host = ledger.peak("host")
    if host is not None and ledger.host_limit is not None:
        size_sentences = {"size": show_bytes(host.expected), "total": show_bytes(ledger.host_limit)}
        told = say("the ledger: up to {size} of {total}", **size_sentences)
        facts["ledger.host_fits"] = Fact(host.expected <= ledger.host_limit, "script", told)
        if not crash.top_users:  # the table of a log says more than a sum
            explained = (host.expected - host.of("unexplained")) / ledger.host_limit
            facts["ledger.host_share"] = Fact(round(explained, 3), "script", "")
    facts.update(_tensor(attribution, run, crash, ran))
    return facts


def _of_another(phase: PhaseSum, states: int) -> Iterator[str]:
    """Whose most of the states are, where it is not the model that is trained: a teacher, reference or reward model."""
    others = [cell for cell in phase.cells if cell.owner in owners_of("models")]
    most = max(others, key=lambda cell: cell.expected, default=None)
    if most is not None and most.expected > LARGE_PART * states:
        model = most.note.read() if most.note is not None else TITLES[most.owner]
        yield say("of them {size} for another model ({model})", size=show_bytes(most.expected), model=model)


def _small_pass(ledger: Ledger, run: Run) -> dict[str, Fact]:
    """That a pass of the update is small with rows as long as they may be: no long row fills the card then."""
    update, capacity = ledger.phase("gpu", "actor_update"), ledger.gpu_capacity
    length, _ = sequence_length(run, Assumptions())
    counted = any(stated_length(run)) and length <= LONG_ROW and not run.unlimited_pictures
    if update is None or capacity is None or not counted:
        return {}
    of_pass = round(sum(cell.by_data[1] for cell in update.cells if cell.owner in owners_of("batch")))
    told = {"size": show_bytes(of_pass), "total": show_bytes(capacity)}
    because = say("with rows at their cap a pass of the update takes {size} of {total}", **told)
    return {"pass.small": Fact(of_pass < SMALL_PASS * capacity, "script", because)}


def stated_length(run: Run) -> Iterator[bool]:
    """Whether somebody states how long rows are, for each setting that may."""
    for name in LENGTHS:
        knob = run.knobs.get(name)
        yield knob is not None and knob.value is not None and knob.source in ("script", "log", "user")


def _left_to_pass(ledger: Ledger, phase: PhaseSum, lasting: int) -> dict[str, Fact]:
    """That what lies on the card before any pass is a small part of it: what fills it then comes with a pass."""
    capacity = ledger.gpu_capacity
    if capacity is None or not phase.of(*owners_of("batch")):
        return {}
    told = {"size": show_bytes(lasting), "total": show_bytes(capacity)}
    because = say(
        "what lies there before a pass is {size} of {total} by the settings: the rest comes with the pass", **told
    )
    return {"ledger.left_to_pass": Fact(lasting < SMALL * capacity, "script", because)}


def _unexplained(ledger: Ledger) -> dict[str, Fact]:
    """What of a card, in the phase that died, no setting explains."""
    died = max(ledger.gpu, key=lambda phase: phase.of("unexplained"), default=None)
    dark = died.of("unexplained") if died is not None else 0
    if died is None or not dark or ledger.gpu_capacity is None:
        return {}
    told = {"size": show_bytes(dark), "phase": PHASE_TITLES[died.phase], "total": show_bytes(ledger.gpu_capacity)}
    because = say("the count of {phase}: {size} of {total} are explained by no setting", **told)
    return {"ledger.unexplained_share": Fact(round(dark / ledger.gpu_capacity, 3), "script", because)}


def _gathered(ledger: Ledger) -> dict[str, Fact]:
    """Part of a card that the weights take which are gathered to generate without an engine."""
    phase = ledger.phase("gpu", "rollout_generate")
    size = phase.of("gathered") if phase is not None else 0
    if phase is None or not size:
        return {}
    told = {"size": show_bytes(size), "total": show_bytes(phase.expected)}
    because = say("the count of generating rollouts: gathered weights {size} of {total}", **told)
    return {"ledger.gathered_share": Fact(size / (ledger.gpu_capacity or LARGEST_CARD), "script", because)}


def _room(ledger: Ledger, phase: PhaseSum, run: Run) -> Fact:
    """Whether the settings leave so much of the card free, at the worst, that they do not explain a shortage.

    Of a launch that was seen in part, or of pictures of any size, nobody knows what all of them ask for.
    """
    capacity = ledger.gpu_capacity
    if capacity is None or ledger.doubts or not run.seen_whole or unread_parts(run) or run.unlimited_pictures:
        return Fact(False, "script", "")
    told = {"when": when(phase.phase), "size": show_bytes(phase.expected), "total": show_bytes(capacity)}
    room = capacity - phase.expected
    because = (
        say("by the settings {size} of {total} are in use {when}: {room} to spare", room=show_bytes(room), **told)
        if room > 0
        else say("by the settings {size} of {total} are needed {when}", **told)
    )
    return Fact(phase.high <= ROOM * capacity, "script", because)


def _tensor(attribution: Sequence[Match], run: Run, crash: Crash, ran: bool) -> dict[str, Fact]:
    """Which tensor the size that was asked for is, what kind it likely is where none has it for sure, and whether that
    is, or may be, of weights in fp32. It is the logits only where no other tensor of that phase, or of any where none
    is known, has the size, too.
    """
    if bucket := _bucket(run, crash):
        return bucket
    best = next((match for match in attribution if match.matches), None)
    weights = next((match for match in attribution if match.parameters), None)
    if best is None and weights is not None and weights.shape.startswith(FP32_SHAPE):
        told = {"size": show_bytes(weights.bytes), "tensor": weights.tensor, "shape": weights.shape}
        because = say("{size} is {tensor} {shape}", **told)
        return {"weights.fp32": Fact(True, "log", because, (0,))}
    if whole := _whole_model(run, crash):
        return whole
    if (best is None or best.of_weights) and (flat := flat_buffer(run, crash)):
        return flat
    if part := part_of_flat(run, crash):
        return {"attribution": Fact("partition", "log", part, (0,))}
    if best is None:
        return _likely(attribution, run, crash, ran)
    because = say("{size} is {tensor} {shape}", size=show_bytes(best.bytes), tensor=best.tensor, shape=best.shape)
    here = [match for match in attribution if match.matches and crash.phase in ("unknown", match.phase)]
    kinds = {
        "logits": all(match.of_logits for match in here),
        "scores": all(match.of_scores for match in here),
        "weights": all(match.of_weights for match in here),
    }
    kind = next((name for name, alone in kinds.items() if alone and here), "tensor")
    facts = {"attribution": Fact(kind, "log", because, (0,))}
    if kind == "tensor" and best.of_logits and all(match.of_logits or match.of_scores for match in here):
        facts["attribution.likely"] = Fact("logits", "log", because, (0,))  # attention is seldom unfused
    return facts


_OF_BUCKET: dict[str, bool | str] = {"attribution": "bucket", "frame.bucket": True}


def _bucket(run: Run, crash: Crash) -> dict[str, Fact]:
    """That a bucket of ZeRO was asked for, where DeepSpeed trains: as many numbers as it holds, in 2 or 4 bytes."""
    tried = tried_bytes(crash)
    shown = backend_facts(crash).get("trainer")
    trains = run.number("actor.zero_stage") or (shown is not None and shown.value == "deepspeed")
    if tried is None or not trains or crash.memory != "gpu":
        return {}
    stated = [number for one in run.settings if last_part(one.key) == "reduce_bucket_size"
              and isinstance(number := parse_value(one.text, "float"), float) and number > 0]  # fmt: skip
    for numbers in stated or [USUAL_BUCKET]:
        for width in (BF16, FP32):
            if can_mean(tried, round(numbers * width)):
                told = {"size": show_bytes(tried), "numbers": f"{numbers:,.0f}", "bytes": width}
                because = say("{size} is a bucket of ZeRO: {numbers} numbers of {bytes} bytes", **told)
                return {name: Fact(value, "log", because, (0,)) for name, value in _OF_BUCKET.items()}
    return {}


def _whole_model(run: Run, crash: Crash) -> dict[str, Fact]:
    """That what was allocated and what was asked for are together the whole model, in fp32 or in 16 bits: it is being
    put on this card."""
    each = completes(crash, run.model) if run.model is not None else 0
    if not each or run.model is None or is_empty(crash.evidence[0].fields) or is_loaded(crash):
        return {}
    told = {"parameters": show_params(run.model.parameters), "bytes": each}
    because = say("allocated and asked for are the whole model, {parameters} parameters × {bytes} bytes", **told)
    facts = {"weights.whole": Fact(True, "log", because, (0,))}
    return {**facts, "weights.fp32": Fact(True, "log", because, (0,))} if each == FP32 else facts


def is_loaded(crash: Crash) -> bool:
    """Whether the model was on its card already: the trainer runs, or torch's message knows pools of graphs."""
    trains = crash.phase in OF_PASSES or any(
        _TRAINS.search(f"{frame.function}( {frame.text}") for frame in crash.frames
    )
    return trains or any("private_bytes" in one.fields for one in crash.evidence[:1])


def _likely(attribution: Sequence[Match], run: Run, crash: Crash, ran: bool) -> dict[str, Fact]:
    """What was likely asked for, where no tensor of the run has that size: logits of a round number of tokens, or
    something of a pass that is larger than any weights of the model. Where nobody knows the model, a request for much
    of the card in a pass, or after steps, is logits: what is held for each parameter was there before."""
    tried = tried_bytes(crash)
    rows = next((match for match in attribution if match.of_logits and match.round), None)
    if rows is not None:
        told = {"size": show_bytes(rows.bytes), "tensor": rows.tensor, "shape": rows.shape}
        because = say("{size} is {tensor} {shape}", **told)
        return {"attribution.likely": Fact("logits", "log", because, (0,))}
    if tried is not None and crash.memory == "gpu" and beyond_weights(run, tried) and not saved_facts(run):
        because = say("{size} at once is more than any weights of this model take in one piece", size=show_bytes(tried))
        return {"attribution.likely": Fact("pass", "log", because, (0,))}
    card = crash.gpu_total_bytes
    passing = crash.phase in OF_PASSES or (ran and crash.phase == "unknown")
    alone = run.model is None and not crash.frames and passing
    if alone and tried and card and tried >= max(MUCH * card, LEAST_LOGITS):
        told = {"size": show_bytes(tried), "total": show_bytes(card)}
        because = say(
            "{size} in one piece of a card of {total} while a pass runs: hardly anything else of one is as large",
            **told,
        )
        return {"attribution.likely": Fact("logits", "log", because, (0,))}
    return {}


def _host_holder(ledger: Ledger, crash: Crash) -> dict[str, Fact]:
    """The largest known owner of host RAM in the phase that died, else at the peak."""
    phase = ledger.phase("host", crash.phase) or ledger.peak("host")
    held = {cell.owner: phase.of(cell.owner) for cell in phase.cells if cell.owner != "unexplained"} if phase else {}
    if phase is None or not held:
        return {}
    owner, size = max(held.items(), key=lambda one: one[1])
    told = {"owner": TITLES[owner], "size": show_bytes(size)}
    because = say("the count of {phase}: {owner} {size}", phase=PHASE_TITLES[phase.phase], **told)
    return {"host.largest": Fact(owner, "script", because)}
