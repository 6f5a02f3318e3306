"""The ledger against peaks of training that others published (published.yaml)."""

from __future__ import annotations

import time
from functools import lru_cache
from statistics import median

import pytest

from advisor.crash.evidence import NOTHING
from advisor.machine.inventory import Host, Machine
from advisor.memory.ledger import build_ledger
from tests.loops import each
from tests.measured.published import Row, Sized, in_knobs, rows, size

WHOLE_CARD = "the reading is the whole card"
"""Such a reading says that the card was full or needed, not what the run holds."""
BELOW, ABOVE = {"dense": 0.10, "megatron": 0.10, "moe": 0.18}, {"dense": 0.30, "megatron": 0.30, "moe": 0.45}
"""The widest interval around what is expected."""


@lru_cache(maxsize=1)
def sized() -> list[tuple[Row, Sized]]:
    return [(row, size(row.run)) for row in rows()]


def errors(kind: str) -> dict[str, float]:
    settled = [(row, found) for row, found in sized() if row.kind == kind and (kind != "dense" or not row.doubt)]
    settled = [(row, found) for row, found in settled if row.doubt != WHOLE_CARD]
    return {row.id: found.expected / row.reading - 1 for row, found in settled}


def test_no_interval_is_wider_than_its_bounds_unless_the_data_move_it() -> None:
    settled = [(row, found) for row, found in sized() if not found.by_data]
    assert len(settled) > 12
    for row, found in settled:
        assert found.low >= (1 - BELOW[row.kind]) * found.expected * 0.999, row.what
        assert found.high <= (1 + ABOVE[row.kind]) * found.expected * 1.001, row.what


def test_every_settled_reading_lies_in_its_interval() -> None:
    outside = [
        f"{r.what}: {f.low:.1f} {r.reading} {f.high:.1f}" for r, f in sized() if not f.low <= r.reading <= f.high
    ]
    doubted = [row.what for row, _ in sized() if row.doubt == WHOLE_CARD]
    assert not [line for line in outside if not any(line.startswith(what) for what in doubted)]


def test_dense_runs_are_within_an_eighth() -> None:
    found = errors("dense")
    assert max(abs(error) for error in found.values()) < 0.12, found
    assert sum(map(abs, found.values())) / len(found) < 0.06


def test_what_is_no_dialect_of_ours_is_within_a_tenth_as_well() -> None:
    others = [(row, found) for row, found in sized() if found.run.framework == "unknown"]
    assert len(others) > 3
    assert max(abs(found.expected / row.reading - 1) for row, found in others) < 0.10


def test_a_whole_ledger_takes_no_time_that_anyone_would_notice() -> None:
    assert median(_seconds(row) for row, _ in sized()) < 0.005


def _seconds(row: Row) -> float:
    """Processor time of one ledger."""
    run = size(row.run).run
    start = time.process_time()
    build_ledger(run, Machine(1, (), Host()), NOTHING)
    return time.process_time() - start


@pytest.mark.parametrize("kind", ["megatron", "moe"])
def test_megatron_and_mixtures_are_near(kind: str) -> None:
    assert sum(map(abs, errors(kind).values())) / len(errors(kind)) < 0.10, errors(kind)


@each("row", list(rows()), ids=lambda row: f"{row.id}: {row.what}")
def test_a_run_in_knobs_has_the_ledger_of_the_same_run_in_settings(row: Row) -> None:
    settings, knobs = size(row.run), size(in_knobs(row))
    assert (knobs.phase, knobs.low, knobs.expected, knobs.high) == (
        settings.phase,
        settings.low,
        settings.expected,
        settings.high,
    )


@each("row", list(rows()), ids=lambda row: f"{row.id}: {row.what}")
def test_the_command_need_not_be_named(row: Row) -> None:
    """A run file has no program: what the settings say is enough to know the trainer and the algorithm."""
    without = {key: value for key, value in row.run.items() if key != "program"}
    assert size(without).expected == size(row.run).expected
