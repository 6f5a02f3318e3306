"""It fitted with version A and dies with B: the defaults that changed between them, and the versions, come first."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, out_of_memory, selected

LAUNCH = (
    "accelerate launch --num_processes 8 trl/scripts/grpo.py --model_name_or_path Qwen/Qwen2.5-7B-Instruct "
    "--per_device_train_batch_size 8 --num_generations 8 --gradient_checkpointing true {more}\n"
)
LOG = out_of_memory("trl/trainer/grpo_trainer.py")


def test_a_default_that_moved_is_put_back_and_the_version_stands_beside_it(planned: Planned) -> None:
    steps = planned(LAUNCH.format(more=""), LOG, "--lib", "trl=1.16.0", "--was", "trl=0.24.0")
    (first, second, *_) = steps.values()
    assert first["id"] == "as-before-max-completion-length"
    assert [(one["key"], one["old"], one["new"]) for one in first["changes"]] == [
        ("--max_completion_length", "512", "256")
    ]
    assert selected(steps) == [first["id"]]
    assert second["id"] == "back-to-trl-0.24.0"
    assert second["changes"][0]["old"] == "1.16.0"


def test_a_setting_that_the_launch_states_did_not_move(planned: Planned) -> None:
    stated = LAUNCH.format(more="--max_completion_length 512")
    steps = planned(stated, LOG, "--lib", "trl=1.16.0", "--was", "trl=0.24.0")
    assert next(iter(steps)) == "back-to-trl-0.24.0"
    assert not any(name.startswith("as-before-") for name in steps)


def test_within_an_era_no_default_is_blamed(planned: Planned) -> None:
    steps = planned(LAUNCH.format(more=""), LOG, "--lib", "trl=1.16.0", "--was", "trl=1.15.0")
    assert next(iter(steps)) == "back-to-trl-1.15.0"
    assert not any(name.startswith("as-before-") for name in steps)


@pytest.mark.parametrize(("fitted", "blamed"), [("0.15.4", True), ("0.16.3", False)])
def test_a_fault_that_the_older_version_has_too_is_not_blamed(planned: Planned, fitted: str, blamed: bool) -> None:
    sharded = LAUNCH.format(more="--deepspeed zero3.json")
    steps = planned(sharded, LOG, "--was", f"deepspeed={fitted}")
    assert next(iter(steps)) == f"back-to-deepspeed-{fitted}"
    assert ("use-deepspeed-0.16.8" in steps) is blamed


def test_the_version_may_be_answered_in_place_of_given(planned: Planned) -> None:
    answers = ("--answer", "regression=named", "--answer", "was=v0.23")
    steps = planned(LAUNCH.format(more=""), LOG, "--lib", "trl=1.16.0", *answers)
    assert list(steps)[:2] == ["as-before-max-completion-length", "back-to-trl-0.23"]
