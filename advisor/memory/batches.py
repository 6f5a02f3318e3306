"""Counts the tokens that one GPU sees in one pass, from the knobs that decide it and what is known of the data, and
notes what had to be assumed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, inf, log, sqrt
from typing import Literal

from msgspec import Struct, field

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import DataSetFact
from advisor.language import listed, mark, say
from advisor.memory import constants as c
from advisor.memory.amount import Amount, as_amount, least, most, quantity
from advisor.memory.amount import assumed as guess
from advisor.memory.cells import Rows
from advisor.run.run import Knob, KnobValue, Run, evaluates_only
from advisor.words import Basis, Phase

LONGEST_ROW, AT_CAP = "data.longest_row", "cap"
"""The knob that says how long rows really are, and its value that makes every row as long as its cap."""
TrainedRole = Literal["actor", "critic"]
_PassOf = Literal["actor", "log-prob", "evaluation", "critic"]
"""Who runs a pass."""
_ONE_SEQUENCE: dict[_PassOf, str] = {
    "actor": mark("sequences per actor pass: 1"),
    "log-prob": mark("sequences per log-prob pass: 1"),
    "evaluation": mark("sequences per evaluation pass: 1"),
    "critic": mark("sequences per critic pass: 1"),
}


class Assumptions(Struct):
    """Collects the inputs that had to be guessed, in words, while a ledger is built."""

    said: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Remember `sentence` once."""
        if sentence not in self.said:
            self.said.append(sentence)


class Pass(Struct, frozen=True, gc=False):
    """One pass on one GPU. Tokens are those of this rank (already divided by the sequence-parallel size)."""

    tokens: Amount
    sequences: int
    length: int
    """Longest sequence, prompt and response."""
    response: int | None
    padded: bool
    """Rows are padded to one length: [sequences, length]."""

    @property
    def high(self) -> int:
        """Tokens at the most."""
        return round(self.tokens.by_data[1] if self.tokens.by_data is not None else self.tokens.high)

    def rows(self, ways: int) -> Rows | None:
        """What a row has on average; `ways`: GPUs that share one. None where rows cannot differ."""
        ends = self.tokens.by_data
        if ends is None or ends[0] == ends[1]:
            return None
        low, expected, high = (round(each * ways / self.sequences) for each in (ends[0], self.tokens.value, ends[1]))
        return Rows(low, expected, high)

    def logits_part(self, scope: str) -> Amount:
        """Part of the tokens for which logits are computed: all, or the response and one more."""
        if scope != "response" or self.response is None or self.length <= 0:
            return as_amount(1)
        return quantity("of them in the response", min(1.0, (self.response + 1) / self.length), "%")


LENGTHS = ("data.total_tokens", "data.pack_tokens", "data.prompt_tokens", "data.response_tokens")
_ROWS = ("actor.micro_batch", "actor.mini_batch", "data.train_batch")
"""What says how many rows a pass has, the first of them that the launch sets."""


def unread_lengths(run: Run) -> tuple[Knob, ...]:
    """Settings of a row's length that nobody could read, where no other one says how long rows are."""
    if any(run.number(name) for name in (*LENGTHS[:2], "rollout.max_model_len", LONGEST_ROW)):
        return ()
    return tuple(knob for name in LENGTHS if (knob := run.knobs.get(name)) is not None and knob.unread)


def unread_rows(run: Run) -> tuple[Knob, ...]:
    """The setting that says how many rows, or tokens, a pass has, where nobody could read it."""
    if run.is_on("actor.dynamic_batch"):
        names: tuple[str, ...] = (_BUDGET,)
    else:
        names = next(((name,) for name in _ROWS if name in run.knobs), ())
    return tuple(run.knobs[name] for name in names if name in run.knobs and run.knobs[name].unread)


def _budget(run: Run) -> float | None:
    return run.number(_BUDGET) if run.is_on("actor.dynamic_batch") else None


_BUDGET = "actor.tokens_per_gpu"
_BUDGETS: Mapping[Phase, tuple[str, ...]] = {
    "actor_update": (_BUDGET,),
    "log_prob": ("logprob.tokens_per_gpu", _BUDGET),
    "critic_update": ("critic.tokens_per_gpu", _BUDGET),
}
MANY_ROWS = 10
"""Of the longest length, in a budget that is too much for the card: then a digit too many is likely (judgement)."""


def far_beyond_a_row(run: Run, phase: Phase) -> tuple[Knob, int] | None:
    """The token budget of a phase's pass and the longest row, where the budget takes so many of them."""
    knob = next((run.knobs[name] for name in _BUDGETS.get(phase, ()) if run.number(name)), None)
    length = sequence_length(run, Assumptions())[0] / max(1, run.topology.sequence_parallel)
    if knob is None or not run.is_on("actor.dynamic_batch") or (run.number(knob.name) or 0) < MANY_ROWS * length:
        return None
    return knob, round(length)


def sequence_length(run: Run, assumed: Assumptions) -> tuple[int, Basis]:
    """Tokens of the longest prompt and response together; of an unread length, as many as a pass's budget holds."""
    prompt, response = run.number("data.prompt_tokens"), run.number("data.response_tokens")
    known = run.number("data.total_tokens") or (prompt + response if prompt and response else None)
    known = known or run.number("rollout.max_model_len")
    if known is None and (unread := unread_lengths(run)):
        budget = _budget(run)
        length = budget * run.topology.sequence_parallel if budget else max(c.ASSUMED_LENGTH, prompt or response or 0)
        told = {"keys": listed(knob.key for knob in unread), "length": f"{length:g}"}
        assumed.note(say("{keys} could not be read: rows of {length} tokens are counted", **told))
        return int(length), "estimated"
    if known is None and response and run.recipe.answers != "given":
        row = run.number(LONGEST_ROW)
        if row is None:
            assumed.note(
                say("how long prompts are is not known: {length} tokens of one are counted", length=c.ASSUMED_PROMPT)
            )
        known = max(response, row or response + c.ASSUMED_PROMPT)
    known = known or response or prompt
    rows = row_lengths(run) if run.recipe.answers == "given" else None
    if rows is not None and not run.number("data.pack_tokens") and run.value(LONGEST_ROW) is None:
        return ceil(min(known or max(c.ASSUMED_LENGTH, rows.longest), rows.most)), "estimated"
    if known:
        said = run.number(LONGEST_ROW)
        return int(min(known, said) if said else known), "computed"
    packed = run.number("data.pack_tokens")
    if packed:
        return int(packed), "computed"
    assumed.note(say("longest sequence: {length} tokens", length=c.ASSUMED_LENGTH))
    return c.ASSUMED_LENGTH, "estimated"


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


def setting_of(run: Run, role: TrainedRole, name: str) -> KnobValue | None:
    """A setting of a role's own; where the framework has none for the critic, the actor's serves both."""
    own = run.value(f"{role}.{name}")
    return run.value(f"actor.{name}") if own is None else own


def update_pass(run: Run, assumed: Assumptions) -> Pass:
    """The pass of the actor's update."""
    caps = [cap for cap in (sequences_held(run), sequences_held(run, "actor.mini_batch")) if cap is not None]
    micro = _rows_of(run, run.number("actor.micro_batch"))
    return _pass(run, assumed, "actor", without_padding(run, "actor"), micro, caps, _budget(run))


def _rows_of(run: Run, micro: float | None) -> float | None:
    """Rows of a pass of `micro` samples: a preference pair has two, unless packed rows hold whole pairs."""
    if not micro or (run.mechanics.packs_samples and run.number("data.pack_tokens")):
        return micro
    return run.recipe.rows * micro


def scoring_pass(run: Run, assumed: Assumptions) -> Pass:
    """The widest pass that scores without gradients: old and reference log-probabilities."""
    held = sequences_held(run)
    sizes = [run.number(k) for k in ("logprob.micro_batch", "reference.micro_batch", "rollout.forward_micro_batch")]
    known = [size for size in sizes if size]
    micro = _rows_of(run, max(known) if known else run.number("actor.micro_batch"))
    dynamic = run.is_on("logprob.dynamic_batch", run.is_on("actor.dynamic_batch"))
    budget = run.number("logprob.tokens_per_gpu") or run.number("actor.tokens_per_gpu")
    caps, unpadded = [held] if held else [], without_padding(run, "actor")
    return _pass(run, assumed, "log-prob", unpadded, micro, caps, budget if dynamic else None)


NO_EVALUATION = (False, 0, 0.0, "", "no", "none")
"""Values of the knob eval.on with which training never evaluates."""


def evaluation_pass(run: Run, assumed: Assumptions) -> Pass | None:
    """The pass of Hugging Face trainers that scores an evaluation batch; None where nothing is evaluated."""
    micro = _rows_of(run, run.number("eval.micro_batch"))
    if not micro or (run.value("eval.on") in (None, *NO_EVALUATION) and not evaluates_only(run)):
        return None
    return _pass(run, assumed, "evaluation", without_padding(run, "actor"), micro, [], None)


def critic_pass(run: Run, assumed: Assumptions) -> Pass:
    """The pass of the critic's update, by the critic's own settings where the framework has them."""
    micro = run.number("critic.micro_batch") or run.number("actor.micro_batch")
    tokens = setting_of(run, "critic", "tokens_per_gpu")
    budget = float(tokens) if isinstance(tokens, int | float) and setting_of(run, "critic", "dynamic_batch") else None
    mini = run.number("critic.mini_batch")
    caps = [int(cap) for cap in (sequences_held(run), mini) if cap]
    return _pass(run, assumed, "critic", without_padding(run, "critic"), micro, caps, budget)


def _pass(
    run: Run,
    assumed: Assumptions,
    kind: _PassOf,
    unpadded: bool,
    micro: float | None,
    caps: list[int],
    budget: float | None,
) -> Pass:
    parallel = run.topology.sequence_parallel
    if kind == "critic":
        parallel = int(run.number("critic.sequence_parallel") or parallel)
    length, basis = sequence_length(run, assumed)
    if budget and unread_lengths(run):
        length = min(length, int(budget * parallel))
    response = run.number("data.response_tokens")
    whole = None if response is None else int(response)
    ways = quantity("GPUs in sequence parallel", max(1, parallel))
    packed = run.number("data.pack_tokens")
    if packed:
        rows = _sequences(micro, caps, mark("packed rows in a micro-batch"))
        if kind == "actor" and run.mechanics.packs_samples and run.recipe.scored_rows:
            packed = packed / (1 + run.recipe.scored_rows)  # the rest of a row is scored apart
        all_rows = (rows * quantity("tokens in a packed row", packed, basis=basis) / ways).rounded()
        tokens = all_rows.moved(round(all_rows.value * c.SHORTEST_PACKED), all_rows, mark("how full packed rows are"))
        return Pass(tokens, int(rows.value), int(packed), None, False)
    longest = quantity("tokens", length, basis=basis) / ways
    held = min(caps, default=None)
    fill = fill_of(run, length)
    if budget and unpadded and held and _end_to_end(as_amount(held), longest, fill).value < budget:
        # All that the GPU has is expected to be one pass; the budget cuts it only where rows are long.
        return _one_pass(held, longest, budget, fill, length, whole)
    if budget and unpadded:
        tokens = longest.rounded() if longest > budget else quantity("tokens in the budget", budget, basis=basis)
        sequences = max(1, round(tokens.value * ways.value / length))
        fullest = round(tokens.value * c.BALANCE_SLACK)
        # Only a row that is longer than the budget exceeds it: shorter ones fill it.
        least_full = round(min(tokens.value, budget) * c.SHORTEST_PADDED)
        if held is not None:  # all that the GPU has may be less than the budget, where rows are short
            least_full = min(least_full, round((fill.least + (held - 1) * fill.least_others) * longest.value))
        ends = least_full, fullest
        return Pass(
            tokens.rounded().moved(*ends, mark("how full the token budget is")), sequences, length, whole, False
        )
    to_cap = not unpadded and run.recipe.answers != "given" and run.mechanics.trainer == "fsdp"
    if budget:
        # rows whose real tokens fill the budget, each padded to the longest of them, or all to the cap
        full = budget * max(1, parallel) / length
        micro = max(1.0, full / fill.others if to_cap else 1 + (full - 1) / c.FILL)
    rows = _sequences(micro, caps, mark("sequences in the budget") if budget else mark("sequences in a micro-batch"))
    if micro is None and not caps:
        assumed.note(say(_ONE_SEQUENCE[kind]))
        rows = guess("sequences", 1)
    sequences = int(rows.value)
    cap = (rows * longest).rounded()
    if to_cap:
        return Pass(cap, sequences, length, whole, True)  # verl and its like pad every row to the cap
    if unpadded and sequences > 1:
        real, low = _end_to_end(rows, longest, fill), fill.least_others
    else:
        real, low = (cap * fill.of_longest).rounded(), fill.least
    tokens = real.moved((cap * low).rounded(), cap, mark("the lengths of the rows"))
    return Pass(tokens, sequences, length, whole, not unpadded)


def _end_to_end(rows: Amount, longest: Amount, fill: Fill) -> Amount:
    """Tokens of so many rows without padding: one is as long as the longest of a pass, the others are average."""
    others = quantity("", fill.others, "%", basis="estimated") * (rows - 1)
    return ((fill.of_longest + others) * longest).rounded()


def _one_pass(held: int, longest: Amount, budget: float, fill: Fill, length: int, response: int | None) -> Pass:
    """All sequences that the GPU holds in one pass, at the most as many tokens as the budget allows."""
    rows = quantity("sequences that the GPU holds", held)
    cap = least((rows * longest).rounded(), most(longest, budget * c.BALANCE_SLACK).rounded())
    low = (rows * longest).value * fill.least_others
    tokens = _end_to_end(rows, longest, fill).moved(min(low, cap.value), cap, mark("the lengths of the rows"))
    return Pass(tokens, held, length, response, False)


class Fill(Struct, frozen=True):
    """Rows in parts of the longest length: the longest row of a pass, the others on average, and both at the least."""

    longest: float
    others: float
    least: float
    least_others: float
    shorter: Amount
    """What blocks of earlier, shorter passes lose, in passes like the longest."""

    @property
    def of_longest(self) -> Amount:
        """Part of the cap that the longest row of a pass takes."""
        return quantity("of the cap", self.longest, "%", basis="estimated") if self.longest < 1 else as_amount(1)


def fill_of(run: Run, length: int) -> Fill:
    """How full rows of at most `length` tokens are: as the user says, as the data sets that are named are known to be,
    as data that hold their answers are, or as answers that a policy writes."""
    said = run.value(LONGEST_ROW)
    if said == AT_CAP:
        return Fill(1, 1, 1, 1, c.SHORTER_AT_CAP)
    given = run.recipe.answers == "given"
    others, least_others = (c.FILL_GIVEN, c.FILL_GIVEN_LOW) if given else (c.FILL, c.FILL_LOW)
    if said is not None:
        return Fill(1, others, c.SHORTEST_PADDED, least_others, c.SHORTER_TOLD)
    if given and (rows := row_lengths(run)) is not None:
        mean = min(1, rows.mean / length)
        return Fill(min(1, rows.longest / length), mean, mean, mean * c.SHORTEST_PADDED, c.SHORTER_TOLD)
    if given:
        return Fill(usual_longest(run, length), others, least_longest(run, length), least_others, c.SHORTER_GIVEN)
    return Fill(1, others, c.SHORTEST_PADDED, least_others, c.SHORTER_AT_CAP)


def _sequences(micro: float | None, caps: list[int], name: str) -> Amount:
    """Sequences of a pass: those that are asked for, as far as the GPU holds so many."""
    asked = None if not micro else max(1, int(micro))
    held = min(caps, default=None)
    if held is None or (asked is not None and asked <= held):
        return quantity(name, asked or 1)
    of_gpu = quantity("sequences that the GPU holds", max(1, held))
    return of_gpu if asked is None else least(quantity(name, asked), of_gpu)


def without_padding(run: Run, role: TrainedRole) -> bool:
    """Whether the role's model sees real tokens only; a key for padding of its own counts before a token budget."""
    own = setting_of(run, role, "remove_padding")
    if isinstance(own, bool):
        return own
    return run.mechanics.lays_end_to_end or setting_of(run, role, "dynamic_batch") is True


class RowLengths(Struct, frozen=True):
    """Tokens of the rows of a run's data."""

    mean: float
    longest: float
    """Of so many rows as the run takes."""
    most: float
    """Of all rows that are published, with the largest images."""


@lru_cache(maxsize=1)
def _by_name() -> Mapping[str, DataSetFact]:
    facts = load_knowledge().data_sets
    return {name.lower(): fact for fact in facts for name in (fact.name, fact.also) if name}


def row_lengths(run: Run) -> RowLengths | None:
    """Rows of the data sets that the run names together; None where it names none, or one that is not known, or images
    whose tokens are not: towers other than Qwen's cut them into tiles."""
    names = str(run.value("data.sets") or "").replace(",", " ").split()
    known = _known(tuple(names))
    tower = run.model is not None and run.model.vision_parameters > 0
    if not known or (not tower and any(fact.images for fact, _ in known)):
        return None
    counts = [count for _, count in known]
    # of a usual image, and of one at the cap on pixels; without one the row's own cap is all there is
    cap, of_token = run.number("data.max_pixels") or inf, c.PATCH_PIXELS * c.PATCHES_OF_TOKEN
    image = (min(cap, c.TYPICAL_IMAGE_PIXELS) / of_token, cap / of_token)
    images = [image if fact.images else (0.0, 0.0) for fact, _ in known]
    longest = max(_longest(fact, count) + image[0] for (fact, count), image in zip(known, images, strict=True))
    most = max(c.PUBLISHED_HIGH * fact.longest + image[1] for (fact, _), image in zip(known, images, strict=True))
    means = [(fact.mean + image[0]) * count for (fact, count), image in zip(known, images, strict=True)]
    return RowLengths(sum(means) / sum(counts), longest, most)


@lru_cache(maxsize=16)
def _known(names: tuple[str, ...]) -> tuple[tuple[DataSetFact, int], ...]:
    """The facts and the rows taken; empty where one of them is not known. "owner/name:subset#rows" (ms-swift)."""
    found = []
    for name in names:
        path, _, taken = name.partition("#")
        fact = _by_name().get(path.rpartition("::")[2].partition(":")[0].lower())
        if fact is None:
            return ()
        found.append((fact, max(1, min(int(taken), fact.rows) if taken.isdigit() else fact.rows)))
    return tuple(found)


def _longest(fact: DataSetFact, rows: int) -> float:
    """The longest of so many rows, if lengths are log-normal and the longest of all rows is the published one: extremes
    of a normal distribution grow with the root of the logarithm of their number."""
    if rows >= fact.rows or fact.rows < 2:
        return fact.longest
    return float(fact.mean * (fact.longest / fact.mean) ** sqrt(log(max(rows, 2)) / log(fact.rows)))


def usual_longest(run: Run, cap: int) -> float:
    """Part of the cap that the longest row of unknown data is taken to have: less where it makes room for an image."""
    pixels = _bounded_pixels(run)
    if not pixels:
        return c.LONGEST_GIVEN
    return min(c.LONGEST_GIVEN, (pixels / (c.PATCH_PIXELS * c.PATCHES_OF_TOKEN) + c.LONGEST_GIVEN * c.USUAL_CAP) / cap)


def least_longest(run: Run, cap: int) -> float:
    """The least part of the cap that it may have: of the usual cap, where the rest is room for an image."""
    return c.FILL_GIVEN_LOW * (min(1, c.USUAL_CAP / cap) if _bounded_pixels(run) else 1)


def _bounded_pixels(run: Run) -> float | None:
    return run.number("data.max_pixels") if run.model is not None and run.model.vision_parameters else None
