"""Reports a record of `watch`: peaks beside what was predicted, growth, and what would be full first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from advisor.diagnosis.from_record import record_sentences
from advisor.language import listed, say
from advisor.memory.cells import Ledger
from advisor.report.layout import fields_of, table, wrap, wrap_each
from advisor.units import show_gib
from advisor.watch.listing import AttemptTold, attempts_of
from advisor.watch.measured import Held, Measured, PhasePeak
from advisor.words import PHASE_NAMES, when

_OWNERS = 4


def record_lines(measured: Measured | None, ledger: Ledger | None = None) -> list[str]:
    """The section "What the watcher measured"; [] without a record."""
    if measured is None:
        return []
    rows = [_row(peak, ledger) for peak in measured.peaks]
    head = (say("place"), say("phase"), say("peak"), say("of"), say("predicted"))
    lines = table([head, *rows], indent=2) if rows else []
    for place in ("gpu", "host"):
        peak = max((one for one in measured.peaks if one.place == place), key=lambda one: one.bytes, default=None)
        held = listed(_held(held) for held in peak.owners[:_OWNERS]) if peak is not None else ""
        if peak is not None and held:
            at = say(
                "At the highest of {gauge}, {when}: {held} GiB.", gauge=peak.gauge, when=when(peak.phase), held=held
            )
            lines += wrap(at, 2, 4)
    lines += wrap_each(record_sentences(measured), 2, 4)
    lines += wrap_each(attempt_sentences(measured.folder), 2, 4)
    return lines


def attempt_sentences(folder: Path) -> Iterator[str]:
    """A line for each attempt of a run that came back: what was changed, how far it came, its peak; none of another."""
    for one in attempts_of(folder):
        record = one.record
        said = [
            record.ended if record.step is None else say("{ended}, step {step}", ended=record.ended, step=record.step)
        ]
        if record.from_step is not None:
            said.insert(0, say("from step {step}", step=record.from_step))
        if record.changed:
            said.insert(0, listed(record.changed))
        if one.peak is not None:
            told = {"size": show_gib(one.peak.bytes), "capacity": show_gib(one.peak.capacity)}
            if one.planned is not None:
                said.append(
                    say("{size} of {capacity} GiB, {planned} expected", **told, planned=show_gib(one.planned.bytes))
                )
            else:
                said.append(say("{size} of {capacity} GiB", **told))
        yield say("attempt {number}: {what}", number=record.attempt, what="; ".join(said))


def _attempt_json(one: AttemptTold) -> dict[str, Any]:
    record, peak, planned = one.record, one.peak, one.planned
    return {
        "folder": str(record.folder),
        **fields_of(record, "attempt changed from_step step end verdict memory phase"),
        "peak_bytes": peak.bytes if peak is not None else None,
        "capacity_bytes": peak.capacity if peak is not None else None,
        "planned_bytes": planned.bytes if planned is not None else None,
    }


def _held(held: Held) -> str:
    told = {"owner": held.owner, "size": show_gib(held.bytes)}
    if held.processes > 1:
        return say("{owner} {size} in {count}", **told, count=held.processes)
    return say("{owner} {size}", **told)


def _row(peak: PhasePeak, ledger: Ledger | None) -> tuple[str, ...]:
    predicted = ledger.phase(peak.place, peak.phase) if ledger is not None else None
    known = [cell for cell in predicted.cells if cell.owner != "unexplained"] if predicted is not None else []
    size = sum(cell.expected for cell in known)
    if predicted is not None and predicted.measured:
        size = predicted.predicted
    return (
        say("GPU") if peak.place == "gpu" else say("host"),
        PHASE_NAMES[peak.phase],
        show_gib(peak.bytes),
        show_gib(peak.capacity),
        show_gib(size) if known else "",
    )


def record_json(measured: Measured | None) -> dict[str, Any] | None:
    """The same as plain JSON."""
    if measured is None:
        return None
    return {
        "seconds": round(measured.length, 1),
        "steps": measured.steps,
        "peaks": [
            {
                **fields_of(peak, "place phase bytes gauge"),
                "capacity_bytes": peak.capacity,
                "at_seconds": round(peak.at, 1),
                "owners": [fields_of(one, "owner bytes processes") for one in peak.owners],
            }
            for peak in measured.peaks
        ],
        "growth": [
            {
                **fields_of(one, "gauge phase"),
                "bytes_per_step": round(one.growth.per_step),
                "uncertainty_bytes": round(one.growth.uncertainty),
                "steps": one.growth.steps,
            }
            for one in measured.grown
        ],
        "level": list(measured.level),
        "full_first": None
        if measured.first is None
        else {
            **fields_of(measured.first, "gauge phase"),
            "steps": [round(left, 1) for left in measured.first.steps],
            "seconds_per_step": round(measured.first.seconds_per_step, 2),
        },
        **fields_of(measured, "oom_kills alerts"),
        "attempts": [_attempt_json(one) for one in attempts_of(measured.folder)],
    }
