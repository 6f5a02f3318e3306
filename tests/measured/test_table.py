"""knowledge/measured.yaml is what the ledger says now, and the ledger is as close as is claimed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from advisor.run_file import size_run_file
from advisor.session import SessionRequest
from tests.gpu.configurations import configurations
from tests.gpu.predicted import ledger_of, run_file
from tests.gpu.table import Row, medians, predict, read

FILE = Path(__file__).resolve().parents[2] / "knowledge" / "measured.yaml"
MEDIAN = 0.01
"""The bound that the ledger is held to over all rows."""
LEAST = 40
"""Configurations."""


@lru_cache(maxsize=1)
def rows() -> list[Row]:
    return read(FILE)[1]


def test_the_table_holds_configurations_that_can_be_measured_again():
    held = {row.configuration for row in rows()}
    assert held <= {configuration.name for configuration in configurations()}
    assert len(held) >= LEAST


def test_no_two_configurations_have_one_name():
    names = [configuration.name for configuration in configurations()]
    assert len(names) == len(set(names))


def test_its_predictions_are_what_the_ledger_says_now():
    told = [(r.configuration, r.phase, r.low, r.predicted, r.high) for r in rows()]
    now = [(r.configuration, r.phase, r.low, r.predicted, r.high) for r in predict(rows())]
    assert told == now, "write it anew: python -m tests.gpu.table --again knowledge/measured.yaml"


def test_the_ledger_asked_is_that_of_a_sized_run_file(tmp_path):
    configuration = next(configurations())
    assert size_run_file(run_file(configuration, tmp_path), SessionRequest()).ledger == ledger_of(configuration)


def test_its_medians_follow_from_its_rows():
    assert read(FILE)[0]["median_error"] == medians(rows())


def test_the_median_error_is_within_the_bound():
    assert medians(rows())["all"] <= MEDIAN


@pytest.mark.parametrize("phase", ["log_prob", "actor_update", "optimizer_step"])
def test_every_phase_is_measured_often(phase):
    assert sum(row.phase == phase for row in rows()) >= LEAST // 2


def test_the_intervals_hold_nearly_every_reading():
    held = sum(row.low <= row.measured <= row.high for row in rows())
    assert held >= 0.95 * len(rows())
