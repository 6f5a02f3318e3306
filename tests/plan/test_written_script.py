"""What `fix` promises of a script and what `estimate` says of it once it is written: one predictor, one answer."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from advisor import session
from advisor.memory.fit import Fit
from advisor.memory.predict import Prediction
from advisor.session import State, open_session
from tests.heavy import sampled
from tests.plan.planned import asked_of, opened
from tests.stories.told import RUNS, STORIES, Story

SEEDS = range(int(os.environ.get("MADE_UP_RUNS", "16")))
"""`MADE_UP_RUNS=200` looks at all; every run at the first few."""


def written(state: State) -> tuple[State, State] | None:
    """The patched script as a user has it estimated, beside the old log and without; None where nothing is written."""
    patch = session.patch(state)
    if not patch.rewrites or state.asked.script is None:
        return None
    (rewrite,) = patch.rewrites
    file = rewrite.document.path.with_name(f"patched{rewrite.document.path.suffix}")
    file.write_bytes(rewrite.new)
    asked = replace(state.asked, script=file)
    return open_session(asked), open_session(replace(asked, logs=()))


def estimated(new: State, old: State) -> Prediction:
    """The written script beside the old log; where the plan changes a library, without what the old one leaks."""
    assert new.situation is not None
    fixed = any(step.kind == "version" for step in old.plan.selected())
    return new.situation.predictor.predict(fixed=fixed)


def agrees(old: State, new: State, without_log: State) -> None:
    """The same bytes in every phase, the same verdict; and without the log, no verdict that no evidence explains."""
    assert new.run.settings == without_log.run.settings
    found = estimated(new, old)
    assert old.plan.after is not None
    for then, now in zip(
        (*old.plan.after.gpu, *old.plan.after.host), (*found.ledger.gpu, *found.ledger.host), strict=True
    ):
        assert (then.phase, then.low, then.expected, then.high) == (now.phase, now.low, now.expected, now.high)
    assert found.fit == old.plan.fit
    assert without_log.situation is not None
    alone = without_log.situation.now.fit
    if old.plan.fits and alone.fits is False:
        assert over(alone) <= {*old.plan.fit.lived_through, *measured(old)}


def over(fit: Fit) -> set[tuple[str, str]]:
    return {(one.place, one.phase) for one in fit.findings}


def measured(state: State) -> set[tuple[str, str]]:
    """Phases of which the log or a record says more than the prediction."""
    assert state.situation is not None
    found = state.situation.predictor.measured
    read = {
        ("gpu", each.phase) for each in state.ledger.gpu for one in found.readings if one.phase in (None, each.phase)
    }
    return read | {(peak.place, peak.phase) for peak in found.peaks}


@pytest.mark.parametrize("story", STORIES.values(), ids=lambda story: story.name)
def test_the_script_that_fix_writes_is_estimated_as_the_plan_says(story: Story, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(RUNS / story.folder, folder, ignore=shutil.ignore_patterns("expected*"))
    old = open_session(asked_of(story, folder))
    new = written(old)
    if new is not None:
        agrees(old, *new)


@pytest.mark.parametrize("seed", sampled(SEEDS, 4))
def test_a_made_up_script_that_fix_writes_is_estimated_as_the_plan_says(seed: int, tmp_path: Path) -> None:
    old = opened(seed, tmp_path)
    new = written(old)
    if new is not None:
        agrees(old, *new)
