"""What upstream's own files gave for the claimed rows (own_files.yaml, recorded with mirrors at hand) is held to the
ledger of today and to the claims."""

from __future__ import annotations

from statistics import median

import pytest

from tests.loops import each
from tests.measured.own_files import OwnFile, as_variant, recorded
from tests.measured.published import Row, rows, size

ROWS = {row.id: row for row in rows()}
FOUND = [(ROWS[own.id], own) for own in recorded()]
WHOLE_CARD = "the reading is the whole card"
OUTSIDE = {
    "2": "published rows of its data are short; what torch reserves for such a mixture is not all counted",
    "3": "the reading is of torch 2.5, which the file does not say",
    "29": "the evaluation at the end of an interval, which the reading may not hold",
}
"""Rows whose reading is not within what their own file gives, and why."""


def test_every_row_with_a_file_of_its_own_was_tried() -> None:
    assert {row.id for row in ROWS.values() if row.variant is not None} == {own.id for own in recorded()}


def test_the_readings_lie_within_what_the_files_give() -> None:
    settled = [(row, own) for row, own in FOUND if row.doubt != WHOLE_CARD]
    outside = {row.id for row, own in settled if not own.low <= row.reading <= own.high}
    assert outside <= OUTSIDE.keys()
    assert median(abs(own.expected / row.reading - 1) for row, own in settled) < 0.1


def test_no_file_that_ran_on_its_cards_is_said_not_to_fit() -> None:
    assert {own.exit for own in recorded()} == {0}


@each(("row", "own"), FOUND, ids=[row.id for row, _ in FOUND])
def test_the_record_is_of_this_ledger(row: Row, own: OwnFile) -> None:
    """Where a file says no more than the row, its numbers are the row's: a record of another ledger fails here."""
    found = size(row.run)
    if row.same:
        assert (own.low, own.expected, own.high) == pytest.approx((found.low, found.expected, found.high), abs=0.1)
    else:
        assert (own.phase, own.expected) != (found.phase, pytest.approx(found.expected, abs=0.05))


def test_a_variant_stands_behind_the_options_of_the_file() -> None:
    script = "# 42GiB\nswift sft \\\n    --packing true\n"
    assert as_variant(script, {"packing": "false"}) == "swift sft \\\n    --packing true \\\n    --packing false\n"
