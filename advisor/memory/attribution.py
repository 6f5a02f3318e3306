"""Finds which tensor of this run has the size that could not be allocated, or how many tokens it must have had."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from advisor.crash.evidence import Crash
from advisor.knowledge.schema import Mechanics
from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.allocator import can_mean, elements_window, identifies_nothing
from advisor.memory.batches import Assumptions, Pass, critic_pass, scoring_pass, sequences_held, update_pass
from advisor.memory.cells import Match
from advisor.memory.inputs import shards_of, tensor_ways
from advisor.memory.lora import tile_rows
from advisor.memory.sub_groups import sub_group_sizes
from advisor.run.run import ModelShape, Run
from advisor.words import Phase

MATCHES_KEPT = 8
"""How many matches are worth reading."""
_DTYPES = ((c.BF16, "bf16"), (c.FP32, "fp32"))
_LOGITS = mark("{role} logits")
_COPIES = mark("{role} logits in fp32, or a softmax, entropy or gradient copy of them")
_OF_VOCABULARY = mark("{tokens} tokens x {vocab} vocabulary x {size} B ({words})")
_OF_RANKS = mark("{tokens} tokens x {vocab} vocabulary of one of {ranks} tensor-parallel ranks x {size} B ({words})")
_HIDDEN = mark("{role} hidden states")
_WHOLE = mark("{elements} elements x {size} B")
_SHARD = mark("{elements} elements x {size} B (parameters / {shards})")
_SUB_GROUP = mark("{elements} elements x {size} B (parameters / sub-group of 1e9)")
_FITTING = mark(
    "{tried} B / ({vocab} vocabulary x {size} B) = {tokens} tokens: {average:.0f} on average, for {sequences} "
    "sequences of at most {length}"
)
_TOO_MANY = mark("{tried} B / ({vocab} vocabulary x {size} B) = {tokens} tokens: more than a pass should hold ({step})")
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
    """A tensor this run makes: its dimensions, where it lives, and how telling a match with it is (more is better)."""

    tensor: str
    """What it is, to be said with the `role` whose pass makes it."""
    bytes: int
    shape: str
    formula: str
    phases: tuple[Phase, ...]
    weight: int
    role: str = ""


def attribute(run: Run, crash: Crash) -> tuple[Match, ...]:
    """Tensors whose rounded size is what the first cause asked for, those of the crash's phase first.

    Where none has that size, the token counts that logits of this model would need (`matches` False). () where nothing
    was asked for, the model is unknown, or the size is one that identifies nothing (2.00 and 20.00 MiB).
    """
    tried = tried_bytes(crash)
    if tried is None or run.model is None or identifies_nothing(tried):
        return ()
    if crash.memory == "host":
        return tuple(_match(x, x.phases[0], True) for x in _host_candidates(run, run.model) if x.bytes == tried)
    found = [x for x in candidates(run, run.model) if can_mean(tried, x.bytes)]
    if not found:
        return _inverse(run, run.model, tried, crash.phase)
    ranked = sorted(found, key=lambda x: (_distance(x, crash.phase), -x.weight))
    return tuple(_match(x, _phase_of(x, crash.phase), True) for x in ranked[:MATCHES_KEPT])


def tried_bytes(crash: Crash) -> int | None:
    """Bytes that the first cause (or the next evidence that says so) asked for."""
    for evidence in crash.evidence:
        size = evidence.fields.get("tried_bytes")
        if isinstance(size, int) and size > 0:
            return size
    return None


def candidates(run: Run, shape: ModelShape) -> list[Candidate]:
    """Every tensor of this run that is large enough to fail alone, without duplicates."""
    assumed = Assumptions()
    passes: list[tuple[Pass, Phase, str]] = [
        (update_pass(run, assumed), "actor_update", mark("update")),
        (scoring_pass(run, assumed), "log_prob", mark("log-prob")),
    ]
    if run.has_critic:
        passes.append((critic_pass(run, assumed), "critic_update", mark("critic")))
    found: dict[tuple[str, str, int, tuple[Phase, ...]], Candidate] = {}
    for candidate in (*_logits(run, shape, passes), *_activations(shape, passes), *_weights(run, shape)):
        key = (candidate.tensor, candidate.role, candidate.bytes, candidate.phases)
        kept = found.get(key)
        if kept is None or kept.weight < candidate.weight:
            found[key] = candidate
    return list(found.values())


def _token_counts(run: Run, step: Pass) -> Iterator[tuple[int, str, int]]:
    """Token counts a pass may have, with words and how likely each is to be the one that failed."""
    seen: set[int] = set()
    scope = run.mechanics.logits_scope
    most = step.high * max(1, run.topology.sequence_parallel)
    options: list[tuple[int, str, int]] = [
        (round(step.tokens.value * step.logits_part(scope).value), step.tokens.text(), 9),
        (most, say("{sequences} x {length} tokens", sequences=step.sequences, length=step.length), 8),
        (step.length, say("one sequence of prompt and response"), 6),
    ]
    if step.response:
        and_one = say("{sequences} x (response + 1) tokens", sequences=step.sequences)
        options.append((step.sequences * (step.response + 1), and_one, 7))
        alone = say("{sequences} x response tokens", sequences=step.sequences)
        options.append((step.sequences * step.response, alone, 7))
        options.append((step.response, say("one response"), 5))
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
            yield tokens, words, weight


def _logits(run: Run, shape: ModelShape, passes: list[tuple[Pass, Phase, str]]) -> Iterator[Candidate]:
    vocab, ranks = _vocabulary(run, shape)
    for step, phase, role in passes:
        if phase == "critic_update":
            continue
        counts = _token_counts(run, step)
        for tokens, words, weight in _tile(run, shape, step) if run.mechanics.logits_tile_bytes else counts:
            for size, dtype in _DTYPES:
                yield Candidate(
                    _LOGITS if size == c.BF16 else _COPIES,
                    tokens * vocab * size,
                    f"{dtype} [{tokens}, {vocab}]",
                    say(
                        _OF_RANKS if ranks > 1 else _OF_VOCABULARY,
                        tokens=tokens,
                        vocab=vocab,
                        ranks=ranks,
                        size=size,
                        words=words,
                    ),
                    (phase,),
                    weight + 20,
                    role,
                )


def _vocabulary(run: Run, shape: ModelShape) -> tuple[int, int]:
    """Columns of one rank's logits, and of how many: Megatron pads the vocabulary to a multiple of 128 a rank, the
    ranks beside FSDP's shards cut it as it is."""
    if (ways := tensor_ways(run)) > 1:
        return -(-shape.vocab // ways), ways
    parallel = int(run.number("actor.tensor_parallel") or 1) if run.mechanics.trainer == "megatron" else 1
    if parallel < 2:
        return shape.vocab, 1
    padded = -(-shape.vocab // (c.VOCABULARY_STEP * parallel)) * c.VOCABULARY_STEP
    return padded, parallel


def _tile(run: Run, shape: ModelShape, step: Pass) -> Iterator[tuple[int, str, int]]:
    """Rows of a tile, where log-probabilities never see full logits."""
    yield tile_rows(run.mechanics.logits_tile_bytes, shape.vocab, step.tokens.value), say("one tile"), 9


def _activations(shape: ModelShape, passes: list[tuple[Pass, Phase, str]]) -> Iterator[Candidate]:
    """MLP and hidden activations of the pass, and attention scores where attention is not fused."""
    for step, phase, role in passes:
        for width, what in ((shape.intermediate, mark("{role} MLP activation")), (shape.hidden, _HIDDEN)):
            for size, dtype in _DTYPES:
                yield Candidate(
                    what,
                    step.high * width * size,
                    f"{dtype} [{step.high}, {width}]",
                    say(
                        "{tokens} tokens x {width} x {size} B ({words})",
                        tokens=step.high,
                        width=width,
                        size=size,
                        words=step.tokens.text(),
                    ),
                    (phase,),
                    8,
                    role,
                )
        for size, dtype in _DTYPES:
            rows, length = (step.sequences, step.length) if step.padded else (1, step.length)
            yield Candidate(
                mark("{role} attention scores (attention is not fused)"),
                rows * shape.heads * length * length * size,
                f"{dtype} [{rows}, {shape.heads}, {length}, {length}]",
                say(
                    "{rows} x {heads} heads x {length}^2 x {size} B",
                    rows=rows,
                    heads=shape.heads,
                    length=length,
                    size=size,
                ),
                (phase,),
                12,
                role,
            )


def _weights(run: Run, shape: ModelShape) -> Iterator[Candidate]:
    """Matrices, fused matrices of the engine, and flat shards of the whole model."""
    loads: tuple[Phase, ...] = ("model_load", "rollout_init", "weight_sync")
    gathers: tuple[Phase, ...] = (*loads, "actor_update", "log_prob", "critic_update")
    engine: tuple[Phase, ...] = ("rollout_init", "weight_sync")
    matrices: list[tuple[str, int, int, tuple[Phase, ...], int]] = [
        (mark("embedding or head weight"), shape.vocab, shape.hidden, gathers, 15),
        (mark("MLP matrix weight"), shape.intermediate, shape.hidden, gathers, 15),
        (mark("fused gate and up of the engine weight"), 2 * shape.intermediate, shape.hidden, engine, 17),
        (mark("query or output projection weight"), shape.heads * shape.head_dim, shape.hidden, gathers, 14),
    ]
    if shape.experts:
        stacked = shape.experts * shape.expert_intermediate
        matrices += [
            (mark("gate and up of all experts weight"), 2 * stacked, shape.hidden, loads, 16),
            (mark("down of all experts weight"), stacked, shape.hidden, loads, 15),
        ]
    for what, rows, columns, phases, weight in matrices:
        for size, dtype in _DTYPES:
            words = f"{rows} x {columns} x {size} B"
            yield Candidate(what, rows * columns * size, f"{dtype} [{rows}, {columns}]", words, phases, weight)
    yield from _flat(run, shape, run.mechanics)


def _flat(run: Run, shape: ModelShape, mechanics: Mechanics) -> Iterator[Candidate]:
    shards = shards_of(run)
    groups: list[tuple[int, str]] = [(shape.parameters, _WHOLE)]
    if shards > 1:
        groups.insert(0, (shape.parameters // shards, _SHARD))
    if mechanics.trainer == "deepspeed" and shape.parameters // shards > c.SUB_GROUP:
        groups.append((c.SUB_GROUP, _SUB_GROUP))
    for elements, text in groups:
        whole = text == _WHOLE
        for size, dtype in _DTYPES:
            yield Candidate(
                mark(
                    "the whole model in one buffer" if whole else "flat shard (weights, gradients, or one Adam moment)"
                ),
                elements * size,
                f"{dtype} [{elements}]",
                say(text, elements=elements, size=size, shards=shards),
                ("model_load", "weight_sync") if whole else ("optimizer_step", "model_load", "actor_update"),
                10,
            )


def _host_candidates(run: Run, shape: ModelShape) -> Iterator[Candidate]:
    """Flat fp32 buffers of the CPU optimizer; the CPU allocator prints exact bytes."""
    yield from _flat(run, shape, run.mechanics)
    if run.mechanics.trainer != "deepspeed":
        return
    shards = shards_of(run)
    for elements in sub_group_sizes(shape, shards):
        words = say(
            "sub-group filled up to 1e9 elements, tensor by tensor: {elements} on each of {shards} GPUs, 4 B each",
            elements=elements,
            shards=shards,
        )
        of = mark("fp32 sub-group of CPU Adam")
        yield Candidate(of, c.FP32 * elements, f"fp32 [{elements}]", words, ("model_load",), 9)


def _inverse(run: Run, shape: ModelShape, tried: int, phase: Phase) -> tuple[Match, ...]:
    """The token counts at which logits of this model have that size; those that a pass may hold come first."""
    assumed = Assumptions()
    step = scoring_pass(run, assumed) if phase == "log_prob" else update_pass(run, assumed)
    where: Phase = phase if phase in ("actor_update", "log_prob") else "unknown"
    found: list[tuple[bool, Match]] = []
    for size, dtype in _DTYPES:
        least, most = elements_window(tried, shape.vocab * size)
        tokens = f"{least}" if least == most else say("{least} to {most}", least=least, most=most)
        fits = least <= step.high
        words = say(
            _FITTING if fits else _TOO_MANY,
            tried=tried,
            vocab=shape.vocab,
            size=size,
            tokens=tokens,
            average=most / step.sequences,
            sequences=step.sequences,
            length=step.length,
            step=step.tokens.text(),
        )
        tensor = say("logits of {tokens} tokens, if it is logits", tokens=tokens)
        found.append((fits, Match(tensor, tried, f"{dtype} [T, {shape.vocab}]", words, where, False, of_logits=True)))
    return tuple(match for _, match in sorted(found, key=lambda pair: not pair[0]))


def _distance(candidate: Candidate, phase: Phase) -> int:
    """0: of the crash's phase (or that is unknown); 1: of a phase its traceback may stand for; 2: of another."""
    if phase == "unknown" or phase in candidate.phases:
        return 0
    return 1 if any(near in candidate.phases for near in _NEAR.get(phase, ())) else 2


def _phase_of(candidate: Candidate, phase: Phase) -> Phase:
    return phase if phase in candidate.phases else candidate.phases[0]


def _match(candidate: Candidate, phase: Phase, matches: bool) -> Match:
    tensor = say(candidate.tensor, role=say(candidate.role)) if candidate.role else say(candidate.tensor)
    of_logits = candidate.tensor in (_LOGITS, _COPIES)
    return Match(tensor, candidate.bytes, candidate.shape, candidate.formula, phase, matches, of_logits)
