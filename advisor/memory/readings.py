"""Puts what was measured in place of the prediction: quantities that a log printed, peaks of phases that a record has.

Where less was held in a phase than predicted, its cells shrink, first within their own intervals; where it was more,
the rest is "unexplained", as it is after a crash. After a change the difference that was measured moves along.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash, Reading, ReadingKind
from advisor.crash.holders import idle_in_pool
from advisor.language import Sayings, mark, say
from advisor.memory.amount import in_bytes, most
from advisor.memory.cells import ENGINE, Cell, CellKind, Ledger, Owner, PhaseSum, Place, note
from advisor.units import show_bytes
from advisor.words import Basis, Phase

_KINDS: Sayings[ReadingKind] = Sayings(
    {
        "kv_cache": "the engine's KV cache",
        "weights": "the engine's weights",
        "graphs": "captured graphs",
        "freed": "given back by sleep",
        "still_used": "left by sleep",
    }
)
PLAUSIBLE = 3.0
"""Factor within which a reading is taken to speak of this run's engine, not of another model's (judgement)."""


class Replaced(Struct, frozen=True):
    """A quantity on one GPU that was read. `kind`: which of the owner's cells; "" any."""

    owner: Owner
    predicted: int
    measured: int
    source: str
    kind: CellKind = ""
    phase: Phase | None = None
    """None: in all phases."""


def replaced_by(ledger: Ledger, crash: Crash) -> tuple[Replaced, ...]:
    """The quantities of this ledger that the log measured."""
    found = [*_engine(ledger, crash.readings), *_asleep(ledger, crash.readings), *_fragmentation(ledger, crash)]
    return tuple(each for each in found if each is not None)


def _engine(ledger: Ledger, readings: Iterable[Reading]) -> list[Replaced | None]:
    """The engine's own profile: its weights, its cache, its graphs; the cache also by what sleep gave back."""
    last = {reading.kind: reading for reading in readings}
    weights = _read(ledger, "engine_weights", last.get("weights"))
    cache = _read(ledger, "kv_cache", last.get("kv_cache"))
    freed = last.get("freed")
    if cache is None and freed is not None:
        of_weights = weights.measured if weights else _cell_bytes(ledger, "engine_weights")
        source = say("{where}, less the engine's weights", where=_where(freed))
        cache = _replaced(ledger, "kv_cache", freed.bytes - of_weights, source)
    return [weights, cache, _read(ledger, "engine_rest", last.get("graphs"), "graphs")]


def _asleep(ledger: Ledger, readings: Iterable[Reading]) -> list[Replaced | None]:
    """What a sleeping engine left: what was still in use then, less what the trainer has on the GPU in a rollout."""
    left = next((reading for reading in reversed(tuple(readings)) if reading.kind == "still_used"), None)
    beside = ledger.phase("gpu", "rollout_generate")
    if left is None or beside is None:
        return []
    trainer = beside.expected - beside.of(*ENGINE)
    source = say(
        "{where}: {used} in use asleep, less the trainer's {trainer}",
        where=_where(left),
        used=show_bytes(left.bytes),
        trainer=show_bytes(trainer),
    )
    return [_replaced(ledger, "engine_rest", left.bytes - trainer, source, "asleep")]


def _fragmentation(ledger: Ledger, crash: Crash) -> list[Replaced | None]:
    """What torch's message says it keeps beside what it gave out."""
    if crash.verdict != "oom" or crash.memory != "gpu" or not crash.evidence:
        return []
    cause, died = crash.evidence[0], ledger.phase("gpu", crash.phase)
    size = idle_in_pool(cause.fields)
    if died is None or size is None:
        return []
    predicted = died.of("fragmentation")
    where = say("{place}: reserved by torch but unallocated", place=f"{cause.file}:{cause.line}")
    return [Replaced("fragmentation", predicted, size, where, phase=died.phase)]


def _read(ledger: Ledger, owner: Owner, reading: Reading | None, kind: CellKind = "") -> Replaced | None:
    return None if reading is None else _replaced(ledger, owner, reading.bytes, _where(reading), kind)


def _replaced(ledger: Ledger, owner: Owner, measured: int, source: str, kind: CellKind = "") -> Replaced | None:
    predicted = _cell_bytes(ledger, owner, kind)
    if not predicted or not predicted / PLAUSIBLE <= measured <= predicted * PLAUSIBLE:
        return None
    return Replaced(owner, predicted, measured, source, kind)


def _cell_bytes(ledger: Ledger, owner: Owner, kind: CellKind = "") -> int:
    cells = (cell for each in ledger.gpu for cell in each.cells)
    return next((c.expected for c in cells if c.owner == owner and kind in ("", c.kind)), 0)


def _where(reading: Reading) -> str:
    place = f"{reading.file}:{reading.line}" if reading.file else say("line {line}", line=reading.line)
    return say("{place} ({what})", place=place, what=_KINDS.get(reading.kind, reading.kind))


def with_readings(ledger: Ledger, found: Iterable[Replaced]) -> Ledger:
    """The ledger with what was read in place of what was predicted. Where a change moved the prediction, the difference
    that was read moves along, and the cell is an estimate."""
    gpu = ledger.gpu
    for each in found:
        gpu = tuple(_in_phase(phase, each) for phase in gpu)
    return replace(ledger, gpu=gpu)


def _in_phase(phase: PhaseSum, found: Replaced) -> PhaseSum:
    if found.phase is not None and phase.phase != found.phase:
        return phase
    if found.owner == "fragmentation":
        return _with_fragmentation(phase, found)
    if not any(_fits(cell, found) for cell in phase.cells):
        return phase
    return replace(phase, cells=tuple(_read_cell(cell, found) if _fits(cell, found) else cell for cell in phase.cells))


def _fits(cell: Cell, found: Replaced) -> bool:
    return cell.owner == found.owner and found.kind in ("", cell.kind)


def _read_cell(cell: Cell, found: Replaced) -> Cell:
    extra = found.measured - found.predicted
    if cell.expected == found.predicted:
        size = in_bytes("by the log", found.measured, basis="measured")
        predicted = in_bytes("", found.predicted)
        words = note(mark("{source}; predicted {predicted}"), source=found.source, predicted=predicted)
        return replace(cell, amount=size, note=words, kind="")
    if extra > 0:
        moved = cell.amount + in_bytes("more than predicted by the log", extra, basis="estimated")
    else:
        moved = cell.amount - in_bytes("less than predicted by the log", -extra, basis="estimated")
    kept = None if cell.note is None or cell.note.counts else cell.note  # what it counts is of the old size
    return replace(cell, amount=moved if moved.value >= 0 else most(0, moved), note=kept)


def _with_fragmentation(phase: PhaseSum, found: Replaced) -> PhaseSum:
    """One cell of fragmentation in place of all predicted ones."""
    lost = [cell for cell in phase.cells if cell.owner == "fragmentation"]
    low, whole, high = (sum(getattr(cell, end) for cell in lost) for end in ("low", "expected", "high"))
    predicted = in_bytes("of predicted fragmentation", whole, low=low, high=high, basis="estimated")
    rest = tuple(cell for cell in phase.cells if cell.owner != "fragmentation")
    return replace(phase, cells=(*rest, _read_cell(Cell("fragmentation", predicted), found)))


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
    """Bytes of it that a rollout engine's processes held; None: there are none, or it lives in the trainer's."""
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
        if phase is None or peak.measured < phase.expected / PLAUSIBLE:
            continue
        if peak.place == "gpu" and peak.measured > phase.expected * PLAUSIBLE:  # on a host nobody knows who holds much
            continue
        hidden = [each.expected for each in ledger.sums(peak.place) if (peak.place, each.phase) not in shown]
        if peak.measured < phase.expected and not peak.whole:
            continue
        if peak.measured > phase.expected and peak.measured <= _NEAR * max(hidden, default=0):
            continue
        whole = phase.of(*ENGINE)  # without the engine's part where that is another engine's, or none is predicted
        own = peak.engine is not None and 0 < whole / PLAUSIBLE <= peak.engine <= whole * PLAUSIBLE
        engine = {"engine_predicted": whole} if own else {"engine": None}
        proven.append(replace(peak, predicted=phase.expected, **engine))
    return tuple(proven)


def with_peaks(ledger: Ledger, proven: Iterable[Peak]) -> Ledger:
    """The ledger with what was measured in place of what was predicted, phase by phase."""
    by_phase = {(peak.place, peak.phase): peak for peak in proven}
    if not by_phase:
        return ledger
    gpu, host = (
        tuple(_at_peak(each, by_phase.get((each.place, each.phase))) for each in sums)
        for sums in (ledger.gpu, ledger.host)
    )
    return replace(ledger, gpu=gpu, host=host)


def _at_peak(phase: PhaseSum, peak: Peak | None) -> PhaseSum:
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
    """So many bytes less in all: first what the intervals allow, then of what a batch brings, at last of all else. In
    each round in proportion; None where so much was read that it cannot be less."""
    free = {place: cell for place, cell in enumerate(cells) if cell.basis != "measured" and cell.expected}
    if less > sum(cell.expected for cell in free.values()):
        return None
    cut = dict.fromkeys(range(len(cells)), 0)
    rounds = (
        {place: cell.expected - cell.low for place, cell in free.items()},
        {place: cell.expected for place, cell in free.items() if cell.owner not in _STAYING},
        {place: cell.expected for place, cell in free.items()},
    )
    for sizes in rounds:
        room = {place: size - cut[place] for place, size in sizes.items() if size > cut[place]}
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
