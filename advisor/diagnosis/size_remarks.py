"""Writes what sizes tell: what could not be allocated, and what weights, gradients and optimizer take of a card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt, prod

from advisor.diagnosis.allocation import FACT
from advisor.diagnosis.fact import Facts, value_of
from advisor.diagnosis.facts import DiagnosisInputs
from advisor.diagnosis.ledger_facts import is_loaded
from advisor.diagnosis.model_facts import names_adapters, saved_remark
from advisor.diagnosis.state_facts import STATES_IN_FULL, most_in_full, sharing_gpus
from advisor.knowledge.schema import Allocation
from advisor.language import clauses, say
from advisor.memory.allocator import elements_window
from advisor.memory.attribution import ROUND, completes, tried_bytes
from advisor.memory.cells import Match
from advisor.memory.constants import BF16, FP32
from advisor.memory.parameters import bytes_of
from advisor.memory.trainer import trainer_of
from advisor.regex import regex
from advisor.rules.tree import as_number
from advisor.run.natives import default_bits
from advisor.run.run import Run
from advisor.run.shape import packed_by_name, parameters_in_name
from advisor.units import show_bytes, show_params
from advisor.words import sentence

LOGITS, STATES = "logits-too-big", "states-too-big"
_SHAPE = regex(
    r"\(\((?P<rows>(?:\d{1,9}, ?){1,2})(?P<words>\d{1,9})\),.{0,80}\btorch\.(?P<type>bfloat16|float16|float32)\b"
)
"""Shape and type in torch.compile's code: `empty_strided_cuda((65536, 65536), (65536, 1), torch.bfloat16)`."""
SCORES = ("attention-scores", "vision-scores")
"""Allocations that are tokens times tokens."""
_MOST_ROWS = 64
"""Of a pass in which a round number of tokens is looked for (judgement)."""
USUAL_HEADS = 32
"""Of the models of 7 and 8 billion parameters, where the model is not known (Llama, Mistral, Qwen3)."""
UNDECIDED = ("batch-or-states", "long-sequence", "gpu-growth")
"""Causes that leave open, or pass over, what the states hold."""
_OF_OTHERS = ("card-shared", "leftover-processes")
"""Causes beside which this run may be too large for an empty card, too."""
MUCH_OF_CARD = 0.5
"""Part of a card that weights in one piece take from which on it is told (judgement)."""
OTHER_MODELS = ("teacher", "reward", "critic")
"""Roles whose model the launch may name beside the trained one."""
MANY = 2
"""Cards from which on there is something to share out."""


def size_remarks(known: DiagnosisInputs, facts: Facts, cause: str, made: Allocation | None) -> Iterator[str]:
    """What one request may have been, the surest reading first. `made`: what the failing line was making."""
    yield from _beyond_any_card(facts)
    yield from as_scores(known, facts, None) if made is None else ()
    printed = _as_printed(known) if made is not None and made.cause == LOGITS else ""
    told = _in_tokens(known.run, known.attribution if _may_be_logits(facts) else [], cause)
    yield from [printed] if printed else told
    yield from _as_weights(known, facts, cause)


def as_scores(known: DiagnosisInputs, facts: Facts, made: Allocation | None) -> Iterator[str]:
    """How long the rows were, were it attention scores: where the failing line makes them, or one tensor is beyond the
    card and nothing says what it was."""
    tried, model = tried_bytes(known.crash), known.run.model
    if tried is None or not _may_be_scores(facts):
        return
    heads = (made and made.heads) or (model.heads if model is not None else USUAL_HEADS)
    wide = not (made is not None and made.heads) and any("softmax" in one.text for one in known.crash.failing)
    width = FP32 if wide else BF16
    rows, tokens = scores_of(tried, heads, width)
    told: dict[str, object] = {"tried": show_bytes(tried), "heads": heads, "bytes": width}
    if made is not None and made.patch:
        told |= {"patches": f"{tokens:,}", "pixels": f"{tokens * made.patch**2 / 1e6:.1f}"}
        yield say(
            "Counted as attention scores ({heads} heads, {bytes} bytes) the {tried} are {patches} patches at once: "
            "pictures of {pixels} million pixels together.",
            **told,
        )
        return
    ways = [
        f"{rows << 2 * halved} × {tokens >> halved:,}" for halved in range(3)
    ]  # half the length, four times the rows
    yield say(
        "Counted as attention scores (rows × {heads} heads × length² × {bytes} bytes) the {tried} are {one}, {two} or "
        "{three} tokens: hold that against input_ids.shape. Flash attention or sdpa without a mask never holds them; "
        "fewer rows, shorter ones, and no padding to a fixed length make them smaller.",
        **told,
        one=ways[0],
        two=ways[1],
        three=ways[2],
    )


def scores_of(tried: int, heads: int, width: int) -> tuple[int, int]:
    """Rows of a pass, and tokens of a row, whose attention scores (rows × heads × tokens × tokens of `width` bytes)
    print as `tried`: the fewest rows with a round number of tokens, else one row."""
    for power in range(_MOST_ROWS.bit_length()):
        least, most = elements_window(tried, heads * width << power)
        tokens = isqrt(most) // ROUND * ROUND
        if tokens and tokens * tokens >= least:
            return 1 << power, tokens
    return 1, isqrt(tried // (heads * width))


def _may_be_scores(facts: Facts) -> bool:
    """Whether the failing line makes attention scores, or something beyond the card that nothing else explains."""
    made, beyond, exact = value_of(facts, FACT), value_of(facts, "gpu.beyond_card"), value_of(facts, "attribution")
    if exact == "scores":
        return False  # by heads and length of this very run
    if made is not None:
        return made in SCORES
    named = any(name in facts for name in ("frame.logits", "attribution", "frame.engine"))
    named = named or value_of(facts, "attribution.likely") == "logits"
    return beyond is True and not named


def _may_be_logits(facts: Facts) -> bool:
    """Whether what was asked for may be logits, by the failing line; beyond a card they are not without its word."""
    named, beyond = value_of(facts, "frame.cause"), value_of(facts, "gpu.beyond_card")
    if "frame.attention" in facts or (beyond is True and "frame.logits" not in facts):
        return False
    if "frame.makes_states" in facts or value_of(facts, "phase") == "optimizer_step":
        return False  # no pass is under way
    return named is None or named == LOGITS


def _as_printed(known: DiagnosisInputs) -> str:
    """The shape that the failing line prints, where it is the size asked for; "" where it prints none."""
    tried = tried_bytes(known.crash)
    for shape in filter(None, (_SHAPE.search(frame.text) for frame in known.crash.frames)):
        rows = prod(int(size) for size in shape["rows"].split(",") if size.strip())
        width = FP32 if shape["type"] == "float32" else BF16
        if rows * int(shape["words"]) * width == tried:
            told = {
                "tried": show_bytes(tried),
                "rows": f"{rows:,}",
                "words": f"{int(shape['words']):,}",
                "bytes": width,
            }
            return say(
                "The line prints the shape of the {tried}: {rows} tokens at once × {words} words of the vocabulary × "
                "{bytes} bytes.",
                **told,
            )
    return ""


def _in_tokens(run: Run, matches: Sequence[Match], cause: str) -> Iterator[str]:
    """How many tokens the size asked for would be, where no model is named, they are more than the run's budget, or
    logits are the cause and no pass of the run as it was seen has so many."""
    readings = [match for match in matches if match.of_logits and not match.matches]
    of_logits = next(iter(readings), None)
    if run.model is not None and (exact := [one for one in readings if one.round]):
        yield _exactly(exact, run.model.vocab, run)
        return
    if run.model is not None and not run.settings:
        if readings and cause == LOGITS:
            yield _exactly(readings, run.model.vocab, run)
        return
    bounds = run.is_on("actor.dynamic_batch")
    budget = run.knobs.get("actor.tokens_per_gpu") if bounds else None
    if of_logits is None or (run.model is not None and budget is None and cause != LOGITS):
        return
    both = readings[: 2 if of_logits.shape.startswith("bf16") else 1]  # what may be in 2 bytes may be in 4
    told = {"tried": show_bytes(of_logits.bytes), "formula": clauses(one.formula for one in both)}
    if run.model is None or budget is None:
        yield say("The {tried} asked for, counted as logits: {formula}. Hold that against your lengths.", **told)
    elif isinstance(budget.value, (int, float)) and of_logits.tokens > budget.value:
        told |= {"key": budget.key, "budget": f"{budget.value:g}"}
        yield say(
            "The {tried} asked for, counted as logits: {formula}. That is above {key} = {budget}: one sample alone is "
            "longer, or the budget does not bound this pass.",
            **told,
        )


def _exactly(found: Sequence[Match], words: int, run: Run) -> str:
    """That a size is of the logits of so many tokens, a round number where it is one; fp32 first, as losses compute."""
    step = ROUND if all(one.round for one in found) else 1
    ways = sorted(((FP32 if one.shape.startswith("fp32") else BF16), one.tokens) for one in found)[::-1]
    each = [_of_rows(-(-tokens // step) * step, width, run) for width, tokens in ways]
    ranks = round(words / int(found[0].shape.rpartition(" ")[2].rstrip("]")))
    each_rank = f"{words:,} ÷ {ranks}" if ranks > 1 else f"{words:,}"
    told = {"tried": show_bytes(found[0].bytes), "words": each_rank, "ways": clauses(each)}
    return say("The {tried} asked for is the size of logits over the {words} words of this model: {ways}.", **told)


def _of_rows(tokens: int, width: int, run: Run) -> str:
    """Tokens of a pass, and how long its rows then are where several are set."""
    batch, told = run.knobs.get("actor.micro_batch"), {"tokens": tokens, "bytes": width}
    known = batch is not None and batch.source in ("script", "log") and not run.is_on("actor.dynamic_batch")
    if known and batch is not None and isinstance(batch.value, (int, float)) and batch.value > 1:
        rows = int(batch.value)
        return say(
            "{tokens:,} tokens in {bytes} bytes ({rows} rows of {each:,})", **told, rows=rows, each=tokens // rows
        )
    return say("{tokens:,} tokens in {bytes} bytes", **told)


def _as_weights(known: DiagnosisInputs, facts: Facts, cause: str) -> Iterator[str]:
    """That the size asked for is, or may be, of weights, and whether it completes the whole model on this card."""
    crash, model = known.crash, known.run.model
    may_be = next((match for match in known.attribution if match.parameters), None)
    each = may_be.whole if may_be is not None else completes(crash, model) if model is not None else 0
    each = 0 if is_loaded(crash) else each  # then it was there before
    count = may_be.parameters if may_be is not None else model.parameters if model is not None else 0
    if may_be is not None:
        told = {"tried": show_bytes(may_be.bytes), "formula": may_be.formula, "tensor": may_be.tensor}
        yield say("The {tried} asked for is also the size of the {tensor}: {formula}.", **told)
    empty, said = value_of(facts, "gpu.empty"), cause == STATES and "weights.fp32" in facts  # by the cause's own words
    if each and not said and empty is not True:  # most of the card is free: nothing fills
        fields = crash.evidence[0].fields
        sizes = {"tried": show_bytes(tried_bytes(crash) or 0), "allocated": show_bytes(int(fields["allocated_bytes"]))}
        yield say(
            "With it the {allocated} allocated come to the whole model, {parameters} parameters × {bytes} bytes: most "
            "likely it is being put on this card whole, and nothing shards it.",
            parameters=show_params(count),
            bytes=each,
            **sizes,
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


def state_remarks(known: DiagnosisInputs, facts: Facts, cause: str) -> Iterator[str]:
    """What is held for each parameter, where that is the cause or nothing decides."""
    run = known.run
    yield from _packed_and_full(run)
    yield from _states_there(known, facts, cause)
    yield from _second_step(facts)
    yield from saved_remark(facts)
    yield from _weights_there(run, facts, cause)
    yield from _unsharded(run)
    yield from _whole_on_card(known, facts, cause)


def _packed_and_full(run: Run) -> Iterator[str]:
    """That a checkpoint of packed weights is trained in full, which cannot both be."""
    full = run.knobs.get("actor.full_finetuning")
    if full is None or full.value is not True or full.source != "script" or not packed_by_name(run.model_name):
        return
    told = {
        "model": run.model_name,
        "key": full.key,
        "size": show_bytes(BF16 * run.model.parameters) if run.model else "",
    }
    yield say(
        "{model} is a checkpoint of packed weights, and {key} trains all of them: then they are not packed but lie "
        "there in 16 bits ({size}), with gradients and optimizer.",
        **told,
    )


def _states_there(known: DiagnosisInputs, facts: Facts, cause: str) -> Iterator[str]:
    """What the states take of a card at the least, where nothing decides between them and the pass; of a model whose
    size nobody knows, how large one may be."""
    run, adapters = known.run, value_of(facts, "lora")
    undecided = cause in (*UNDECIDED, *_OF_OTHERS) or "nothing_given" in facts
    if not undecided or adapters is True:
        return
    if (least := facts.get("states.least_share")) is not None:
        yield sentence(least.because)
    elif (alone := facts.get("states.if_unshared_share")) is not None and (as_number(alone.value) or 0) >= MUCH_OF_CARD:
        yield say("If all weights are trained, {because}.", because=alone.because)
    elif (perhaps := facts.get("states.if_full_share")) is not None:
        yield say("If all weights are trained, {because}.", because=perhaps.because)
    elif run.model is not None and run.settings and facts.get("gpu.total_bytes") is None and not run.trains_adapters:
        each = bytes_of(run, trainer_of(run))
        per = each.weights + each.gradients + each.optimizer
        told = {"parameters": show_params(run.model.parameters), "bytes": per}
        yield say(
            "Trained in full, all states together are {size} ({parameters} parameters × {bytes:g} bytes), on the cards "
            "that share them; what they leave of a card is for the pass.",
            size=show_bytes(per * run.model.parameters),
            **told,
        )
    elif run.model is None and run.model_name and (most := most_in_full(run, known.machine)):
        told = {"bytes": STATES_IN_FULL, "most": show_params(most), "model": run.model_name}
        yield say(
            "Trained in full ({bytes} bytes per parameter) the states of at most {most} parameters fit here, shared "
            "over all cards: if {model} is larger, no batch does, but adapters (LoRA), states in host RAM or more "
            "cards do.",
            **told,
        )


def _second_step(facts: Facts) -> Iterator[str]:
    if "second_step" in facts and facts.get("memory", facts["second_step"]).value == "gpu":
        yield say("Moments are made when the first step ends: the second is the first pass that has them beside it.")


def _weights_there(run: Run, facts: Facts, cause: str) -> Iterator[str]:
    """What a whole copy of large weights, and the engine's part of them, take of a card, where nothing decides."""
    whole, engine = facts.get("gathered_weights.share"), facts.get("engine.weights_share")
    if cause not in UNDECIDED or whole is None or (as_number(whole.value) or 0) < MUCH_OF_CARD:
        return
    if any(value_of(facts, name) is True for name in ("sharded", "zero3")) or default_bits(run):
        return
    yield say("Unless something shards them, each card holds the weights whole: {because}.", because=whole.because)
    if engine is not None:
        yield sentence(engine.because)


def _unsharded(run: Run) -> Iterator[str]:
    """What lies on each card where a process per card is started and nothing in sight shards."""
    count = run.topology.actor_gpus
    if not run.unsharded or run.model is None or count < MANY:
        return
    each = run.mechanics
    states = each.weight_bytes + each.gradient_bytes + each.master_bytes + each.moment_bytes
    adapters, bits = names_adapters(run), run.number("actor.quantized_bits") or 8 * BF16
    told = {
        "launcher": run.unsharded,
        "count": count,
        "weights": show_bytes(int(bits / 8 * run.model.parameters)),
        "bits": f"{bits:g}",
        "states": show_bytes(states * run.model.parameters),
        "bytes": states,
        "parameters": show_params(run.model.parameters),
        "setting": adapters,
    }
    if adapters:
        yield say(
            "{launcher} starts a process on each of {count} cards, and nothing in the launch shards: each card holds "
            "all the frozen weights ({parameters} parameters, {weights} in {bits} bits; less where they are packed: "
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


def _whole_on_card(known: DiagnosisInputs, facts: Facts, cause: str) -> Iterator[str]:
    """What the weights take of a card that loads them whole, and of each that shares them: one number decides."""
    run, phase, card = known.run, value_of(facts, "phase"), known.ledger.gpu_capacity or known.machine.gpu_bytes
    bits, packed = run.number("actor.quantized_bits") or default_bits(run), value_of(facts, "prequantised")
    loading = phase == "model_load"
    if cause != STATES or not loading or run.model is None or not card:
        return
    if (bits is not None and bits < 8 * BF16) or packed is True:
        least = facts.get("weights.least_share")
        if least is not None and (as_number(least.value) or 0) >= MUCH_OF_CARD:
            yield say(
                "{because}; layers that are not packed, and those in 16 bits that are just being packed, come beside "
                "them.",
                because=sentence(least.because).rstrip("."),
            )
        return
    name, parameters = largest_model(run)
    whole, cards = BF16 * parameters, sharing_gpus(run, known.machine)
    told = {
        "model": name or run.model_name or run.model.name,
        "parameters": show_params(parameters),
        "whole": show_bytes(whole),
        "fp32": show_bytes(FP32 * parameters),
        "card": show_bytes(card),
        "count": cards,
        "share": show_bytes(whole // max(1, cards)),
        "packed": show_bytes(whole // 4),
    }
    if "frame.packs" in facts:
        yield say(
            "In 4 bits {parameters} parameters are {packed} at the least, in 16 bits {whole}; a card has {card}.",
            **told,
        )
        return
    yield say(
        "The largest model of the launch is {model} ({parameters} parameters): {whole} in bf16 ({fp32} in fp32) of "
        "each card that loads it whole; a card has {card}.",
        **told,
    )
    if cards >= MANY and known.machine.sources.get("gpus") != "log":
        yield say("Shared over {count} cards they are {share} on each.", **told)


def largest_model(run: Run) -> tuple[str, int]:
    """Name and parameters of the model that is the largest by the launch's names; no name where it is the trained
    one."""
    trained = run.model.parameters if run.model is not None else 0
    others = {str(path): parameters_in_name(str(path)) for role in OTHER_MODELS if (path := run.value(f"{role}.path"))}
    name = max(others, key=lambda one: others[one] or 0, default="")
    size = others.get(name) or 0
    return (name, size) if size > trained else ("", trained)
