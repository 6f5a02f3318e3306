"""Puts what a watched run held at most in each phase in place of the predicted sum.

Where less was held than predicted, the cells shrink, first within their own intervals; where it was more, the rest is
"unexplained", as it is after a crash. After a change the difference that was measured moves along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash
from advisor.language import mark
from advisor.memory.amount import in_bytes
from advisor.memory.cells import ENGINE, Cell, Ledger, PhaseSum, Place, note
from advisor.memory.readings import PLAUSIBLE
from advisor.words import Basis, Phase

_EXACT = ((0.0, 0.0), (0.0, 0.0))
_STAYING = ("weights", "gradients", "optimizer", "reference", "critic", "engine_weights", "context")
"""Owners whose size follows from the model and its shards."""
_NEAR = 1.05
"""Factor within which a peak may be that of a phase which the output does not show (judgement)."""


class Peak(Struct, frozen=True):
    """The most that was in use in one phase, in bytes on one GPU or on the node."""

    place: Place
    phase: Phase
    measured: int
    source: str
    """Where and when it was read, in words."""
    whole: bool = True
    """The phase went well from begin to end, often enough to have shown its peak; else it may need more."""
    predicted: int = 0
    engine: int | None = None
    """Bytes of it that processes of a rollout engine held; None: no such process, or the engine lives in the trainer's.
    """
    engine_predicted: int = 0

    @property
    def rest_predicted(self) -> int:
        """What is predicted once the engine's part is known."""
        return self.predicted if self.engine is None else self.predicted - self.engine_predicted + self.engine


def printed_on_host(ledger: Ledger, crash: Crash) -> tuple[Peak, ...]:
    """The most of a node's RAM that the log saw in use between the steps, as the least of the phase that is fullest
    there; () where it predicts more, or where the message itself tells how full the host was."""
    read = [one for one in crash.readings if one.kind == "host_used"]
    fullest, most = ledger.peak("host"), max(read, key=lambda one: one.bytes, default=None)
    if fullest is None or most is None or crash.memory == "host":
        return ()
    known = (one.phase for one in map(partial(ledger.phase, "host"), (most.phase, crash.phase)) if one is not None)
    phase = next(known, fullest.phase)
    return proven_by(ledger, [Peak("host", phase, most.bytes, f"{most.file}:{most.line}", whole=False)])


def proven_by(ledger: Ledger, found: Sequence[Peak]) -> tuple[Peak, ...]:
    """The peaks that replace a prediction of this ledger, which they then carry with them.

    Left out: a phase of another ledger, a peak too far from the prediction to be of this run, a low peak of a phase
    that was cut off, and a high one that may belong to a phase which the output does not show, since in the record that
    one's time counts for the phase before it.
    """
    shown = {(peak.place, peak.phase) for peak in found}
    proven = []
    for peak in found:
        phase = ledger.phase(peak.place, peak.phase)
        if phase is None or not _is_of_this_run(peak, phase):
            continue
        hidden = [each.expected for each in ledger.sums(peak.place) if (peak.place, each.phase) not in shown]
        if peak.measured < phase.expected and not peak.whole:
            continue
        if peak.measured > phase.expected and peak.measured <= _NEAR * max(hidden, default=0):
            continue
        proven.append(_beside_engine(replace(peak, predicted=phase.expected), phase))
    return tuple(proven)


def _beside_engine(peak: Peak, phase: PhaseSum) -> Peak:
    """With what is predicted of the engine; without its part where that is another engine's, or none is predicted."""
    whole = phase.of(*ENGINE)
    if peak.engine is None or not whole / PLAUSIBLE <= peak.engine <= whole * PLAUSIBLE or not whole:
        return replace(peak, engine=None)
    return replace(peak, engine_predicted=whole)


def _is_of_this_run(peak: Peak, phase: PhaseSum) -> bool:
    """On the host much is held by nobody the settings know, so there only too little is strange."""
    below, above = phase.expected / PLAUSIBLE, phase.expected * PLAUSIBLE
    return below <= peak.measured and (peak.place == "host" or peak.measured <= above)


def with_peaks(ledger: Ledger, proven: Iterable[Peak]) -> Ledger:
    """The ledger with what was measured in place of what was predicted, phase by phase."""
    by_phase = {(peak.place, peak.phase): peak for peak in proven}
    if not by_phase:
        return ledger
    gpu, host = (
        tuple(_in_phase(each, by_phase.get((each.place, each.phase))) for each in sums)
        for sums in (ledger.gpu, ledger.host)
    )
    return replace(ledger, gpu=gpu, host=host)


def _in_phase(phase: PhaseSum, peak: Peak | None) -> PhaseSum:
    if peak is None or not peak.predicted:
        return phase
    extra, known = peak.measured - peak.rest_predicted, _with_engine(phase, peak)
    cells: tuple[Cell, ...] | None
    if extra > 0:
        beyond = in_bytes("in use", peak.measured, basis="measured") - in_bytes(
            "predicted", peak.rest_predicted, basis="measured"
        )
        words = note(mark("measured by {source}"), source=peak.source)
        cells = (*known.cells, Cell("unexplained", beyond, words))
    else:
        cells = _shrunk(known.cells, round(-extra * known.expected / peak.rest_predicted), peak)
    if cells is None:
        return phase
    if phase.expected != peak.predicted:  # settings changed: the difference stays, the interval too
        return replace(phase, cells=cells)
    return replace(phase, cells=cells, bounds=_EXACT, measured=peak.source, predicted=peak.predicted)


def _with_engine(phase: PhaseSum, peak: Peak) -> PhaseSum:
    """The engine's cells as large, together, as its processes were; after a change, in the same proportion."""
    whole = phase.of(*ENGINE)
    if peak.engine is None or not whole:
        return phase
    places = {place: cell.expected for place, cell in enumerate(phase.cells) if cell.owner in ENGINE}
    parts = _shared(round(peak.engine * whole / peak.engine_predicted), places)
    basis: Basis = "measured" if whole == peak.engine_predicted else "estimated"
    words = note(
        mark("part of {measured} that the engine's own processes held by {source}; predicted {predicted}"),
        measured=in_bytes("", peak.engine),
        source=peak.source,
        predicted=in_bytes("", peak.engine_predicted),
    )
    cells = tuple(
        replace(cell, amount=in_bytes("of the engine", parts[place], basis=basis), note=words)
        if place in parts
        else cell
        for place, cell in enumerate(phase.cells)
    )
    return replace(phase, cells=cells)


def _shrunk(cells: Sequence[Cell], less: int, peak: Peak) -> tuple[Cell, ...] | None:
    """So many bytes less in all: first what the intervals allow, then of what a batch brings, at last of all else.

    In each round in proportion; None where so much was read that it cannot be less.
    """
    free = {place: cell for place, cell in enumerate(cells) if cell.basis != "measured" and cell.expected}
    if less > sum(cell.expected for cell in free.values()):
        return None
    cut = dict.fromkeys(range(len(cells)), 0)
    rounds = (
        {place: cell.expected - cell.low for place, cell in free.items()},
        {place: cell.expected for place, cell in free.items() if cell.owner not in _STAYING},
        {place: cell.expected for place, cell in free.items()},
    )
    for most in rounds:
        room = {place: size - cut[place] for place, size in most.items() if size > cut[place]}
        for place, size in _shared(min(less - sum(cut.values()), sum(room.values())), room).items():
            cut[place] += size
    return tuple(_less(cell, cut[place], peak) for place, cell in enumerate(cells))


def _shared(size: int, weights: dict[int, int]) -> dict[int, int]:
    """`size`, no more than the sum of the weights, divided in their proportion to the byte."""
    left, total = size, sum(weights.values())
    found = {}
    for place, weight in weights.items():
        found[place] = left * weight // total if total else 0
        left, total = left - found[place], total - weight
    return found


def _less(cell: Cell, cut: int, peak: Peak) -> Cell:
    if not cut:
        return cell
    less = cell.amount - in_bytes("less by what was measured", cut, basis="estimated")
    words = note(
        mark("{measured} were in use in all by {source}, {predicted} predicted"),
        measured=in_bytes("", peak.measured),
        source=peak.source,
        predicted=in_bytes("", peak.predicted),
    )
    if cell.note is not None:
        words = note(mark("{words}; {more}"), words=cell.note, more=words)
    return replace(cell, amount=less.within(min(cell.low, less.value), cell.high), note=words)
