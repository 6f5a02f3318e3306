"""A log alone that proves a pass without gradients: what leads is the pass, named as its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

VERL = (
    'Traceback (most recent call last):\n  File "/o/verl/verl/workers/fsdp_workers.py", line 802, in compute_ref_log_prob\n'
    '    output, _ = self.ref_policy.compute_log_prob(data=data)\n  File "/o/verl/verl/workers/actor/dp_actor.py", line '
    "170, in _forward_micro_batch\n    output = self.actor_module(\n"
)
TRL = (
    'Traceback (most recent call last):\n  File "/e/site-packages/trl/trainer/grpo_trainer.py", line 6, in _get_per_token_logps\n'
    "    logits = model(input_ids=input_ids).logits\n"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 0.20 GiB is free. Including non-PyTorch memory, this process has 78.94 GiB memory in use. Of the "
    "allocated memory 66.10 GiB is allocated by PyTorch, and 0.41 GiB is reserved by PyTorch but unallocated.\n"
)


def read(folder: Path, frames: str, tried: str) -> State:
    (folder / "log").write_text(frames + OOM.format(tried=tried))
    return open_session(SessionRequest(None, logs=(folder / "log",)))


@pytest.mark.parametrize("frames", [VERL, TRL])
@pytest.mark.parametrize(("tried", "cause"), [("4.63", "logits-too-big"), ("0.63", "batch-or-states")])
def test_the_pass_leads_and_states_come_behind_it(tmp_path: Path, frames: str, tried: str, cause: str) -> None:
    state = read(tmp_path, frames, tried)
    names = [step.id for step in state.plan.steps]
    assert state.diagnosis.cause == cause
    assert names[0] == "lower-logprob-micro-batch"
    assert not {"optimizer-offload", "cpu-optimizer", "token-budget"} & set(names[:2])


def test_what_acts_in_the_update_alone_is_no_step_of_a_scoring_pass(tmp_path: Path) -> None:
    assert all(step.id != "fused-loss" for step in read(tmp_path, TRL, "4.63").plan.steps)
