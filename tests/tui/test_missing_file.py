"""A config file that the launch names and that is not there is said on every screen whose sums rest on it."""

from pathlib import Path

import pytest

from advisor.session import SessionRequest
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen

from .screen_text import opened, press, screen_text

SCRIPT = (
    "accelerate launch --num_processes 2 --config_file zero2.yaml grpo.py --model_name_or_path Qwen/Qwen3-4B "
    "--per_device_train_batch_size 16 --num_generations 16 --max_completion_length 6144\n"
)
LOG = (
    "Traceback (most recent call last):\n"
    '  File "/x/trl/trainer/grpo_trainer.py", line 1090, in _get_per_token_logps_and_entropies\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.64 GiB. GPU 1 has a total capacity of 79.11 GiB "
    "of which 20.03 GiB is free.\n"
)
BY_NAME = "by its name, memory is counted for DeepSpeed ZeRO stage 2, a guess."


@pytest.fixture
def driver(tmp_path: Path) -> SessionDriver:
    (tmp_path / "run.sh").write_text(SCRIPT)
    (tmp_path / "train.log").write_text(LOG)
    return SessionDriver(SessionRequest(script=tmp_path / "run.sh", logs=(tmp_path / "train.log",), gpus="2xA100-80GB"))


def shown(pilot: object) -> str:
    return " ".join(screen_text(pilot.app).split())  # type: ignore[attr-defined]


async def test_it_is_said_on_verdict_memory_and_plan(driver: SessionDriver) -> None:
    async with opened(driver=driver) as pilot:
        assert BY_NAME in shown(pilot)
        assert "during the actor update or while computing log-probabilities" in shown(pilot)
        await press(pilot, "m")
        assert BY_NAME in shown(pilot)
        await press(pilot, "escape")
        while not isinstance(pilot.app.screen, PlanScreen):
            await press(pilot, "enter")
        assert BY_NAME in shown(pilot)


async def test_it_is_a_question_answered_by_a_guess_that_the_user_may_change(driver: SessionDriver) -> None:
    async with opened(driver=driver) as pilot:
        await press(pilot, "r")
        while "▸ How does zero2.yaml shard" not in shown(pilot):
            await press(pilot, "down")
        await press(pilot, "enter")
        assert "How does zero2.yaml shard the training states?" in shown(pilot)
        assert "4 ● DeepSpeed ZeRO stage 2 a guess: Enter agrees" in shown(pilot)
        await press(pilot, "2")
        assert "at its fullest a GPU needs" in shown(pilot)
        assert "2 ● DeepSpeed ZeRO stage 3 answered by you" in shown(pilot)
        await press(pilot, "m")
        assert "as you said, memory is counted for DeepSpeed ZeRO stage 3" in shown(pilot)
        await press(pilot, "escape", "u")
        assert "▸ 4 ● DeepSpeed ZeRO stage 2 a guess: Enter agrees" in shown(pilot), "the cursor goes back with it"
        await press(pilot, "enter", "m")
        assert BY_NAME in shown(pilot)
