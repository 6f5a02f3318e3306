"""Pretends to train: obeys a few of verl's settings, saves as verl does, and prints the death of one out of memory.

Death comes in step $MADE_DIES_AT while the logits of a pass are large ($MADE_DEATHS=always: whatever is set). Each
step's number goes to $MADE_STEPS.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

OOM = """Traceback (most recent call last):
  File "/opt/verl/trainer/ppo/ray_trainer.py", line 702, in fit
    actor_output = self.actor_rollout_wg.update_actor(batch)
ray.exceptions.RayTaskError(OutOfMemoryError): ray::WorkerDict.actor_rollout_update_actor() (pid=52204, ip=10.1.4.21)
  File "/opt/verl/workers/fsdp_workers.py", line 379, in update_actor
    metrics = self.actor.update_policy(data=data)
  File "/opt/verl/workers/actor/dp_actor.py", line 237, in update_policy
    entropy, log_prob = self._forward_micro_batch(micro_batch=data, temperature=temperature)
  File "/opt/verl/utils/torch_functional.py", line 107, in entropy_from_logits
    pd = torch.nn.functional.softmax(logits, dim=-1)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.13 GiB. GPU 1 has a total capacity of 79.15 GiB of \
which 9.61 GiB is free. Process 1190342 has 69.53 GiB memory in use. Of the allocated memory 66.04 GiB is allocated by \
PyTorch, and 1.87 GiB is reserved by PyTorch but unallocated."""


def main() -> int:
    given = dict(word.lstrip("+").partition("=")[::2] for word in sys.argv[1:])
    folder = Path(given["trainer.default_local_dir"])
    every, steps = int(given.get("trainer.save_freq", "-1")), int(given["trainer.total_training_steps"])
    lean = ("actor_rollout_ref.actor.use_dynamic_bsz", "actor_rollout_ref.model.use_fused_kernels")
    small = int(given["actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu"]) <= 16
    fits = (small or any(given.get(key) == "True" for key in lean)) and os.environ.get("MADE_DEATHS") != "always"
    latest = folder / "latest_checkpointed_iteration.txt"
    done = int(latest.read_text()) if latest.exists() and given.get("trainer.resume_mode") != "disable" else 0
    print(f"(main_task pid={os.getpid()}) Setting global step to {done}", flush=True)
    for step in range(done + 1, steps + 1):
        with open(os.environ["MADE_STEPS"], "a", encoding="utf-8") as file:
            file.write(f"{step}\n")
        if step == int(os.environ["MADE_DIES_AT"]) and not fits:
            print(OOM, file=sys.stderr, flush=True)
            return 1
        time.sleep(float(os.environ.get("MADE_SECONDS", "0")))
        print(f"step:{step} - actor/pg_loss:{1 / step:.3f} - timing_s/step:1.0", flush=True)
        if every > 0 and step % every == 0:
            saved = folder / f"global_step_{step}" / "actor"
            shutil.rmtree(saved.parent, ignore_errors=True)
            saved.mkdir(parents=True)
            (saved / "model.pt").write_text(str(step))
            latest.write_text(str(step))
    return 0


def alone() -> None:
    """Note where two copies run at once."""
    running = Path(os.environ["MADE_STEPS"]).with_name("running.txt")
    if running.exists() and Path(f"/proc/{running.read_text()}").exists():
        running.with_name("two.txt").write_text("two copies")
    running.write_text(str(os.getpid()))


if __name__ == "__main__":
    alone()
    sys.exit(main())
