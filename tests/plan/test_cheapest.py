"""The plan's set of changes against every other set of the same choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.heavy import sampled
from tests.plan.brute_force import Told, cheaper, told

SEEDS = range(12)
"""`python -m tests.plan.brute_force 240` looks at more."""
SAMPLE = (0, 2, 8, 9)
"""Looked at in every run: one of each kind, and quick to search through."""


KNOWN: dict[int, Told] = {}


def once(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """What was made of a seed before is looked at again."""
    if seed not in KNOWN:
        KNOWN[seed] = told(seed, folder, monkeypatch)
    return KNOWN[seed]


@pytest.mark.parametrize("seed", sampled(SEEDS, SAMPLE))
def test_no_cheaper_set_fits_and_the_plan_selects_what_the_search_found(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = once(seed, tmp_path, monkeypatch)
    for asking in found.asked:
        assert cheaper(asking) is None
    for asking in found.asked[-1:]:
        if asking.answer is not None:
            assert {p.remedy.id for p in asking.answer} <= {step.id for step in found.state.plan.selected()}
            assert found.state.plan.fits is not False


def test_the_sample_has_runs_that_fit_after_one_change_after_several_and_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: set[str] = set()
    for seed in SAMPLE:
        found = once(seed, tmp_path, monkeypatch)
        answers = [asking.answer for asking in found.asked[-1:]]
        if not found.asked and len(found.state.plan.selected()) == 1:  # one of the cause's own is enough
            kinds.add("one")
        kinds |= {"never" if a is None else ["nothing", "one"][len(a)] if len(a) < 2 else "several" for a in answers}
        if kinds >= {"never", "one", "several"}:
            return
    raise AssertionError(f"only {kinds}")
