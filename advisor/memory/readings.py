"""Puts what the run itself printed of its memory in place of the prediction of the same quantity.

Read before a change, a reading also tells by how much the prediction of the changed run is off.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash, Reading, ReadingKind
from advisor.crash.holders import idle_in_pool
from advisor.language import Sayings, mark, say
from advisor.memory.amount import in_bytes, most
from advisor.memory.cells import ENGINE, Cell, CellKind, Ledger, Owner, PhaseSum, note
from advisor.units import show_bytes
from advisor.words import Phase

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
    """The ledger with what was read in place of what was predicted.

    Where a change moved the prediction, the difference that was read moves along, and the cell is an estimate.
    """
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
