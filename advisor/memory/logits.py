"""Logits and their copies: bytes live at once per token x vocabulary entry, by framework, version and settings."""

from __future__ import annotations

from functools import partial

from advisor.language import mark, say
from advisor.memory import constants as c
from advisor.memory.batches import Pass
from advisor.memory.formula import Words
from advisor.memory.inputs import Inputs
from advisor.memory.parts import Part, part
from advisor.run.derive import NO_REFERENCE


def logits_bytes(inputs: Inputs, step: Pass, *, updating: bool) -> tuple[float, Words]:
    """Live bytes per token x vocabulary entry, and why."""
    run, mechanics = inputs.run, inputs.mechanics
    if run.is_on("logprob.entropy_in_chunks") and (not updating or run.is_on("actor.entropy")):
        chunk = c.ENTROPY_CHUNK_BYTES * min(c.ENTROPY_CHUNK_TOKENS, step.tokens) / max(1, step.tokens)
        return (c.CHUNKED_ENTROPY_UPDATE if updating else c.BF16) + chunk, partial(_chunks, updating)
    if not updating and run.algorithm in NO_REFERENCE:
        return c.FLOAT_LOSS_FORWARD, partial(say, mark("the loss of an evaluation pass"))
    base = mechanics.logits_update_bytes if updating else mechanics.logits_forward_bytes
    row = mechanics.logits_update_row_bytes if updating else mechanics.logits_forward_row_bytes
    if row:
        base = max(base, c.BF16 + row / step.sequences)
    if inputs.trainer == "ddp" and mechanics.logits_factor_without_deepspeed > 1:
        cast = mechanics.logits_update_least_fp32 if updating else mechanics.logits_forward_least_fp32
        base = max(cast, base * mechanics.logits_factor_without_deepspeed)
    least = c.EAGER_ENTROPY_UPDATE if updating else c.EAGER_ENTROPY_FORWARD
    if _eager_entropy(inputs) and base < least:
        return least, partial(say, mark("entropy from padded logits, not compiled"))
    return base, partial(say, mark("log-probabilities with gradient" if updating else "log-probabilities"))


def _chunks(updating: bool) -> str:
    return say(
        "entropy in chunks of {tokens} tokens, whose graphs are all kept"
        if updating
        else "entropy in chunks of {tokens} tokens",
        tokens=c.ENTROPY_CHUNK_TOKENS,
    )


def _eager_entropy(inputs: Inputs) -> bool:
    """Entropy of padded rows, which verl does not compile."""
    run = inputs.run
    return (
        run.is_on("actor.entropy")
        and run.value("actor.remove_padding") is False
        and not run.is_on("actor.dynamic_batch")
        and inputs.mechanics.logits_scope == "prompt_and_response"
    )


def logits_part(inputs: Inputs, step: Pass, *, updating: bool) -> Part:
    """Logits and their copies live at once; a loss in chunks holds one chunk."""
    vocab = inputs.shape.vocab
    if inputs.run.is_on("actor.fused_loss") and (updating or inputs.mechanics.fused_loss_scores):
        tokens = min(step.tokens, c.FUSED_CHUNK_TOKENS)
        per = c.FUSED_CHUNK_BYTES if updating else c.FUSED_CHUNK_FORWARD_BYTES
        size = float(tokens * vocab * per)
        if updating and not inputs.adapters:
            size += 2 * c.BF16 * vocab * inputs.shape.hidden
        return part(
            "logits",
            size,
            lambda: say(
                "fused loss, one chunk: {tokens} tokens x {vocab} x {per} B", tokens=tokens, vocab=vocab, per=per
            ),
            low=size * c.LOGITS_LOW,
            high=size * c.LOGITS_HIGH,
            basis=step.basis,
        )
    each, why = logits_bytes(inputs, step, updating=updating)
    share = step.logits_part(inputs.mechanics.logits_scope)
    if each in (c.EAGER_ENTROPY_UPDATE, c.EAGER_ENTROPY_FORWARD):
        # The head's logits are those of whole rows; copies, softmax and entropy those of the response alone.
        each = c.BF16 + (each - c.EAGER_WHOLE[updating]) * step.logits_part("response")
    return part(
        "logits",
        each * vocab * step.tokens * share,
        lambda: say(
            "{each:g} B x {vocab} x {tokens:.0f} tokens ({why}; {step})",
            each=each,
            vocab=vocab,
            tokens=step.tokens * share,
            why=why(),
            step=step.formula,
        ),
        low=each * c.LOGITS_LOW * vocab * step.low * share,
        high=each * c.LOGITS_HIGH * vocab * step.high * share,
        basis=step.basis,
    )


def lost_logits(inputs: Inputs, step: Pass) -> list[Part]:
    """The block of the head's bf16 output, which is too small for the three fp32 tensors that follow it; and where
    lengths vary from pass to pass, the blocks that shorter ones left. Segments that can grow lose neither."""
    per, _ = logits_bytes(inputs, step, updating=True)
    fused = inputs.run.is_on("actor.fused_loss")
    if fused or per != c.FLOAT_LOSS or inputs.trainer == "megatron" or inputs.expandable:
        return []
    size = c.BF16 * inputs.shape.vocab * step.tokens * step.logits_part(inputs.mechanics.logits_scope)
    lost = [part("fragmentation", size, partial(_fits_no_copy, inputs.shape.vocab), low=0, basis="estimated")]
    if inputs.run.number("data.pack_tokens"):
        return lost
    one = per * inputs.shape.vocab * step.tokens
    size, most = c.SHORTER_PASSES * one, c.SHORTER_PASSES_HIGH * one
    return [*lost, part("fragmentation", size, _of_shorter, low=0, high=most, basis="estimated")]


def _fits_no_copy(vocab: int) -> str:
    return say("torch's segments: the head's output, 2 B x {vocab} x tokens, fits no fp32 copy of it", vocab=vocab)


def _of_shorter() -> str:
    return say("torch's segments: logits of shorter passes, whose blocks no longer one fits")
