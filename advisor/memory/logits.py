"""Counts logits and their copies: bytes live at once per token x vocabulary entry, by framework, version, settings."""

from __future__ import annotations

from advisor.language import mark
from advisor.memory import constants as c
from advisor.memory.amount import Amount, as_amount, in_bytes, least, quantity
from advisor.memory.batches import Pass, fill_of
from advisor.memory.cells import Cell, Note, cell, note
from advisor.memory.gathered import of_table
from advisor.memory.inputs import Inputs
from advisor.memory.layer import no_logits


def logits_bytes(inputs: Inputs, step: Pass, *, updating: bool) -> tuple[Amount, Note]:
    """Live bytes per token x vocabulary entry, and why."""
    run, mechanics = inputs.run, inputs.mechanics
    if run.is_on("logprob.entropy_in_chunks") and (not updating or run.is_on("actor.entropy")):
        tokens = quantity("tokens", max(1, step.tokens.value))
        part = least(quantity("tokens", c.ENTROPY_CHUNK_TOKENS), tokens) / tokens
        kept = in_bytes("", c.CHUNKED_ENTROPY_UPDATE if updating else c.BF16)
        chunks = mark("entropy in chunks of {tokens} tokens")
        words = mark("entropy in chunks of {tokens} tokens, whose graphs are all kept") if updating else chunks
        return kept + in_bytes("", c.ENTROPY_CHUNK_BYTES) * part, note(words, tokens=c.ENTROPY_CHUNK_TOKENS)
    if not updating and run.recipe.loss == "tokens":
        return in_bytes("", c.FLOAT_LOSS_FORWARD), Note(mark("the loss of an evaluation pass"))
    if updating and run.recipe.loss == "distributions":
        diverging = c.JSD_HALF if inputs.trainer == "deepspeed" else c.JSD_FLOAT
        everywhere = inputs.mechanics.logits_scope != "response"  # else only the answers have logits at all
        answers = step.logits_part("response") if everywhere else as_amount(1)
        size = in_bytes("", c.TWO_LOGITS) + in_bytes("", diverging, basis="estimated") * answers
        return size, Note(mark("divergence from the teacher, over the whole vocabulary"))
    kind = "update" if updating else "forward"
    base = inputs.mechanic(f"logits_{kind}_bytes")
    row = inputs.mechanic(f"logits_{kind}_row_bytes")
    if row:
        by_rows = c.IN_BF16 + row / quantity("sequences", step.sequences)
        base = max(base, by_rows)
    if inputs.trainer == "ddp" and mechanics.logits_factor_without_deepspeed > 1:
        doubled = base * inputs.mechanic("logits_factor_without_deepspeed", unit="")
        base = max(inputs.mechanic(f"logits_{kind}_least_fp32"), doubled)
    eager = c.EAGER_ENTROPY_UPDATE if updating else c.EAGER_ENTROPY_FORWARD
    if _eager_entropy(inputs, updating=updating) and base < eager:
        return in_bytes("", eager), Note(mark("entropy from all logits, not compiled"))
    return base, Note(mark("log-probabilities with gradient") if updating else mark("log-probabilities"))


def _eager_entropy(inputs: Inputs, *, updating: bool) -> bool:
    """Entropy that is not compiled: of padded rows (verl never compiles it there), or where compiling is off. A pass
    that scores takes it whatever the loss does, where the framework asks it to."""
    run = inputs.run
    asked = run.is_on("actor.entropy") or (not updating and inputs.mechanics.scores_entropy and not inputs.adapters)
    padded = run.value("actor.remove_padding") is False and not run.is_on("actor.dynamic_batch")
    eager = padded or run.value("actor.compiled_entropy") is False
    return asked and eager and inputs.mechanics.logits_scope == "prompt_and_response"


def logits_cell(inputs: Inputs, step: Pass, *, updating: bool) -> Cell:
    """Logits and their copies live at once; a loss in chunks holds one chunk."""
    if inputs.run.recipe.head != "vocabulary":
        return no_logits()
    vocab = quantity("vocabulary", inputs.shape.vocab, basis=inputs.shape.basis)
    if inputs.run.is_on("actor.fused_loss") and (updating or inputs.mechanics.fused_loss_scores):
        tokens = quantity("tokens", min(step.tokens.value, c.FUSED_CHUNK_TOKENS), basis=step.tokens.basis)
        size = tokens * vocab * in_bytes("", c.FUSED_CHUNK_BYTES if updating else c.FUSED_CHUNK_FORWARD_BYTES)
        if updating and not inputs.adapters:
            size = size + quantity("copies", c.HEAD_COPIES_OF_FUSED_LOSS) * c.IN_BF16 * of_table(inputs.shape)
        return cell("logits", size.spread(c.LOGITS_LOW, c.LOGITS_HIGH), mark("fused loss, one chunk"))
    each, why = logits_bytes(inputs, step, updating=updating)
    part = step.logits_part(inputs.mechanics.logits_scope)
    if each.value in (c.EAGER_ENTROPY_UPDATE, c.EAGER_ENTROPY_FORWARD) and step.padded:
        # The head's logits are those of whole rows; copies, softmax and entropy those of the response alone.
        whole = c.EAGER_WHOLE[updating]
        each = c.IN_BF16 + in_bytes("", each.value - whole) * step.logits_part("response")
    size = each * vocab * step.tokens * part
    return cell("logits", size.spread(c.LOGITS_LOW, c.LOGITS_HIGH), why)


def lost_logits(inputs: Inputs, step: Pass) -> list[Cell]:
    """The block of the head's bf16 output, which is too small for the three fp32 tensors that follow it; and where
    lengths vary from pass to pass, the blocks that shorter ones left. Segments that can grow lose neither."""
    per, _ = logits_bytes(inputs, step, updating=True)
    fused = inputs.run.is_on("actor.fused_loss")
    fused = fused or inputs.run.recipe.head != "vocabulary"
    if fused or per.value != c.FLOAT_LOSS or inputs.trainer == "megatron" or inputs.expandable:
        return []
    output = quantity("vocabulary", inputs.shape.vocab) * step.tokens.called("tokens", "").rests_on("estimated")
    head = c.IN_BF16 * output * step.logits_part(inputs.mechanics.logits_scope)
    lost = [
        cell(
            "fragmentation",
            head.within(low=0),
            mark("torch's segments: the head's output fits no fp32 copy of it"),
            kind="unused",
        )
    ]
    if inputs.run.number("data.pack_tokens"):
        return lost
    fill = fill_of(inputs.run, step.length)
    shorter = fill.shorter * (per * output)
    if shorter.by_data is not None:
        at_cap = c.SHORTER_AT_CAP.value * per.value * inputs.shape.vocab * step.high
        shorter = shorter.moved(fill.shorter.low * shorter.by_data[0] / fill.shorter.value, at_cap)
    words = mark("torch's segments: logits of shorter passes, whose blocks no longer one fits")
    return [*lost, cell("fragmentation", shorter, words, kind="unused")]
