"""A version that is known to be bad, in a run that it asks for, leads the plan whatever else the frames name."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

SCRIPT = (
    "deepspeed --module openrlhf.cli.train_ppo_ray --pretrain meta-llama/Llama-3-8B --zero_stage 3 "
    "--gradient_checkpointing --micro_train_batch_size 4 --actor_num_gpus_per_node 8 --vllm_num_engines 4\n"
)
LOG = (
    'Traceback (most recent call last):\n  File "/x/openrlhf/trainer/ray/ppo_actor.py", line 3, in training_step\n'
    '    self.strategy.backward(loss)\n  File "/x/deepspeed/runtime/zero/stage3.py", line 13, in __reduce_ipg_grads\n'
    "    buffer = torch.empty(int(self.reduce_bucket_size))\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 954.00 MiB.\n"
)


def first_step(folder: Path, **libraries: str) -> str:
    (folder / "run.sh").write_text(SCRIPT)
    (folder / "run.log").write_text("".join(f"{name}=={version}\n" for name, version in libraries.items()) + LOG)
    state = open_session(SessionRequest(folder / "run.sh", logs=(folder / "run.log",), gpus="8xH100"))
    assert state.diagnosis.cause == "communication-buckets"
    return state.plan.steps[0].id


def test_a_regression_in_force_leads_and_a_good_version_does_not(tmp_path: Path) -> None:
    assert first_step(tmp_path, deepspeed="0.16.2") == "use-deepspeed-0.16.8"
    assert not first_step(tmp_path, deepspeed="0.16.9").startswith("use-")
