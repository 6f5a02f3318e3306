"""Holds the ledger's nouns: the owners of memory, a cell (what one owner holds), a phase's sum, the whole ledger."""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from advisor.language import Sayings, mark, say
from advisor.memory.amount import Amount, add_up, in_bytes
from advisor.memory.constants import FRAGMENTATION
from advisor.words import NOW_AND_THEN, ONCE, Basis, Phase

Place = Literal["gpu", "host"]
Owner = Literal[
    "weights", "gradients", "optimizer", "gathered", "activations", "logits", "reference", "critic", "engine_weights",
    "kv_cache", "engine_rest", "context", "buffers", "fragmentation", "offloaded_weights", "offloaded_optimizer",
    "offloaded_activations", "engine_copy", "processes", "object_store", "swap", "loading", "unexplained", "driver",
    "checkpoint", "others",
]  # fmt: skip
OwnerGroup = Literal["states", "gathered", "batch", "models", "engine", "rest"]
"""The actor's own states; what is whole beside them; what a batch brings; other models; the rollout engine."""


class OwnerRow(Struct, frozen=True):
    """One owner. `place`: None where it may be on the GPU and in host RAM."""

    letter: str
    title: str
    group: OwnerGroup
    place: Place | None


OWNERS: dict[Owner, OwnerRow] = {
    "weights": OwnerRow("W", mark("weights"), "states", "gpu"),
    "gradients": OwnerRow("G", mark("gradients"), "states", "gpu"),
    "optimizer": OwnerRow("O", mark("optimizer"), "states", "gpu"),
    "gathered": OwnerRow("U", mark("gathered weights"), "gathered", "gpu"),
    "activations": OwnerRow("A", mark("activations"), "batch", "gpu"),
    "logits": OwnerRow("L", mark("logits"), "batch", "gpu"),
    "reference": OwnerRow("R", mark("reference"), "models", None),
    "critic": OwnerRow("C", mark("critic"), "models", "gpu"),
    "engine_weights": OwnerRow("E", mark("engine weights"), "engine", "gpu"),
    "kv_cache": OwnerRow("K", mark("KV cache"), "engine", "gpu"),
    "engine_rest": OwnerRow("e", mark("engine rest"), "engine", "gpu"),
    "context": OwnerRow("x", mark("CUDA contexts"), "rest", "gpu"),
    "buffers": OwnerRow("b", mark("buffers"), "rest", "gpu"),
    "fragmentation": OwnerRow("f", mark("fragmentation"), "rest", "gpu"),
    "offloaded_weights": OwnerRow("W", mark("offloaded weights"), "states", "host"),
    "offloaded_optimizer": OwnerRow("O", mark("offloaded optimizer"), "states", "host"),
    "offloaded_activations": OwnerRow("A", mark("offloaded activations"), "batch", "host"),
    "engine_copy": OwnerRow("E", mark("sleeping engine"), "engine", "host"),
    "processes": OwnerRow("p", mark("processes"), "rest", "host"),
    "object_store": OwnerRow("s", mark("object store"), "rest", "host"),
    "swap": OwnerRow("w", mark("engine's swap space"), "engine", "host"),
    "loading": OwnerRow("l", mark("loading"), "rest", None),
    "unexplained": OwnerRow("?", mark("unexplained"), "rest", None),
    "driver": OwnerRow("d", mark("driver"), "rest", "host"),
    "checkpoint": OwnerRow("k", mark("checkpoint"), "rest", "host"),
    "others": OwnerRow("o", mark("other processes"), "rest", "gpu"),
}
TITLES: Sayings[Owner] = Sayings({owner: row.title for owner, row in OWNERS.items()})


def owners_of(*groups: OwnerGroup) -> tuple[Owner, ...]:
    """The owners of these groups on a GPU."""
    return tuple(owner for owner, row in OWNERS.items() if row.group in groups and row.place != "host")


ENGINE = owners_of("engine")
TRAINER = owners_of("states", "gathered", "batch")

CellKind = Literal["", "graphs", "asleep", "cannot_start", "unused"]
"""Which of an owner's cells: the engine's CUDA graphs, what it leaves asleep, a cache without room, free segments."""
Bounds = tuple[tuple[float, float], tuple[float, float]]


class Note(Struct, frozen=True, gc=False):
    """Words beside a formula, said when they are read. Fields are words, numbers, Amounts or other notes."""

    text: str
    fields: tuple[tuple[str, object], ...] = ()

    @property
    def counts(self) -> bool:
        """Whether it says a quantity, which holds of the bytes beside it alone."""
        return any(isinstance(field, Amount) for _, field in self.fields)

    def read(self) -> str:
        """The words in the language in force."""
        return say(self.text, **{name: _read(field) for name, field in self.fields})


def note(text: str, **fields: object) -> Note:
    """A note of a marked text."""
    return Note(text, tuple(fields.items()))


def _read(field: object) -> object:
    if isinstance(field, Note):
        return field.read()
    return field.text() if isinstance(field, Amount) else field


class Cell(Struct, frozen=True, gc=False):
    """Bytes that one owner holds on one GPU (or one node), with the arithmetic that gave them."""

    owner: Owner
    amount: Amount
    note: Note | None = None
    pooled: bool = False
    """Allocated by torch's caching allocator, which fragments."""
    kind: CellKind = ""
    expected: int = 0
    """Bytes, by the amount, whatever is given here; nothing is ever negative."""

    def __post_init__(self) -> None:
        # Rounded once: a plan adds cells up some hundred thousand times.
        force_setattr(self, "expected", max(0, round(self.amount.value)))

    @property
    def low(self) -> int:
        """Bytes, by the formula's own error and by what the data may be."""
        return max(0, self.expected - _together(self.expected - self.surely, self.expected - self.by_data[0]))

    @property
    def high(self) -> int:
        """Bytes."""
        return self.expected + _together(self.at_most - self.expected, self.by_data[1] - self.expected)

    @property
    def surely(self) -> int:
        """Bytes at the lower end of the formula's own error."""
        return max(0, round(self.amount.low))

    @property
    def at_most(self) -> int:
        """Bytes at its upper end."""
        return max(0, round(self.amount.high))

    @property
    def by_data(self) -> tuple[int, int]:
        """Bytes where the run's data are as small as they may be, and where they are as large."""
        if self.amount.by_data is None:
            return self.expected, self.expected
        low, high = self.amount.by_data
        return max(0, round(low)), max(0, round(high))

    @property
    def basis(self) -> Basis:
        """The weakest of what it is computed from."""
        return self.amount.basis

    @property
    def formula(self) -> str:
        """In words and numbers: "frozen base: 4 bytes × 7.6156e9 parameters ÷ 8 GPUs; at most 28.37 GiB"."""
        text, bounds = self.amount.text(), self.amount.bounds()
        if bounds:
            text = say("{formula}; {bounds}", formula=text, bounds=bounds)
        return say("{note}: {formula}", note=self.note.read(), formula=text) if self.note is not None else text


def cell(
    owner: Owner, amount: Amount, words: str | Note | None = None, *, pooled: bool = True, kind: CellKind = ""
) -> Cell:
    """A cell; `words`: a marked text or a note."""
    return Cell(owner, amount, Note(words) if isinstance(words, str) else words, pooled, kind)


def _together(error: int, by_data: int) -> int:
    """How far two independent uncertainties reach together."""
    return max(error, 0) if by_data <= 0 else round(hypot(max(error, 0), by_data))


def total(cells: Iterable[Cell]) -> int:
    """Expected bytes of all cells."""
    return sum([each.expected for each in cells])


Instant = Literal["loss", "backward", "first_layer", "end"]
"""A moment of a pass, in which some tensors live that live in no other."""
_AS_IN: dict[Instant, str] = {
    "loss": mark("with all that lives in the loss"),
    "backward": mark("with all that lives in the backward"),
    "first_layer": mark("with all that lives in the backward"),
    "end": mark("with all that lives at the end of the backward"),
}


def fullest(instants: dict[Instant, list[Cell]]) -> list[Cell]:
    """The cells of the instant that is expected to be fullest; its high covers what any other instant might reach,
    and so do its ends by the data."""
    cells = list(max(instants.values(), key=total))
    last = cells[-1]
    most: Instant = max(instants, key=lambda name: sum(each.at_most for each in instants[name]))
    beyond = sum(each.at_most for each in instants[most]) - sum(each.at_most for each in cells)
    if beyond > 0:
        ceiling = in_bytes(_AS_IN[most], last.amount.high + beyond)
        cells[-1] = last = replace(last, amount=last.amount.within(high=ceiling))
    if all(each.amount.by_data is None for instant in instants.values() for each in instant):
        return cells
    ends = [_by_data(instant) for instant in instants.values()]
    own = _by_data(cells)
    above = [max(end[which] for end in ends) - own[which] for which in (0, 1)]
    if any(above):
        low, high = (last.by_data[end] + above[end] for end in (0, 1))
        cells[-1] = replace(last, amount=last.amount.moved(low, high))
    return cells


def _by_data(cells: Iterable[Cell]) -> tuple[int, int]:
    """Bytes of all cells where the run's data are as small as they may be, and where they are as large."""
    ends = [each.by_data for each in cells]
    return sum(end[0] for end in ends), sum(end[1] for end in ends)


class Rows(Struct, frozen=True, gc=False):
    """Tokens of a row of a pass on average, of all GPUs that share it: at the least, as expected, at the cap."""

    low: int
    expected: int
    high: int


class PhaseSum(Struct, frozen=True, gc=False):
    """One phase on one place."""

    phase: Phase
    place: Place
    cells: tuple[Cell, ...]
    bounds: Bounds | None = None
    """Narrowest and widest part of the predicted sum that the interval reaches below it, and above; None: the owners'
    own intervals are added up."""
    measured: str = ""
    """Where the sum was measured, in words; "": it is predicted."""
    predicted: int = 0
    """Bytes that were predicted, where the sum is measured."""
    rows: Rows | None = None
    """The rows of the phase's pass; None where it has none, or they cannot differ."""
    expected: int = 0
    """Bytes; the sum of the cells, whatever is given here."""

    def __post_init__(self) -> None:
        # Summed once: a plan compares phases by it many thousand times.
        force_setattr(self, "expected", total(self.cells))

    @property
    def low(self) -> int:
        """Bytes."""
        below = self.expected - sum(each.surely for each in self.cells)
        error = below if self.bounds is None else self._within(below, self.bounds[0])
        return max(0, self.expected - _together(error, self.expected - self.by_data[0]))

    @property
    def high(self) -> int:
        """Bytes."""
        above = sum(each.at_most for each in self.cells) - self.expected
        # an awake engine's weights and cache end where its share does, which a setting says
        share = self.of("engine_weights", "kv_cache") if self.of("kv_cache") else 0
        error = above if self.bounds is None else self._within(above, self.bounds[1], exact=share)
        return self.expected + _together(error, self.by_data[1] - self.expected)

    @property
    def by_data(self) -> tuple[int, int]:
        """Bytes where the run's data are as small as they may be, and as large; what was measured had its own data."""
        if self.measured:
            return self.expected, self.expected
        return _by_data(self.cells)

    @property
    def has_trainer(self) -> bool:
        """Whether the trainer holds anything here; not so where an engine has GPUs of its own."""
        return any(each.owner in TRAINER for each in self.cells)

    def of(self, *owners: Owner) -> int:
        """Expected bytes of these owners."""
        return sum(each.expected for each in self.cells if each.owner in owners)

    def _within(self, reach: int, bounds: tuple[float, float], exact: int = 0) -> int:
        predicted = self.expected - self.of("unexplained")
        return min(max(reach, round(bounds[0] * (predicted - exact))), round(bounds[1] * predicted))


def phase_sum(
    phase: Phase, place: Place, cells: Iterable[Cell], bounds: Bounds | None = None, rows: Rows | None = None
) -> PhaseSum:
    """The cells of one phase; empty ones are dropped, and on the GPU the allocator's own loss is added."""
    kept = [each for each in cells if each.expected or each.high or each.kind == "cannot_start"]
    counted = any(each.owner == "fragmentation" and not each.pooled for each in kept)
    if place == "gpu" and not counted and any(each.pooled and each.expected for each in kept):
        allocated = add_up(each.amount for each in kept if each.pooled).called("allocated by torch")
        kept.append(Cell("fragmentation", FRAGMENTATION * allocated))
    return PhaseSum(phase, place, tuple(kept), bounds, rows=rows)


class Match(Struct, frozen=True):
    """A tensor of this run that has the size the allocator could not give."""

    tensor: str
    bytes: int
    shape: str
    formula: str
    phase: Phase
    matches: bool
    of_logits: bool = False
    tokens: int = 0
    """Of logits: in how many tokens they are counted, at the least; 0 where they match."""
    whole: int = 0
    """Of weights: bytes per parameter with which they complete a model on this card; 0 where they do not."""
    parameters: int = 0
    """Of that model."""
    of_scores: bool = False
    """Of attention that is not fused: heads x length x length."""
    of_weights: bool = False
    at_cap: bool = False
    """Of a pass whose rows are as long as they may be."""
    round: bool = False
    """Of logits that do not match: a round number of tokens has that size, which few sizes are by chance."""


class Ledger(Struct, frozen=True):
    """Phase x place x owner → bytes. Capacities are None where the machine is not known."""

    gpu_capacity: int | None
    host_limit: int | None
    gpu: tuple[PhaseSum, ...]
    host: tuple[PhaseSum, ...]
    basis: Basis = "computed"
    assumed: tuple[str, ...] = ()
    """Inputs that were guessed, in words."""
    missing: tuple[str, ...] = ()
    """Inputs without which nothing could be computed; the sums are then empty."""
    doubts: tuple[str, ...] = ()
    """Sentences on script, log and machine that do not go together: what rests on the ledger is then an estimate."""

    def sums(self, place: Place) -> tuple[PhaseSum, ...]:
        """The phases of one place."""
        return self.gpu if place == "gpu" else self.host

    def phase(self, place: Place, phase: Phase) -> PhaseSum | None:
        """The sum of one phase, None where the run has no such phase."""
        return next((each for each in self.sums(place) if each.phase == phase), None)

    def peak(self, place: Place) -> PhaseSum | None:
        """The fullest phase by expected bytes."""
        return max(self.sums(place), key=lambda each: each.expected, default=None)

    def within_steps(self) -> Ledger:
        """Without the phases that come once, before the first step, and those that come now and then."""
        apart = (*ONCE, *NOW_AND_THEN)
        gpu, host = (tuple(each for each in sums if each.phase not in apart) for sums in (self.gpu, self.host))
        return replace(self, gpu=gpu, host=host)

    def crowded(self, place: Place) -> PhaseSum | None:
        """The fullest phase that the trainer is part of: an engine on GPUs of its own fills them by design."""
        own = [each for each in self.gpu if each.has_trainer] if place == "gpu" else []
        return max(own or self.sums(place), key=lambda each: each.expected, default=None)
