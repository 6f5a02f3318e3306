"""A log alone that proves a pass without gradients: what leads is the pass, named as its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

FRAME = '  File "/e/lib/python3.11/site-packages/{file}", line 61, in {name}\n    {text}\n'
VERL = "Traceback (most recent call last):\n" + "".join(
    FRAME.format(file=f"verl/workers/{file}", name=name, text=text)
    for file, name, text in (
        ("fsdp_workers.py", "compute_ref_log_prob", "output, _ = self.ref_policy.compute_log_prob(data=data)"),
        ("actor/dp_actor.py", "_forward_micro_batch", "output = self.actor_module("),
    )
)
TRL = "Traceback (most recent call last):\n" + "".join(
    FRAME.format(file=file, name=name, text=text)
    for file, name, text in (
        ("transformers/trainer.py", "training_step", "inputs = self._prepare_inputs(inputs)"),
        ("trl/trainer/grpo_trainer.py", "_prepare_inputs", "ref = self._get_per_token_logps(self.ref_model, ids)"),
        ("trl/trainer/grpo_trainer.py", "_get_per_token_logps", "logits = model(input_ids=input_ids).logits"),
    )
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of 79.15 "
    "GiB of which 0.20 GiB is free. Including non-PyTorch memory, this process has 78.94 GiB memory in use. Of the "
    "allocated memory 66.10 GiB is allocated by PyTorch, and 0.41 GiB is reserved by PyTorch but unallocated.\n"
)


def read(folder: Path, frames: str, tried: str) -> State:
    (folder / "log").write_text(frames + OOM.format(tried=tried))
    return open_session(SessionRequest(None, logs=(folder / "log",)))


@pytest.mark.parametrize("frames", [VERL, TRL])
@pytest.mark.parametrize(("tried", "cause"), [("4.63", "logits-too-big"), ("0.63", "batch")])
def test_the_pass_leads_and_states_come_behind_it(tmp_path: Path, frames: str, tried: str, cause: str) -> None:
    state = read(tmp_path, frames, tried)
    names = [step.id for step in state.plan.steps]
    assert state.diagnosis.cause.startswith(cause)
    assert names[0] == "lower-logprob-micro-batch"
    assert not {"optimizer-offload", "cpu-optimizer", "token-budget"} & set(names[:2])


def test_what_acts_in_the_update_alone_is_no_step_of_a_scoring_pass(tmp_path: Path) -> None:
    assert all(step.id != "fused-loss" for step in read(tmp_path, TRL, "4.63").plan.steps)
