"""A switch that stands is not proposed again; a key that other versions lack says so where the version is unknown."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.45 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.02 GiB is free. Process 7 has 78.10 GiB memory in use. Of the allocated memory 76.20 GiB is allocated "
    "by PyTorch, and 0.30 GiB is reserved by PyTorch but unallocated.\n"
)
FRAMES = 'Traceback (most recent call last):\n  File "/w/own/train.py", line 4, in update\n    loss.backward()\n'
OWN = "torchrun --nproc_per_node 8 own/train.py --batch 8"
VERL = "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8\n"
UPDATE = ("--answer", "phase=actor_update")


@pytest.mark.parametrize(("flag", "offered"), [("", True), (" --actor_gradient_checkpointing", False)])
def test_a_switch_of_an_unknown_script_that_is_on_is_not_asked_for(planned: Planned, flag: str, offered: bool) -> None:
    steps = planned(f"{OWN}{flag}\n", FRAMES + OOM, *UPDATE)
    assert ("gradient-checkpointing" in steps) == offered


def test_a_key_that_some_versions_lack_says_so_until_the_version_is_known(planned: Planned) -> None:
    def dated(*more: str) -> list[str]:
        steps = planned(VERL, OOM, *UPDATE, *more)
        return [c for step in steps.values() for c in step.get("caveats", ()) if "pip show verl" in c]

    assert any("exists from v0." in caveat for caveat in dated())
    assert not dated("--lib", "verl=0.6.1")
