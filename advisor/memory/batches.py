"""How many tokens one GPU sees in one pass, from the knobs that decide it; and which of them had to be assumed."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.memory.constants import ASSUMED_LENGTH, BALANCE_SLACK, FILL, FILL_LOW, SHORTEST_PADDED
from advisor.run.run import Run
from advisor.words import Basis


@dataclass(slots=True)
class Assumptions:
    """Collects the inputs that had to be guessed, in words, while a ledger is built."""

    said: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Remember `sentence` once."""
        if sentence not in self.said:
            self.said.append(sentence)


@dataclass(frozen=True, slots=True)
class Pass:
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
    formula: str
    basis: Basis = "computed"

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
    assumed.note(f"longest sequence: {ASSUMED_LENGTH} tokens")
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


def update_pass(run: Run, assumed: Assumptions) -> Pass:
    """The pass of the actor's update."""
    caps = [c for c in (sequences_held(run), sequences_held(run, "actor.mini_batch")) if c is not None]
    micro = run.number("actor.micro_batch")
    dynamic = run.is_on("actor.dynamic_batch")
    return _pass(run, assumed, "actor", micro, caps, run.number("actor.tokens_per_gpu") if dynamic else None)


def scoring_pass(run: Run, assumed: Assumptions) -> Pass:
    """The widest pass that scores without gradients: old and reference log-probabilities."""
    held = sequences_held(run)
    sizes = [run.number(k) for k in ("logprob.micro_batch", "reference.micro_batch", "rollout.forward_micro_batch")]
    known = [size for size in sizes if size]
    micro = max(known) if known else run.number("actor.micro_batch")
    dynamic = run.is_on("logprob.dynamic_batch", run.is_on("actor.dynamic_batch"))
    budget = run.number("logprob.tokens_per_gpu") or run.number("actor.tokens_per_gpu")
    return _pass(run, assumed, "log-prob", micro, [held] if held else [], budget if dynamic else None)


def critic_pass(run: Run, assumed: Assumptions) -> Pass:
    """The pass of the critic's update."""
    held = sequences_held(run)
    micro = run.number("critic.micro_batch") or run.number("actor.micro_batch")
    budget = run.number("actor.tokens_per_gpu") if run.is_on("actor.dynamic_batch") else None
    return _pass(run, assumed, "critic", micro, [held] if held else [], budget)


def _pass(
    run: Run, assumed: Assumptions, role: str, micro: float | None, caps: list[int], budget: float | None
) -> Pass:
    length, basis = sequence_length(run, assumed)
    response = run.number("data.response_tokens")
    parallel = max(1, run.topology.sequence_parallel)
    packed = run.number("data.pack_tokens")
    if packed:
        tokens = round(packed / parallel)
        words = f"one packed row of {packed:.0f} tokens" + _shared(parallel)
        return Pass(round(tokens * SHORTEST_PADDED), tokens, tokens, 1, int(packed), None, False, words, basis)
    if budget:
        tokens = round(max(budget, length / parallel))
        words = f"token budget {budget:.0f}" + ("" if tokens <= budget else f", raised to one sequence of {length}")
        sequences = max(1, round(tokens * parallel / length))
        whole = None if response is None else int(response)
        low, high = round(tokens * SHORTEST_PADDED), round(tokens * BALANCE_SLACK)
        return Pass(low, tokens, high, sequences, length, whole, False, words, basis)
    if micro is None and not caps:
        assumed.note(f"sequences per {role} pass: 1")
        basis = "estimated"
    sequences = max(1, int(min([*([micro] if micro else []), *caps], default=1)))
    capped = f" (micro-batch {micro:.0f}, but the GPU holds {sequences})" if micro and micro > sequences else ""
    cap = round(sequences * length / parallel)
    words = f"{sequences} x {length} tokens{capped}" + _shared(parallel)
    whole = None if response is None else int(response)
    if not _without_padding(run):
        low = cap if run.mechanics.trainer == "fsdp" else round(cap * SHORTEST_PADDED)
        return Pass(low, cap, cap, sequences, length, whole, True, words + ", padded", basis)
    real = round(cap * (1 + FILL * (sequences - 1)) / sequences)
    if sequences > 1:
        words += f", without padding: one at the cap, the others at {FILL:.0%} of it"
    return Pass(round(cap * FILL_LOW), real, cap, sequences, length, whole, False, words, basis)


def _without_padding(run: Run) -> bool:
    return run.is_on("actor.remove_padding") or run.is_on("actor.dynamic_batch")


def _shared(parallel: int) -> str:
    return f" / {parallel} (sequence parallel)" if parallel > 1 else ""
