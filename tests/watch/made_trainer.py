"""A made-up trainer in verl's launch form: it saves its step, goes on from it, and dies until a setting is changed."""

from __future__ import annotations

import json
from pathlib import Path

PROGRAM = '''
import os, sys
from pathlib import Path
said = dict(word.lstrip("+").split("=", 1) for word in sys.argv[1:])
folder = Path(said["trainer.default_local_dir"])
saved = folder / "latest_checkpointed_iteration.txt"
done = int(saved.read_text()) if saved.exists() and said.get("trainer.resume_mode", "auto") == "auto" else 0
print(f"begins behind step {done} in {os.getcwd()} with {os.environ.get('OF_THE_USER')}", flush=True)
for step in range(done + 1, 6):
    if step == 4 and said.get("actor_rollout_ref.model.use_fused_kernels") != "True":
        sys.exit("""TORCH""")
    print(f"step:{step} - actor/grad_norm:0.1", flush=True)
    if step % int(said["trainer.save_freq"]) == 0:
        folder.mkdir(exist_ok=True)
        saved.write_text(str(step))
sys.exit(0)
'''
TORCH = (
    "Traceback (most recent call last):\n"
    '  File "/opt/verl/verl/workers/actor/dp_actor.py", line 300, in update_policy\n'
    "    loss.backward()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 79.38 GiB "
    "of which 1.10 GiB is free. Including non-PyTorch memory, this process has 78.27 GiB memory in use. Of the "
    "allocated memory 76.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
)
DIED = "step:3 - actor/grad_norm:0.1\n" + TORCH
SCRIPT = """#!/bin/bash
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=256 data.max_prompt_length=1024 data.max_response_length=3072 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
    actor_rollout_ref.model.enable_gradient_checkpointing=True \\
    actor_rollout_ref.actor.ppo_mini_batch_size=128 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=16 \\
    actor_rollout_ref.rollout.name=vllm \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.5 \\
    actor_rollout_ref.rollout.n=8 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1 trainer.save_freq=2 \\
    trainer.default_local_dir=checkpoints
"""


def put_trainer(folder: Path, script: str = SCRIPT) -> Path:
    """The trainer as a module of `folder`, and its launch script, which is returned."""
    package = folder / "verl" / "trainer"
    package.mkdir(parents=True)
    (package / "main_ppo.py").write_text(PROGRAM.replace("TORCH", TORCH))
    (folder / "run.sh").write_text(script)
    return folder / "run.sh"


def put_record(folder: Path, output: str, code: int = 1) -> Path:
    """The record of a run that printed this and ended."""
    folder.mkdir()
    lines = [{"v": 1, "began": 1.7e9, "command": ["bash", "run.sh"]}, {"t": 40, "end": {"code": code}}]
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "output.log").write_text(output)
    return folder
