"""How many tokens one GPU sees in one pass, from the knobs that decide it; and which of them had to be assumed."""

from __future__ import annotations

from functools import partial
from typing import Literal

from msgspec import Struct, field

from advisor.language import mark, say
from advisor.memory.constants import (
    ASSUMED_LENGTH,
    BALANCE_SLACK,
    FILL,
    FILL_GIVEN,
    FILL_GIVEN_LOW,
    FILL_LOW,
    SHORTEST_PACKED,
    SHORTEST_PADDED,
)
from advisor.memory.formula import Words, read
from advisor.run.derive import GIVEN_ANSWERS, PAIRS
from advisor.run.run import KnobValue, Run
from advisor.words import Basis

Role = Literal["actor", "critic"]
_Reader = Literal["actor", "log-prob", "evaluation", "critic"]
"""Who runs a pass."""
_ONE_SEQUENCE: dict[_Reader, str] = {
    "actor": mark("sequences per actor pass: 1"),
    "log-prob": mark("sequences per log-prob pass: 1"),
    "evaluation": mark("sequences per evaluation pass: 1"),
    "critic": mark("sequences per critic pass: 1"),
}
_PACKED = mark("one packed row of {tokens:.0f} tokens")
_ROWS = mark("{sequences} x {length} tokens")
_MICRO_CAPPED = mark("{sequences} x {length} tokens (micro-batch {micro:.0f}, but the GPU holds {sequences})")
_BUDGET_ROWS = mark("{sequences} x {length} tokens (token budget {budget:.0f}: about {micro:.0f} sequences)")
_BUDGET_CAPPED = mark(
    "{sequences} x {length} tokens (token budget {budget:.0f}: about {micro:.0f}, but the GPU holds {sequences})"
)
_BUDGET = mark("token budget {budget:.0f}")
_RAISED = mark("token budget {budget:.0f}, raised to one sequence of {length}")
_PADDED = mark("{tokens}, padded")
_GIVEN = mark("{tokens}, laid end to end, at {fill:.0%} of the longest on average")
_UNPADDED = mark("{tokens}, without padding: one at the cap, the others at {fill:.0%} of it")


class Assumptions(Struct):
    """Collects the inputs that had to be guessed, in words, while a ledger is built."""

    said: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Remember `sentence` once."""
        if sentence not in self.said:
            self.said.append(sentence)


class Pass(Struct, frozen=True):
    """One pass on one GPU. Tokens are those of this rank (already divided by the sequence-parallel size)."""

    low: int
    tokens: int
    high: int
    sequences: int
    length: int
    """Longest sequence, prompt and response."""
    response: int | None
    padded: bool
    """Rows are padded to one length: [sequences, length]."""
    words: str | Words
    """How its tokens were counted, said when it is read (`formula`)."""
    basis: Basis = "computed"

    @property
    def formula(self) -> str:
        """ "4 x 5120 tokens / 2 (sequence parallel), padded"."""
        return read(self.words)

    def logits_part(self, scope: str) -> float:
        """Part of the tokens for which logits are computed: all, or the response and one more."""
        if scope != "response" or self.response is None or self.length <= 0:
            return 1.0
        return min(1.0, (self.response + 1) / self.length)


def sequence_length(run: Run, assumed: Assumptions) -> tuple[int, Basis]:
    """Tokens of the longest prompt and response together."""
    prompt, response = run.number("data.prompt_tokens"), run.number("data.response_tokens")
    known = run.number("data.total_tokens") or (prompt + response if prompt and response else None)
    known = known or run.number("rollout.max_model_len") or response or prompt
    if known:
        return int(known), "computed"
    packed = run.number("data.pack_tokens")
    if packed:
        return int(packed), "computed"
    assumed.note(say("longest sequence: {length} tokens", length=ASSUMED_LENGTH))
    return ASSUMED_LENGTH, "estimated"


def sequences_held(run: Run, per_step: str = "data.train_batch") -> int | None:
    """Sequences of one step (or of one optimizer step) that one data-parallel rank holds; None where unknown."""
    if per_step == "data.train_batch":
        derived = run.number("actor.sequences_per_gpu")
        if derived:
            return int(derived)
    prompts = run.number(per_step)
    if not prompts:
        return None
    samples = run.number("rollout.samples_per_prompt") or 1
    return max(1, int(prompts * samples / run.topology.data_parallel))


def setting_of(run: Run, role: Role, name: str) -> KnobValue | None:
    """A setting of a role's own; where the framework has none for the critic, the actor's serves both."""
    own = run.value(f"{role}.{name}")
    return run.value(f"actor.{name}") if own is None else own


def update_pass(run: Run, assumed: Assumptions) -> Pass:
    """The pass of the actor's update."""
    caps = [c for c in (sequences_held(run), sequences_held(run, "actor.mini_batch")) if c is not None]
    micro = _rows_of(run, run.number("actor.micro_batch"))
    dynamic = run.is_on("actor.dynamic_batch")
    shape = _Sharing("actor", run.topology.sequence_parallel, without_padding(run, "actor"))
    return _pass(run, assumed, shape, micro, caps, run.number("actor.tokens_per_gpu") if dynamic else None)


def _rows_of(run: Run, micro: float | None) -> float | None:
    """Rows of a pass of `micro` samples: a preference pair has two."""
    return 2 * micro if micro and run.algorithm in PAIRS else micro


def scoring_pass(run: Run, assumed: Assumptions) -> Pass:
    """The widest pass that scores without gradients: old and reference log-probabilities."""
    held = sequences_held(run)
    sizes = [run.number(k) for k in ("logprob.micro_batch", "reference.micro_batch", "rollout.forward_micro_batch")]
    known = [size for size in sizes if size]
    micro = _rows_of(run, max(known) if known else run.number("actor.micro_batch"))
    dynamic = run.is_on("logprob.dynamic_batch", run.is_on("actor.dynamic_batch"))
    budget = run.number("logprob.tokens_per_gpu") or run.number("actor.tokens_per_gpu")
    shape = _Sharing("log-prob", run.topology.sequence_parallel, without_padding(run, "actor"))
    return _pass(run, assumed, shape, micro, [held] if held else [], budget if dynamic else None)


def evaluation_pass(run: Run, assumed: Assumptions) -> Pass | None:
    """The pass of Hugging Face trainers that scores an evaluation batch; None where nothing is evaluated."""
    micro = _rows_of(run, run.number("eval.micro_batch"))
    if not micro or run.value("eval.on") in (None, False, 0, 0.0, "", "no", "none"):
        return None
    return _pass(run, assumed, _Sharing("evaluation", run.topology.sequence_parallel, False), micro, [], None)


def critic_pass(run: Run, assumed: Assumptions) -> Pass:
    """The pass of the critic's update, by the critic's own settings where the framework has them."""
    micro = run.number("critic.micro_batch") or run.number("actor.micro_batch")
    tokens = setting_of(run, "critic", "tokens_per_gpu")
    budget = float(tokens) if isinstance(tokens, int | float) and setting_of(run, "critic", "dynamic_batch") else None
    parallel = int(run.number("critic.sequence_parallel") or run.topology.sequence_parallel)
    shape = _Sharing("critic", parallel, without_padding(run, "critic"))
    mini = run.number("critic.mini_batch")
    caps = [int(cap) for cap in (sequences_held(run), mini) if cap]
    return _pass(run, assumed, shape, micro, caps, budget)


class _Sharing(Struct, frozen=True):
    """How a role's sequences lie on one GPU."""

    role: _Reader
    parallel: int
    """GPUs that share one sequence."""
    unpadded: bool


def _pass(
    run: Run, assumed: Assumptions, sharing: _Sharing, micro: float | None, caps: list[int], budget: float | None
) -> Pass:
    length, basis = sequence_length(run, assumed)
    response = run.number("data.response_tokens")
    parallel = max(1, sharing.parallel)
    packed = run.number("data.pack_tokens")
    if packed:
        tokens = round(packed / parallel)
        row = partial(_shared, parallel, partial(say, _PACKED, tokens=packed))
        return Pass(round(tokens * SHORTEST_PACKED), tokens, tokens, 1, int(packed), None, False, row, basis)
    if budget and sharing.unpadded:
        return _budgeted(budget, length, parallel, response, basis)
    if budget:
        micro = _rows(budget, length, parallel)
    if micro is None and not caps:
        assumed.note(say(_ONE_SEQUENCE[sharing.role]))
        basis = "estimated"
    sequences = max(1, int(min([*([micro] if micro else []), *caps], default=1)))
    cap = round(sequences * length / parallel)
    words = partial(_shared, parallel, partial(_counted, sequences, length, budget, micro))
    whole = None if response is None else int(response)
    if not sharing.unpadded:
        low = cap if run.mechanics.trainer == "fsdp" else round(cap * SHORTEST_PADDED)
        return Pass(low, cap, cap, sequences, length, whole, True, partial(_laid, words, _PADDED), basis)
    if run.algorithm in GIVEN_ANSWERS:
        words = partial(_laid, words, _GIVEN, FILL_GIVEN)
        real = round(cap * FILL_GIVEN)
        return Pass(round(cap * FILL_GIVEN_LOW), real, cap, sequences, length, whole, False, words, basis)
    real = round(cap * (1 + FILL * (sequences - 1)) / sequences)
    if sequences > 1:
        words = partial(_laid, words, _UNPADDED, FILL)
    return Pass(round(cap * FILL_LOW), real, cap, sequences, length, whole, False, words, basis)


def _budgeted(budget: float, length: int, parallel: int, response: float | None, basis: Basis) -> Pass:
    """A pass filled with real tokens up to the budget, at least one sequence."""
    tokens = round(max(budget, length / parallel))
    words = partial(say, _BUDGET if tokens <= budget else _RAISED, budget=budget, length=length)
    sequences = max(1, round(tokens * parallel / length))
    whole = None if response is None else int(response)
    low, high = round(tokens * SHORTEST_PADDED), round(tokens * BALANCE_SLACK)
    return Pass(low, tokens, high, sequences, length, whole, False, words, basis)


def _rows(budget: float, length: int, parallel: int) -> float:
    """Sequences whose real tokens fill a budget, one at full length; each is then padded to it all the same."""
    return max(1.0, 1 + (budget * parallel / length - 1) / FILL)


def without_padding(run: Run, role: Role) -> bool:
    """Whether the role's model sees real tokens only. A token budget alone does not say so where the role's own key
    for padding says otherwise."""
    own = setting_of(run, role, "remove_padding")
    if isinstance(own, bool):
        return own
    return run.mechanics.lays_end_to_end or setting_of(run, role, "dynamic_batch") is True


def _counted(sequences: int, length: int, budget: float | None, micro: float | None) -> str:
    """Sequences times length, and what decided how many sequences they are."""
    capped = bool(micro) and (micro or 0) > sequences
    texts = (_BUDGET_ROWS, _BUDGET_CAPPED) if budget else (_ROWS, _MICRO_CAPPED)
    return say(texts[capped], sequences=sequences, length=length, budget=budget or 0, micro=micro or 0)


def _shared(parallel: int, what: Words) -> str:
    return (
        say("{tokens} / {parallel} (sequence parallel)", tokens=what(), parallel=parallel) if parallel > 1 else what()
    )


def _laid(what: Words, how: str, fill: float = 1.0) -> str:
    return say(how, tokens=what(), fill=fill)


def tokens_words(what: Words, step: Pass) -> str:
    """Bytes a token, times the tokens of a pass."""
    return say("{what} x {tokens} tokens ({step})", what=what(), tokens=step.tokens, step=step.formula)
