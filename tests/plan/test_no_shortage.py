"""A failure that no memory advice would mend has steps of its own, done by hand; nothing in them speaks of memory."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned

TRL = (
    "trl grpo --model_name_or_path Qwen/Qwen2.5-1.5B --dataset_name x/y --num_generations 8"
    " --per_device_train_batch_size 2 --output_dir out\n"
)


@pytest.mark.parametrize(
    ("log", "first"),
    [
        ("OSError: [Errno 28] No space left on device: '/data/out/model.pt'\n", "free-disk"),
        ("ValueError: The global train batch size (3 x 2) must be evenly divisible by 8.\n", "numbers-that-divide"),
        ("torch.distributed.DistNetworkError: EADDRINUSE, message: address already in use\n", "free-port"),
        ("RuntimeError: CUDA error: device-side assert triggered\n", "blocking-launch"),
    ],
)
def test_what_is_no_shortage_has_the_steps_that_help_against_it(planned: Planned, log: str, first: str) -> None:
    steps = planned(TRL, log)
    assert next(iter(steps)) == first
    assert not any(step["selected"] or step["changes"] for step in steps.values())


def test_an_exception_of_which_nothing_is_known_proves_no_shortage_and_has_no_step(planned: Planned) -> None:
    assert not planned(TRL, "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'reward'\n")


def test_the_setting_that_has_to_divide_is_named(planned: Planned) -> None:
    step = planned(TRL, "ValueError: batch size (3 x 2) must be evenly divisible by 8.\n")["numbers-that-divide"]
    assert "num_generations" in str(step["title"])


@pytest.mark.parametrize(
    ("log", "step"),
    [
        ("OSError: [Errno 122] Disk quota exceeded\n", "free-disk"),
        (
            "(autoscaler +9m1s) Error: No available node types can fulfill resource request {'GPU': 4.0}.\n",
            "match-resources",
        ),
        ("ValueError: Total available GPUs 4.0 is less than total desired GPUs 8\n", "match-resources"),
        ("gcs_rpc_client.h:151: Failed to connect to GCS at address 10.0.0.7:6379 within 5 seconds.\n", "ray-head"),
    ],
)
def test_disk_quotas_and_a_ray_that_lacks_something_are_told(planned: Planned, log: str, step: str) -> None:
    assert next(iter(planned(TRL, log))) == step


def test_sizes_that_do_not_match_are_no_shortage_without_their_class_too(planned: Planned) -> None:
    cut = "The size of tensor a (4100) must match the size of tensor b (2049) at non-singleton dimension 1\n"
    assert list(planned(TRL, cut)) == ["read-the-exception"]  # the step of a failure that has none of its own
    assert "read-the-exception" not in planned(TRL, "OSError: [Errno 28] No space left on device: '/data/out/a.pt'\n")
