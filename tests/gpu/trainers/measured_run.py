"""Runs a training script unchanged and writes what torch's allocator held at its fullest, phase by phase, as JSON.

`python measured_run.py SCRIPT RESULT`: bytes; a phase is that of the last step of two, when all states exist.
"""

from __future__ import annotations

import functools
import json
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

peaks: dict[str, dict[str, int]] = {}
_open: list[str] = []


def _close(phase: str) -> None:
    """Take the peak since the last mark for the phase, and begin anew."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        held = peaks.setdefault(phase, {"allocated": 0, "reserved": 0})
        held["allocated"] = max(held["allocated"], torch.cuda.max_memory_allocated())
        held["reserved"] = max(held["reserved"], torch.cuda.max_memory_reserved())
        torch.cuda.reset_peak_memory_stats()


def timed(owner: Any, name: str, phase: str) -> None:
    """Let a method's memory count for its phase; what it calls may count for another."""
    method: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(method)
    def measured(*args: Any, **kwargs: Any) -> Any:
        _close(_open[-1] if _open else "model_load")
        _open.append(phase)
        try:
            return method(*args, **kwargs)
        finally:
            _close(_open.pop())

    setattr(owner, name, measured)


def main() -> int:
    """Run it; the result is written whether it ends or dies."""
    script, result = sys.argv[1], Path(sys.argv[2])
    import transformers
    from accelerate.optimizer import AcceleratedOptimizer

    timed(transformers.Trainer, "training_step", "actor_update")
    timed(AcceleratedOptimizer, "step", "optimizer_step")
    import trl

    for trainer in (trl.GRPOTrainer, trl.RLOOTrainer):
        timed(trainer, "_generate", "rollout_generate")
        timed(trainer, "_generate_and_score_completions", "log_prob")
    sys.argv = [script]
    died = ""
    try:
        runpy.run_path(script, run_name="__main__")
    except BaseException as fault:
        died = f"{type(fault).__name__}: {fault}"
        raise
    finally:
        _close(_open[-1] if _open else "end")
        result.write_text(json.dumps({"peaks": peaks, "died": died[:2000]}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
