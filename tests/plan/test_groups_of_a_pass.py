"""Where a prompt's whole group goes through in one pass, its size is a lever; of a few quoted settings each is."""

from __future__ import annotations

from tests.plan.planned import Planned, changes
from tests.plan.test_usual_ways_out import BARE, UPDATE, first

EARLY = (
    "torchrun --nproc_per_node=8 src/open_r1/grpo.py --model_name_or_path Qwen/Qwen2-VL-2B-Instruct --dataset_name x/y"
    " --max_pixels 401408 --max_prompt_length 1024 --max_completion_length 700 --per_device_train_batch_size 1"
    " --num_generations 8 --output_dir out\n"
)
LATER = EARLY.replace(" --max_pixels 401408", "").replace("size 1", "size 8 --steps_per_generation 2")
CARDS = ("--gpus", "8xA100-80GB")


def test_a_group_that_goes_through_in_one_pass_is_made_smaller_among_the_first_steps(planned: Planned) -> None:
    steps = planned(EARLY, BARE, *UPDATE, *CARDS)
    old, new = changes(steps["lower-samples"])["num_generations"]
    assert old == "8"
    assert int(new) < 8
    assert "lower-samples" in first(steps)
    assert "lower-samples" not in planned(LATER, BARE, *UPDATE, *CARDS)


def test_prompts_with_pictures_are_shortened_by_their_pixels(planned: Planned) -> None:
    assert "shorten-prompts" not in planned(EARLY, BARE, *UPDATE, *CARDS)
    assert "shorten-prompts" in planned(LATER.replace("-VL-2B", "-7B"), BARE, *UPDATE, *CARDS)


def test_what_somebody_quoted_of_a_launch_is_among_the_first_steps(planned: Planned) -> None:
    said = ("--answer", "memory=gpu", "--answer", "framework=trl")
    few = "torchrun --nproc_per_node=4 train.py --max_completion_length 2048\n"
    assert "shorten-responses" in first(planned(few, "", *said))
    assert "shorten-responses" not in first(planned(few.replace("max_completion_length 2048", "bf16"), "", *said))
