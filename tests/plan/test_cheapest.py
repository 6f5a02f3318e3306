"""The plan's set of changes against every other set of the same choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.brute_force import cheaper, told

SEEDS = range(12)
"""A sample; `python -m tests.plan.brute_force 240` looks at more."""


@pytest.mark.parametrize("seed", SEEDS)
def test_no_cheaper_set_fits(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for asking in told(seed, tmp_path, monkeypatch).asked:
        assert cheaper(asking) is None


def test_the_sample_has_runs_that_fit_after_one_change_after_several_and_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [asking.answer for seed in SEEDS for asking in told(seed, tmp_path, monkeypatch).asked[-1:]]
    sizes = {None if answer is None else len(answer) for answer in answers}
    assert {None, 1} < sizes
    assert max(size for size in sizes if size is not None) > 1


def test_the_plan_selects_what_the_search_found_and_says_that_it_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS:
        found = told(seed, tmp_path, monkeypatch)
        for asking in found.asked[-1:]:
            selected = {step.id for step in found.state.plan.selected()}
            if asking.answer is not None:
                assert {p.remedy.id for p in asking.answer} <= selected
                assert found.state.plan.fits
