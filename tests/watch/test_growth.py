"""A leak is found, and what only looks like one is not. The rates of `made_series` for fixed seeds."""

from __future__ import annotations

import pytest

from advisor.watch.growth import growth_of
from tests.loops import each
from tests.watch.made_series import NOISES, WITH_A_LEAK, rate

TRIES = 100


@each("noise", NOISES, ids=lambda noise: noise.__name__)
def test_at_most_two_false_alarms_in_a_hundred(noise):
    assert rate(noise, 0.0, TRIES, seed=11) <= 0.02


@each("noise", WITH_A_LEAK, ids=lambda noise: noise.__name__)
def test_one_percent_a_step_is_found_in_fifty_steps(noise):
    assert rate(noise, 0.01, TRIES, seed=12) >= 0.95


def test_the_slope_comes_with_an_interval_that_holds_it():
    growth = growth_of([100 + 2 * step + (step * 7 % 5 - 2) for step in range(40)])
    assert growth.leaks
    assert abs(growth.per_step - 2) <= growth.uncertainty + 0.05
    soon, late = growth.steps_left(200)
    assert soon <= (200 - growth.level) / 2 <= late


def test_few_steps_prove_nothing():
    assert not growth_of([1.0, 2.0, 3.0, 4.0, 5.0]).leaks
    assert growth_of([]).steps == 0


def test_memory_that_shrinks_is_no_leak():
    assert not growth_of([100.0 - step for step in range(50)]).leaks


def test_a_long_run_is_put_together_in_blocks_and_keeps_its_slope():
    growth = growth_of([1000 + 0.5 * step for step in range(5000)])
    assert growth.per_step == pytest.approx(0.5, rel=0.02)
