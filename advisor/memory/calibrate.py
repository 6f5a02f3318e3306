"""Corrects what the ledger predicted by what the crash measured: the difference becomes a cell, "unexplained"."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.evidence import Crash, Reading
from advisor.language import mark, say, sentences
from advisor.memory.amount import Amount, in_bytes
from advisor.memory.cells import ENGINE, Cell, Ledger, Note, PhaseSum, Place, note
from advisor.memory.constants import DOUBTFUL_SHARE, STAYED_SHARE
from advisor.units import show_bytes
from advisor.words import PHASE_TITLES, Phase

_DOUBT = mark(
    "{extra} of the {needed} that the log proves in {phase} is explained by no setting of this script: script and log "
    "may not be of the same run, or something else held it."
)
_DOUBT_OF_NO_PHASE = mark(
    "{extra} of the {needed} that the log proves is explained by no setting of this script, in whichever phase it was: "
    "script and log may not be of the same run, or something else held it."
)
_DOUBT_OF_OTHERS = mark(
    "{extra} of the {needed} that the log proves in {phase} is explained by no setting of this script: script and log "
    "may not be of the same run, or something else held it, or it is what the other processes on the card held, "
    "{others} by the message."
)

_ENGINE_STAYED = mark(
    "This run's own rollout engine ({name}) still held {held} of the card in {phase}, {over} more than it leaves there "
    "by the settings: it had not given its memory back."
)


class Correction(Struct, frozen=True):
    """Bytes that the crash proves in `phase` beyond the prediction; of a GPU and an unknown phase, they are in none."""

    place: Place
    phase: Phase
    amount: Amount
    measured: int
    """Bytes that were needed (GPU) or used (host) when it died."""
    note: Note | None = None
    every_phase: bool = False
    doubt: str = ""
    """What a rest this large says about script and log, in a sentence; "" where it is an ordinary rest."""

    @property
    def extra(self) -> int:
        """Bytes beyond the prediction."""
        return round(self.amount.value)


def corrections(ledger: Ledger, crash: Crash) -> tuple[Correction, ...]:
    """What the first cause proves: on the GPU, in use + asked for; on the host, in use. And what the log read in phases
    that went well, where it is more than predicted."""
    read = _in_use(ledger, crash)
    if crash.verdict != "oom" or not crash.evidence:
        return read
    if crash.memory == "gpu":
        return (*_gpu(ledger, crash), *read)
    if crash.memory == "host":
        return (*_host(ledger, crash), *read)
    return read


def _in_use(ledger: Ledger, crash: Crash) -> tuple[Correction, ...]:
    """Phases that went well with more of the GPU in use than is predicted, by lines printed at their ends."""
    died = ledger.phase("gpu", crash.phase) or ledger.peak("gpu")
    most: dict[Phase, Reading] = {}
    for reading in crash.readings:
        if reading.kind == "used" and reading.bytes > (most[reading.phase].bytes if reading.phase in most else 0):
            most[reading.phase] = reading
    found = []
    for phase, reading in most.items():
        predicted = ledger.phase("gpu", phase)
        over = predicted is not None and reading.bytes > predicted.expected
        if predicted is None or not over or (died is not None and died.phase == phase and crash.memory == "gpu"):
            continue
        words = note(mark("the log, {where}"), where=f"{reading.file}:{reading.line}")
        amount = _read(mark("in use by the log"), reading.bytes) - _predicted(predicted)
        found.append(Correction("gpu", phase, amount, reading.bytes, words))
    return tuple(found)


def _gpu(ledger: Ledger, crash: Crash) -> tuple[Correction, ...]:
    died = ledger.phase("gpu", crash.phase)
    phase = died or ledger.peak("gpu")
    if phase is None or ledger.gpu_capacity is None:
        return ()
    fields = crash.evidence[0].fields
    total, free, tried = (fields.get(name) for name in ("total_bytes", "free_bytes", "tried_bytes"))
    words = None
    if isinstance(total, int) and isinstance(free, int) and isinstance(tried, int) and free <= tried:
        needed = _read(mark("of the card"), total) - _read(mark("free"), free) + _read(mark("asked for"), tried)
    else:
        needed = _read(mark("of the card"), ledger.gpu_capacity)
        words = Note(mark("it did not fit, so at least the whole card"))
    amount = needed - _predicted(phase)
    extra, size = round(amount.value), round(needed.value)
    if extra <= 0:
        return ()
    if died is None:  # which phase it corrects is not known: the rest is told, and added to none
        told = say(_DOUBT_OF_NO_PHASE, extra=show_bytes(extra), needed=show_bytes(size))
        doubt = told if _is_doubtful(extra, size, phase) else ""
        return (Correction("gpu", "unknown", amount, size, words, doubt=doubt),)
    return (Correction("gpu", died.phase, amount, size, words, doubt=_doubt(extra, size, died, fields)),)


def _read(name: str, size: int) -> Amount:
    """What was read; `name` is marked."""
    return in_bytes(name, size, basis="measured")


def _predicted(phase: PhaseSum) -> Amount:
    """The prediction that a rest is what lies above."""
    return _read(mark("predicted"), phase.expected)


def _doubt(extra: int, needed: int, phase: PhaseSum, fields: Mapping[str, int | float | str]) -> str:
    """Why the script may not be the whole story; "" where the rest is within what a ledger leaves out.

    What the run's own engine held beyond its due is told as such, and neither doubted nor counted a second time.
    """
    if not _is_doubtful(extra, needed, phase):
        return ""
    held, others = _bytes(fields, "engine_process_bytes"), _bytes(fields, "other_process_bytes")
    over = held - phase.of(*ENGINE)
    stayed, rest = "", extra
    if over > needed * STAYED_SHARE:
        name, size = fields.get("engine_process", ""), show_bytes(held)
        stayed = say(_ENGINE_STAYED, name=name, held=size, phase=PHASE_TITLES[phase.phase], over=show_bytes(over))
        rest = extra - over
    foreign = max(0, others - held)
    told = say(
        _DOUBT_OF_OTHERS if foreign else _DOUBT,
        extra=show_bytes(rest),
        needed=show_bytes(needed),
        phase=PHASE_TITLES[phase.phase],
        others=show_bytes(foreign),
    )
    return sentences((stayed, told if _is_doubtful(rest, needed, phase) else ""))


def _is_doubtful(extra: int, needed: int, phase: PhaseSum) -> bool:
    return extra > needed * DOUBTFUL_SHARE or extra > phase.expected


def _bytes(fields: Mapping[str, int | float | str], name: str) -> int:
    """A printed size; 0 where the message does not list it."""
    found = fields.get(name)
    return found if isinstance(found, int) else 0


def _host(ledger: Ledger, crash: Crash) -> tuple[Correction, ...]:
    phase = ledger.phase("host", crash.phase) or ledger.peak("host")
    if phase is None:
        return ()
    used, words = crash.evidence[0].fields.get("node_used_bytes"), None
    if isinstance(used, int):
        measured = _read(mark("in use on the node"), used)
    elif ledger.host_limit is not None:
        measured = _read(mark("of the limit"), ledger.host_limit)
        words = Note(mark("it was killed, so at least the limit"))
    else:
        return ()
    amount = measured - _predicted(phase)
    if amount.value <= 0:
        return ()
    return (Correction("host", phase.phase, amount, round(measured.value), words, every_phase=True),)


def corrected(ledger: Ledger, found: tuple[Correction, ...]) -> Ledger:
    """The ledger with an "unexplained" cell for each correction; it stays when settings change."""
    for correction in found:
        sums = ledger.sums(correction.place)
        fixed = tuple(_with(s, correction) for s in sums)
        ledger = replace(ledger, gpu=fixed) if correction.place == "gpu" else replace(ledger, host=fixed)
        if correction.doubt:
            ledger = replace(ledger, basis="estimated", doubts=(*ledger.doubts, correction.doubt))
    return ledger


def _with(phase: PhaseSum, correction: Correction) -> PhaseSum:
    if phase.phase != correction.phase and (phase.measured or not correction.every_phase):
        return phase
    return replace(phase, cells=(*phase.cells, Cell("unexplained", correction.amount, correction.note)))
