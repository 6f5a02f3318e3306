"""The ledger's nouns: a cell (phase x place x owner), a phase's sum, and the whole ledger."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from advisor.memory.formula import Words, read
from advisor.words import Basis, Phase

Place = Literal["gpu", "host"]
Owner = Literal[
    "weights",
    "gradients",
    "optimizer",
    "gathered",
    "activations",
    "logits",
    "reference",
    "critic",
    "engine_weights",
    "kv_cache",
    "engine_rest",
    "context",
    "buffers",
    "fragmentation",
    "offloaded_weights",
    "offloaded_optimizer",
    "offloaded_activations",
    "engine_copy",
    "processes",
    "object_store",
    "swap",
    "loading",
    "unexplained",
    "driver",
    "checkpoint",
]
LETTERS: dict[Owner, str] = {
    "weights": "W",
    "gradients": "G",
    "optimizer": "O",
    "gathered": "U",
    "activations": "A",
    "logits": "L",
    "reference": "R",
    "critic": "C",
    "engine_weights": "E",
    "kv_cache": "K",
    "engine_rest": "e",
    "context": "x",
    "buffers": "b",
    "fragmentation": "f",
    "offloaded_weights": "W",
    "offloaded_optimizer": "O",
    "offloaded_activations": "A",
    "engine_copy": "E",
    "processes": "p",
    "object_store": "s",
    "swap": "w",
    "loading": "l",
    "unexplained": "?",
    "driver": "d",
    "checkpoint": "k",
}

Kind = Literal["", "graphs", "asleep", "cannot_start"]
"""Which of an owner's cells: the engine's CUDA graphs, what it leaves asleep, a cache without room."""
_TRAINERS = ("weights", "gradients", "optimizer", "activations", "logits", "gathered")


class Cell(Struct, frozen=True, eq=False):
    """Bytes that one owner holds in one phase on one GPU (or one node), with the arithmetic that gave them."""

    phase: Phase
    place: Place
    owner: Owner
    low: int
    expected: int
    high: int
    words: str | Words
    """The arithmetic, said when it is read (`formula`)."""
    basis: Basis = "computed"
    kind: Kind = ""

    @property
    def formula(self) -> str:
        """In words and numbers: "4 B x 7.62B parameters / 8 GPUs"."""
        return read(self.words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self._counted() == other._counted() and self.formula == other.formula

    def __hash__(self) -> int:
        return hash(self._counted())

    def _counted(self) -> tuple[object, ...]:
        """Everything but the words, which are equal where they say the same."""
        return (self.phase, self.place, self.owner, self.low, self.expected, self.high, self.basis, self.kind)


class PhaseSum(Struct, frozen=True):
    """One phase on one place."""

    phase: Phase
    place: Place
    cells: tuple[Cell, ...]
    bounds: tuple[tuple[float, float], tuple[float, float]] | None = None
    """Narrowest and widest part of the predicted sum that the interval reaches below it, and above; None: the owners'
    own intervals are added up."""
    expected: int = 0
    """Bytes; the sum of the cells, whatever is given here."""
    measured: str = ""
    """Where the sum was measured, in words; "": it is predicted."""
    predicted: int = 0
    """Bytes that were predicted, where the sum is measured."""

    def __post_init__(self) -> None:
        # Summed once: a plan compares phases by it many thousand times.
        force_setattr(self, "expected", sum(cell.expected for cell in self.cells))

    @property
    def low(self) -> int:
        """Bytes."""
        below = self.expected - sum(cell.low for cell in self.cells)
        return self.expected - (below if self.bounds is None else self._within(below, self.bounds[0]))

    @property
    def high(self) -> int:
        """Bytes."""
        above = sum(cell.high for cell in self.cells) - self.expected
        return self.expected + (above if self.bounds is None else self._within(above, self.bounds[1]))

    @property
    def has_trainer(self) -> bool:
        """Whether the trainer holds anything here; not so where an engine has cards of its own."""
        return any(cell.owner in _TRAINERS for cell in self.cells)

    def _within(self, reach: int, bounds: tuple[float, float]) -> int:
        predicted = sum(cell.expected for cell in self.cells if cell.owner != "unexplained")
        return min(max(reach, round(bounds[0] * predicted)), round(bounds[1] * predicted))


class Match(Struct, frozen=True):
    """A tensor of this run that has the size the allocator could not give."""

    tensor: str
    bytes: int
    shape: str
    formula: str
    phase: Phase
    matches: bool
    of_logits: bool = False


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

    def phase(self, place: Place, phase: Phase) -> PhaseSum | None:
        """The sum of one phase, None where the run has no such phase."""
        return next((s for s in (self.gpu if place == "gpu" else self.host) if s.phase == phase), None)

    def peak(self, place: Place) -> PhaseSum | None:
        """The fullest phase by expected bytes."""
        sums = self.gpu if place == "gpu" else self.host
        return max(sums, key=lambda s: s.expected, default=None)

    def crowded(self, place: Place) -> PhaseSum | None:
        """The fullest phase that the trainer is part of: an engine on cards of its own fills them by design."""
        sums = self.gpu if place == "gpu" else self.host
        own = [s for s in sums if s.has_trainer] if place == "gpu" else []
        return max(own or sums, key=lambda s: s.expected, default=None)
