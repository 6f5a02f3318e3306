"""A bad library version: woken by a change, answered by the user, or not yet known; each asks for another plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.planned import Planned, changes, selected
from tests.stories.told import RUNS, tell

STORY = (RUNS / "openrlhf" / "train_ppo_llama3_70b.sh").read_text()
LOG = (RUNS / "openrlhf" / "train.log").read_text()
UNVERSIONED = LOG.replace("DeepSpeed info: version=0.16.3, ", "")
CLUSTER = ("--gpus", "8xA800-80GB", "--nodes", "9")
CURE = "use-deepspeed-0.16.8"


def without(flag: str) -> str:
    """The story's script without a bare flag."""
    line = f"   {flag} \\\n"
    assert line in STORY
    return STORY.replace(line, "")


def test_a_change_that_wakes_the_fault_brings_the_other_version_along(planned: Planned) -> None:
    stage_two = STORY.replace("--zero_stage 3", "--zero_stage 2")
    assert stage_two != STORY
    steps = planned(stage_two, LOG, *CLUSTER, "--lib", "deepspeed=0.16.3")
    assert selected(steps)[:2] == [CURE, "higher-zero-stage"]
    assert "sleeps" in " ".join(steps[CURE]["caveats"])


def test_the_same_change_needs_no_other_version_where_the_fault_is_mended(planned: Planned) -> None:
    stage_two = STORY.replace("--zero_stage 3", "--zero_stage 2")
    steps = planned(stage_two, LOG, *CLUSTER, "--lib", "deepspeed=0.16.9")
    assert CURE not in steps
    assert "higher-zero-stage" in selected(steps)


def test_an_answered_fault_is_as_good_as_a_known_version(planned: Planned) -> None:
    steps = planned(STORY, UNVERSIONED, *CLUSTER, "--answer", "regression=yes")
    assert selected(steps) == [CURE]
    assert steps[CURE]["saves_bytes"]["actor_update"] > 100 * 2**30


def test_an_unknown_version_is_looked_up_before_results_are_given_up(planned: Planned) -> None:
    steps = planned(STORY, UNVERSIONED, *CLUSTER)
    told = [name for name, step in steps.items() if name == CURE or step.get("results") == "changed"]
    assert told[0] == CURE
    assert all(steps[name]["results"] == "unchanged" for name in selected(steps))


def test_two_versions_exclude_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(STORY)
    (tmp_path / "train.log").write_text(LOG)
    both = f"{CURE},use-deepspeed-0.15.0"
    words = ["fix", "run.sh", "--log", "train.log", *CLUSTER, "--lib", "deepspeed=0.16.3", "--accept", both]
    code, _, err = tell(words, capsys)
    assert code == 2
    assert "exclude each other" in err
    assert not (tmp_path / "run.fits.sh").exists()


def test_a_flag_is_written_without_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """OpenRLHF's switches are store_true: `--gradient_checkpointing true` would not start."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(without("--gradient_checkpointing"))
    (tmp_path / "train.log").write_text(LOG)
    words = ["fix", "run.sh", "--log", "train.log", *CLUSTER, "--lib", "deepspeed=0.16.9"]
    code, _, err = tell([*words, "--accept", "gradient-checkpointing"], capsys)
    assert code == 0, err
    written = (tmp_path / "run.fits.sh").read_text()
    line = next(each for each in written.splitlines() if each.strip().startswith("--gradient_checkpointing"))
    assert line.strip().rstrip("\\").strip() == "--gradient_checkpointing"


def test_a_flag_set_by_hand_is_bare_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text(without("--gradient_checkpointing"))
    code, _, err = tell(["set", "run.sh", "gradient_checkpointing=true", "-o", "new.sh"], capsys)
    assert code == 0, err
    assert "--gradient_checkpointing true" not in (tmp_path / "new.sh").read_text()
    assert "--gradient_checkpointing" in (tmp_path / "new.sh").read_text()


def test_turning_on_means_the_flag_alone_in_the_plan(planned: Planned) -> None:
    steps = planned(without("--gradient_checkpointing"), LOG, *CLUSTER, "--lib", "deepspeed=0.16.9")
    assert "gradient_checkpointing" in changes(steps["gradient-checkpointing"])
