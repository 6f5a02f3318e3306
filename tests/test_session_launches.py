"""Which of several launches of a script is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session

STAGES = "".join(
    f"python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size={batch} "
    f"data.max_response_length={length} actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct\n"
    for batch, length in ((8, 2048), (4, 4096))
)
LOG = """\
+ python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size={} data.max_response_length={}
Traceback (most recent call last):
  File "/x/verl/workers/actor/dp_actor.py", line 237, in update_policy
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.13 GiB. GPU 1 has a total capacity of 79.15 GiB of \
which 9.61 GiB is free.
"""


@pytest.mark.parametrize(("batch", "length", "index"), [(8, 2048, 0), (4, 4096, 1)])
def test_the_launch_that_crashed_is_the_one_whose_settings_the_log_printed(
    batch: int, length: int, index: int, tmp_path: Path
) -> None:
    (tmp_path / "run.sh").write_text(STAGES)
    (tmp_path / "train.log").write_text(LOG.format(batch, length))
    asked = SessionRequest(
        script=tmp_path / "run.sh", logs=(tmp_path / "train.log",), gpus="4xA100-80GB", planned=False
    )
    assert open_session(asked).launch_index == index


def test_the_user_who_names_a_launch_is_believed(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(STAGES)
    (tmp_path / "train.log").write_text(LOG.format(4, 4096))
    asked = SessionRequest(script=tmp_path / "run.sh", logs=(tmp_path / "train.log",), gpus="4xA100-80GB", launch=0)
    assert open_session(asked).launch_index == 0
