"""A count that the run itself disproved in one memory does not hide what fits in the other."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, State, open_session
from tests.watch.made_run import SCRIPT

DEATH = """\
(TaskRunner pid=7) step:3 - actor/entropy:0.4 - actor/pg_loss:0.1
(TaskRunner pid=7) step:4 - actor/entropy:0.4 - actor/pg_loss:0.1
  File "/opt/verl/workers/actor/dp_actor.py", line 237, in update_policy
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.13 GiB. GPU 1 has a total capacity of 79.15 GiB of \
which 9.61 GiB is free. Of the allocated memory 66.04 GiB is allocated by PyTorch
"""


def opened(folder: Path, host_ram: str) -> State:
    script, log = folder / "run.sh", folder / "train.log"
    script.write_text(SCRIPT.format(python="python3", save_freq=2, steps=6))
    log.write_text(DEATH)
    return open_session(SessionRequest(script, (log,), gpus="4xA100-80GB", host_ram=host_ram))


def test_ram_that_is_counted_too_large_leaves_the_plan_for_the_card_standing(tmp_path: Path) -> None:
    roomy, tight = (opened(tmp_path, ram).plan for ram in ("512GB", "16GB"))
    assert tight.fit.verdict == "may_not_fit"
    assert {one.reason for one in tight.fit.findings} == {"contradicted"}
    assert {step.id for step in tight.selected()} == {step.id for step in roomy.selected()}
