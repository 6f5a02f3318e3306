"""Finds which tensor of this run has the size that could not be allocated, or how many tokens it must have had."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.crash.tracebacks import Made, made, one_row
from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import ModelFact
from advisor.language import mark, say
from advisor.machine.inventory import Machine
from advisor.memory import constants as c
from advisor.memory.allocator import can_mean, elements_window, identifies_nothing
from advisor.memory.amount import Amount, in_bytes, quantity
from advisor.memory.batches import Assumptions, Pass, critic_pass, scoring_pass, sequences_held, update_pass
from advisor.memory.cells import Match
from advisor.memory.host import sub_group_sizes
from advisor.memory.ledger import build_ledger
from advisor.memory.lora import tile_rows
from advisor.memory.megatron import Split, expert_parameters, split_of
from advisor.memory.trainer import has_engine, shards_of, tensor_ways
from advisor.regex import regex
from advisor.run.run import ModelShape, Run
from advisor.units import show_bytes, show_params
from advisor.words import Phase

MATCHES_KEPT = 8
"""How many matches are worth reading."""
_DTYPES = ((c.IN_BF16, "bf16"), (c.IN_FP32, "fp32"))
_WIDENED = regex(r"\.float\(\)|\bfloat32\b")
"""A failing line that makes its tensor in fp32."""
_LOGITS = mark("{role} logits")
_OF_RANK = mark("vocabulary of one tensor-parallel rank")
_SCORES = mark("{role} attention scores (attention is not fused)")
_COPIES = mark("{role} logits in fp32, or a softmax, entropy or gradient copy of them")
_FITTING = mark(
    "{tried} ÷ {each} = {tokens} tokens: {average:.0f} on average, for {sequences} sequences of at most {length}"
)
_TOO_MANY = mark("{tried} ÷ {each} = {tokens} tokens: more than a pass should hold ({step})")
_OF_ONE_ROW = mark(
    "{tried} ÷ {each} = {tokens} tokens of one row, which is what the failing line takes; rows are counted to {length}"
)
LEAST_LOGITS = 1 << 30
"""Bytes: smaller tensors may be anything of a model that nobody named (judgement)."""
NEAR = 0.02
"""Part by which a sum of printed sizes may miss a model's weights: buffers beside them (judgement)."""
LEAST_WEIGHTS = 256 << 20
"""Bytes: smaller sizes are matrices of many models (judgement)."""
PRECISE = 0.006
"""Part of a size within which it is printed, from which on the some fifty tensors of a run seldom meet it by chance."""
_LEAST_SCORES = 2 << 30
"""Bytes: a sampler of 1024 sequences and 250 000 words asks for half of it in fp32."""
_IN_ENGINE = regex(r"(?:^|/)(?:vllm|sglang)/")
ROUND = 512
"""Tokens: lengths and budgets are multiples of it, or of a larger power of two."""
_SELDOM = 64
"""Times the counts of tokens that print alike: so large a round number's step has to be, not to be met by chance."""
_CUT = 64
"""Ranks among which a flat buffer of the whole model may be cut (judgement)."""
_CUT_NEAR = 0.003
"""Part by which such a buffer may be longer than its share: it is padded to the ranks."""
_LEAST_FLAT = 4 << 30
"""Bytes: a smaller request near the size of a small model may be anything (judgement)."""
_PART_NEAR = 0.005
"""Part by which a rank's part may miss the model's: what was added to it, a projector or tokens (judgement)."""
_LOADS: tuple[Phase, ...] = ("model_load", "rollout_init", "weight_sync")
_GATHERS: tuple[Phase, ...] = (*_LOADS, "actor_update", "log_prob", "critic_update")
_ON_A_RANK: tuple[Phase, ...] = (*_LOADS, "checkpoint")
_ENGINE: tuple[Phase, ...] = ("rollout_init", "weight_sync")
_NEAR: dict[Phase, tuple[Phase, ...]] = {
    "actor_update": ("optimizer_step", "critic_update"),
    "optimizer_step": ("actor_update",),
    "rollout_generate": ("log_prob", "rollout_init", "weight_sync"),
    "weight_sync": ("rollout_init", "model_load"),
    "rollout_init": ("weight_sync", "model_load"),
    "model_load": ("rollout_init",),
    "critic_update": ("actor_update",),
}
"""Phases that a traceback of the first may belong to as well (old forks score inside generate_sequences)."""


class Candidate(Struct, frozen=True):
    """A tensor this run makes: its size, where it lives, and how telling a match with it is (more is better)."""

    tensor: str
    """What it is, to be said with the `role` whose pass makes it."""
    amount: Amount
    shape: str
    phases: tuple[Phase, ...]
    weight: int
    role: str = ""
    words: str = ""
    """How its tokens were counted."""
    of_weights: bool = False
    at_cap: bool = False
    """Its rows are as long as they may be."""

    @property
    def made(self) -> Made:
        """What it is, as a failing line tells it."""
        return "logits" if self.tensor in (_LOGITS, _COPIES) else "weights" if self.of_weights else ""

    @property
    def bytes(self) -> int:
        """Its size."""
        return round(self.amount.value)


def attribute(run: Run, crash: Crash) -> tuple[Match, ...]:
    """Tensors whose rounded size is what the first cause asked for, those of the crash's phase first.

    Those that the failing line makes come first, and weights where they would complete the model on this card. Where
    none has that size, the token counts that logits of this model would need (`matches` False). () where nothing was
    asked for, or the size is one that identifies nothing (2.00 and 20.00 MiB).
    """
    tried = tried_bytes(crash)
    if tried is None or identifies_nothing(tried):
        return ()
    if run.model is None:  # no other model's vocabulary is tried for its own
        return tuple(_heads_of_known(tried, crash)) if crash.memory == "gpu" else ()
    if crash.memory == "host":
        return tuple(_match(x, x.phases[0]) for x in _host_candidates(run, run.model) if x.bytes == tried)
    by_row = one_row(crash.failing)
    found = [x for x in candidates(run, run.model, by_row) if can_mean(tried, x.bytes)]
    if not found:
        return _inverse(run, run.model, tried, crash, by_row)
    told = made(crash.failing) or ("weights" if completes(crash, run.model) else "")
    ranked = sorted(found, key=lambda x: (bool(told) and x.made != told, _distance(x, crash.phase), -x.weight))
    return tuple(_match(x, crash.phase if crash.phase in x.phases else x.phases[0]) for x in ranked[:MATCHES_KEPT])


class BySize(Struct, frozen=True):
    """What the size that was asked for tells of a pass where nothing else does."""

    phases: tuple[Phase, ...]
    """Those whose pass makes a tensor of that size."""
    at_cap: bool
    """Rows were as long as they may be."""
    of_logits: bool
    because: str
    instead: bool = False
    """Of another phase than the one that the log names."""
    of_weights: bool = False


def told_by_size(run: Run, machine: Machine, crash: Crash) -> BySize | None:
    """Which passes make a tensor of the size that was asked for; None where none does, the size is printed too coarsely
    to tell, or weights have it as well."""
    tried = tried_bytes(crash)
    if tried is None or crash.memory != "gpu" or crash.verdict != "oom":
        return None
    if scores := _scored_while_generating(run, crash, tried):
        return scores
    if crash.phase == "unknown" and (part := part_of_flat(run, crash)):
        return BySize(("optimizer_step",), False, False, part, of_weights=True)
    least, most = elements_window(tried, 1)
    found = [match for match in attribute(run, crash) if match.matches]
    sure = most - least <= tried * PRECISE and all(match.of_logits or match.of_scores for match in found)
    if not found or not sure:
        return None
    counted = {one.phase for one in build_ledger(run, machine, crash).gpu} or {match.phase for match in found}
    among = crash.phase_among or ((crash.phase,) if crash.phase != "unknown" else counted)
    here = [match for match in found if match.phase in among]
    if not here:
        return None
    best = here[0]
    alike = [match for match in here if match.of_logits == best.of_logits]
    told = {"size": show_bytes(tried), "tensor": best.tensor, "formula": best.formula}
    because = say("{size} is the size of {tensor}: {formula}", **told)
    phases = tuple(dict.fromkeys(match.phase for match in alike))
    return BySize(phases, all(match.at_cap for match in alike), best.of_logits, because)


def _scored_while_generating(run: Run, crash: Crash, tried: int) -> BySize | None:
    """The pass that scores the answers, where a call that generates fails in one softmax outside of the engine: the
    engine's sampler has a row for each sequence at once, which is never so much."""
    inside = any(_IN_ENGINE.search(frame.file) for frame in crash.frames)
    softmax = any("softmax" in f"{frame.function} {frame.text}" for frame in crash.failing)
    elsewhere = crash.phase != "rollout_generate" or inside or not softmax or tried < _LEAST_SCORES
    if elsewhere or run.model is None or not has_engine(run):
        return None
    because = say(
        "{size} in one softmax outside of the engine, whose sampler has a row for each sequence: the pass that scores "
        "the answers, which this version makes inside of generate_sequences",
        size=show_bytes(tried),
    )
    return BySize(("log_prob",), False, True, because, instead=True)


def flat_width(run: Run, crash: Crash, ranks: int) -> int:
    """Bytes per parameter with which what was asked for is the part that one of so many ranks has of all parameters, in
    one flat buffer; 0 where it is none."""
    tried, near = tried_bytes(crash), NEAR if ranks == 1 else _PART_NEAR
    if tried is None or run.model is None or crash.memory != "gpu" or tried < _LEAST_FLAT:
        return 0
    whole = run.model.parameters / ranks
    return next((width for width in (c.FP32, c.BF16) if abs(tried / (width * whole) - 1) < near), 0)


def part_of_flat(run: Run, crash: Crash) -> str:
    """That what was asked for is a rank's part of such a buffer, which ZeRO's first two stages make as the optimizer is
    created, in a clause; "" where it is not, or a pass failed."""
    ranks, passing = run.topology.actor_gpus, made(crash.failing) == "logits" or crash.phase in _NEAR
    width = flat_width(run, crash, ranks) if ranks > 1 and run.mechanics.trainer != "megatron" else 0
    whole = flat_width(run, crash, 1)
    if run.model is None or not width or whole or (passing and crash.phase not in ("optimizer_step", "model_load")):
        return ""
    return say(
        "{size} at once is what one of {count} ranks has of {parameters} parameters × {bytes} bytes, in one piece, as "
        "the optimizer is created",
        size=show_bytes(tried_bytes(crash) or 0),
        parameters=show_params(run.model.parameters),
        bytes=width,
        count=ranks,
    )


def beyond_weights(run: Run, tried: int) -> bool:
    """Whether no weights of this run's model, whole, in one layer or cut over ranks, take `tried` bytes at once. What
    is that large in one piece is then made by a pass. False where the model is not known."""
    shape = run.model
    if shape is None or tried < LEAST_LOGITS:
        return False
    table = shape.vocab * shape.hidden * (1 if shape.tied else 2)
    layers = (shape.parameters - table) // max(1, shape.layers)
    experts = 2 * shape.experts * shape.expert_intermediate * shape.hidden
    largest = max(table, layers, experts)
    cuts = (size.value * shape.parameters / ranks for size, _ in _DTYPES for ranks in range(1, _CUT + 1))
    return tried > c.IN_FP32.value * largest and not any(abs(tried / cut - 1) < _CUT_NEAR for cut in cuts)


def tried_bytes(crash: Crash) -> int | None:
    """Bytes that the first cause (or the next evidence that says so) asked for."""
    for evidence in crash.evidence:
        size = evidence.fields.get("tried_bytes")
        if isinstance(size, int) and size > 0:
            return size
    return None


def completes(crash: Crash, model: ModelShape | ModelFact) -> int:
    """Bytes per parameter with which what was allocated and what was asked for are the whole model; 0 where not, and
    where the model's size is but that of its name: a card that is full holds some round number of bytes of any."""
    tried, allocated = tried_bytes(crash), crash.evidence[0].fields.get("allocated_bytes") if crash.evidence else None
    by_name = isinstance(model, ModelShape) and model.basis != "computed"
    if tried is None or not isinstance(allocated, int) or crash.memory != "gpu" or by_name:
        return 0
    sizes, count = (round(size.value) for size, _ in _DTYPES), model.parameters
    return next((size for size in sizes if abs(allocated + tried - size * count) < NEAR * size * count), 0)


def candidates(run: Run, shape: ModelShape, by_row: bool = False) -> list[Candidate]:
    """Every tensor of this run that is large enough to fail alone, once. `by_row`: logits are taken row by row."""
    assumed = Assumptions()
    passes: list[tuple[Pass, Phase, str]] = [
        (update_pass(run, assumed), "actor_update", mark("update")),
        (scoring_pass(run, assumed), "log_prob", mark("log-prob")),
    ]
    if run.has_critic:
        passes.append((critic_pass(run, assumed), "critic_update", mark("critic")))
    found: dict[tuple[str, str, int, tuple[Phase, ...]], Candidate] = {}
    for candidate in (
        *_logits(run, shape, [(_row_of(step), phase, role) for step, phase, role in passes] if by_row else passes),
        *_activations(shape, passes),
        *(replace(x, of_weights=True) for x in _weights(run, shape)),
    ):
        key = (candidate.tensor, candidate.role, candidate.bytes, candidate.phases)
        kept = found.get(key)
        if kept is None or kept.weight < candidate.weight:
            found[key] = candidate
    return list(found.values())


def _row_of(step: Pass) -> Pass:
    """One row of a pass whose rows are padded to one length; else the pass."""
    if not step.padded or step.sequences < 2:
        return step
    return replace(step, tokens=(step.tokens / step.sequences).rounded(), sequences=1)


def _token_counts(run: Run, step: Pass) -> Iterator[tuple[int, str, int, bool]]:
    """Token counts a pass may have, with words, how likely each is to be the one that failed, and whether its rows are
    as long as they may be."""
    seen: set[int] = set()
    longest = {step.sequences * step.length}
    part = step.logits_part(run.mechanics.logits_scope)
    most = step.high * max(1, run.topology.sequence_parallel)
    options: list[tuple[int, str, int]] = [
        (round(step.tokens.value * part.value), (step.tokens * part).text(), 9),
        (most, say("{sequences} x {length} tokens", sequences=step.sequences, length=step.length), 8),
        (step.length, say("one sequence of prompt and response"), 6),
    ]
    if step.response:
        and_one = say("{sequences} x (response + 1) tokens", sequences=step.sequences)
        options.append((step.sequences * (step.response + 1), and_one, 7))
        alone = say("{sequences} x response tokens", sequences=step.sequences)
        options.append((step.sequences * step.response, alone, 7))
        options.append((step.response, say("one response"), 5))
        longest |= {step.sequences * step.response, step.sequences * (step.response + 1)}
    budget = run.number("actor.tokens_per_gpu")
    if budget:
        options.append((round(budget), say("token budget {budget:.0f}", budget=budget), 7))
    held = sequences_held(run)
    if held:
        everything = say("all {held} sequences of this GPU x {length} tokens", held=held, length=step.length)
        options.append((held * step.length, everything, 5))
    for tokens, words, weight in options:
        if tokens > 0 and tokens not in seen:
            seen.add(tokens)
            yield tokens, words, weight, tokens in longest


def _in_each_type(
    tensor: str, dimensions: dict[str, int], phases: tuple[Phase, ...], weight: int, role: str = "", words: str = ""
) -> Iterator[Candidate]:
    """A tensor of these named (marked) dimensions in bf16 and in fp32."""
    for size, dtype in _DTYPES:
        amount = size
        for name, count in dimensions.items():
            amount = amount * quantity(name, count)
        yield Candidate(tensor, amount, f"{dtype} {list(dimensions.values())}", phases, weight, role, words)


def _logits(run: Run, shape: ModelShape, passes: list[tuple[Pass, Phase, str]]) -> Iterator[Candidate]:
    vocab, name = _vocabulary(run, shape)
    for step, phase, role in passes:
        if phase == "critic_update":
            continue
        counts = list(_token_counts(run, step))
        if run.mechanics.logits_tile_bytes:  # log-probabilities never see full logits
            rows = tile_rows(run.mechanics.logits_tile_bytes, shape.vocab, step.tokens.value)
            counts = [(rows, say("one tile"), 9, False)]
        for tokens, words, weight, at_cap in counts:
            dimensions = {mark("tokens"): tokens, name: vocab}
            for each in _in_each_type(_LOGITS, dimensions, (phase,), weight + 20, role, words):
                wide = each.shape.startswith("fp32")
                yield replace(each, tensor=_COPIES if wide else _LOGITS, at_cap=at_cap)


def _vocabulary(run: Run, shape: ModelShape) -> tuple[int, str]:
    """Columns of one rank's logits, and their name: Megatron pads the vocabulary to a multiple of 128 a rank, the ranks
    beside FSDP's shards cut it as it is."""
    if (ways := tensor_ways(run)) > 1:
        return -(-shape.vocab // ways), _OF_RANK
    parallel = int(run.number("actor.tensor_parallel") or 1) if run.mechanics.trainer == "megatron" else 1
    if parallel < 2:
        return shape.vocab, mark("vocabulary")
    padded = -(-shape.vocab // (c.VOCABULARY_STEP * parallel)) * c.VOCABULARY_STEP
    return padded, _OF_RANK


def _activations(shape: ModelShape, passes: list[tuple[Pass, Phase, str]]) -> Iterator[Candidate]:
    """MLP and hidden activations of the pass, and attention scores where attention is not fused."""
    for step, phase, role in passes:
        tokens, words = {mark("tokens"): step.high}, step.tokens.text()
        mlp = {**tokens, mark("MLP width"): shape.intermediate}
        yield from _in_each_type(mark("{role} MLP activation"), mlp, (phase,), 8, role, words)
        hidden = {**tokens, mark("hidden"): shape.hidden}
        yield from _in_each_type(mark("{role} hidden states"), hidden, (phase,), 8, role, words)
        scores = {
            mark("sequences"): step.sequences if step.padded else 1,
            mark("heads"): shape.heads,
            mark("tokens of the queries"): step.length,
            mark("tokens of the keys"): step.length,
        }
        yield from (replace(one, at_cap=True) for one in _in_each_type(_SCORES, scores, (phase,), 12, role))


def _weights(run: Run, shape: ModelShape) -> Iterator[Candidate]:
    """Matrices, fused matrices of the engine, and flat shards of the whole model."""
    matrices: list[tuple[str, int, tuple[Phase, ...], int]] = [
        (mark("embedding or head weight"), shape.vocab, _GATHERS, 15),
        (mark("MLP matrix weight"), shape.intermediate, _GATHERS, 15),
        (mark("fused gate and up of the engine weight"), 2 * shape.intermediate, _ENGINE, 17),
        (mark("query or output projection weight"), shape.heads * shape.head_dim, _GATHERS, 14),
    ]
    if shape.experts:
        stacked = shape.experts * shape.expert_intermediate
        matrices += [
            (mark("gate and up of all experts weight"), 2 * stacked, _LOADS, 16),
            (mark("down of all experts weight"), stacked, _LOADS, 15),
        ]
    for what, rows, phases, weight in matrices:
        yield from _in_each_type(what, {mark("rows"): rows, mark("hidden"): shape.hidden}, phases, weight)
    yield from _flat(run, shape)


def _flat(run: Run, shape: ModelShape) -> Iterator[Candidate]:
    shards = shards_of(run)
    flat = mark("flat shard (weights, gradients, or one Adam moment)")
    stepping: tuple[Phase, ...] = ("optimizer_step", "model_load", "actor_update")
    split = split_of(run, shape) if run.mechanics.trainer == "megatron" else None
    if split is not None:
        sizes = f"TP {split.tensor}, PP {split.pipeline}, EP {split.expert}"
        for what, elements in ((mark("all weights of one rank"), split.parameters), *_experts(shape, split)):
            yield from _in_each_type(what, {mark("elements"): round(elements)}, _ON_A_RANK, 12, words=sizes)
    if shards > 1:
        words = say("parameters / {shards}", shards=shards)
        yield from _in_each_type(flat, {mark("elements"): shape.parameters // shards}, stepping, 10, words=words)
    whole = mark("the whole model in one buffer")
    yield from _in_each_type(whole, {mark("elements"): shape.parameters}, ("model_load", "weight_sync"), 10)
    if run.mechanics.trainer == "deepspeed" and shape.parameters // shards > c.SUB_GROUP:
        words = say("parameters / sub-group of 1e9")
        yield from _in_each_type(flat, {mark("elements"): c.SUB_GROUP}, stepping, 10, words=words)


def _experts(shape: ModelShape, split: Split) -> Iterator[tuple[str, float]]:
    """All experts of one rank; where nothing says how they are cut, whole ones, too."""
    if split.routed:
        whole = expert_parameters(shape) / (split.expert * split.pipeline)
        for elements in dict.fromkeys((split.routed, whole)):
            yield mark("all experts of one rank"), elements


def _host_candidates(run: Run, shape: ModelShape) -> Iterator[Candidate]:
    """Flat fp32 buffers of the CPU optimizer; the CPU allocator prints exact bytes."""
    yield from _flat(run, shape)
    if run.mechanics.trainer != "deepspeed":
        return
    shards = shards_of(run)
    words = say("sub-group filled up to 1e9 elements, tensor by tensor, on each of {shards} GPUs", shards=shards)
    for elements in sub_group_sizes(shape, shards):
        size = c.IN_FP32 * quantity("elements", elements)
        yield Candidate(mark("fp32 sub-group of CPU Adam"), size, f"fp32 [{elements}]", ("model_load",), 9, "", words)


def _inverse(run: Run, shape: ModelShape, tried: int, crash: Crash, by_row: bool) -> tuple[Match, ...]:
    """The token counts at which logits have that size; those that a pass, or a row, may hold come first."""
    assumed, phase = Assumptions(), crash.phase
    widened = any(_WIDENED.search(frame.text) for frame in crash.failing)
    step = scoring_pass(run, assumed) if phase == "log_prob" else update_pass(run, assumed)
    by_row, step = by_row and step.padded, _row_of(step) if by_row else step
    where: Phase = phase if phase in ("actor_update", "log_prob") else "unknown"
    found: list[tuple[bool, Match]] = []
    vocab, name = _vocabulary(run, shape)
    for size, dtype in _DTYPES[widened:]:
        each = quantity(name, vocab) * size
        least, most = elements_window(tried, round(each.value))
        tokens = f"{least}" if least == most else say("{least} to {most}", least=least, most=most)
        fits = least <= step.high
        words = say(
            _OF_ONE_ROW if by_row else _FITTING if fits else _TOO_MANY,
            tried=in_bytes("", tried).text(),
            each=f"({each.text()})",
            tokens=tokens,
            average=most / step.sequences,
            sequences=step.sequences,
            length=step.length,
            step=step.tokens.text(),
        )
        tensor = say("logits of {tokens} tokens, if it is logits", tokens=tokens)
        of_logits = Match(tensor, tried, f"{dtype} [T, {vocab}]", words, where, False, True, least)
        found.append((fits, replace(of_logits, round=_is_round(least, most))))
    return tuple(match for _, match in sorted(found, key=lambda pair: not pair[0]))


def _is_round(least: int, most: int) -> bool:
    """Whether a round number lies between them that is not there by chance: sizes in GiB are printed coarsely."""
    step = ROUND
    while step < _SELDOM * (most - least + 1):
        step *= 2
    return most // step > (least - 1) // step


def _heads_of_known(tried: int, crash: Crash) -> Iterator[Match]:
    """The embedding or head of a known model of this size, where weights failed or would complete it on this card."""
    told = made(crash.failing)
    if tried < LEAST_WEIGHTS or told == "logits":
        return
    for model in load_knowledge().models:
        whole = completes(crash, model)
        for size, dtype in _DTYPES:
            amount = size * quantity("vocabulary", model.vocab) * quantity("hidden", model.hidden)
            if (whole or told == "weights") and can_mean(tried, round(amount.value)):
                tensor = say("embedding or head of a model like {model}", model=model.name)
                shape = f"{dtype} [{model.vocab}, {model.hidden}]"
                formula, count = amount.text(), model.parameters
                yield Match(tensor, tried, shape, formula, crash.phase, False, whole=whole, parameters=count)
                return


def _distance(candidate: Candidate, phase: Phase) -> int:
    """0: of the crash's phase (or that is unknown); 1: of a phase its traceback may stand for; 2: of another."""
    if phase == "unknown" or phase in candidate.phases:
        return 0
    return 1 if any(near in candidate.phases for near in _NEAR.get(phase, ())) else 2


def _match(candidate: Candidate, phase: Phase) -> Match:
    tensor = say(candidate.tensor, role=say(candidate.role)) if candidate.role else say(candidate.tensor)
    of_logits, of_scores = candidate.tensor in (_LOGITS, _COPIES), candidate.tensor == _SCORES
    formula = candidate.amount.text()
    if candidate.words:
        formula = say("{formula} ({words})", formula=formula, words=candidate.words)
    found = Match(tensor, candidate.bytes, candidate.shape, formula, phase, True, of_logits, of_scores=of_scores)
    return replace(found, of_weights=candidate.of_weights, at_cap=candidate.at_cap)
