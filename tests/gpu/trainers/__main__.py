"""Runs TRL's own trainers on the GPU of this machine, side by side as the card allows, and keeps their peaks.

`python -m tests.gpu.trainers FOLDER [--only TEXT] [--seconds N]` puts a JSON and a log of each run of runs.yaml there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.gpu.trainers.scripts import TrainerRun, make_model, runs

CARD_GIB = 70.0
"""What runs that stand side by side may take together: an H100's 79 GiB less contexts and a wrong guess."""


def main() -> int:
    """Exit 0 where every run left its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="TEXT[,TEXT]", help="runs whose name begins so")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where models and data lie, and stay")
    parser.add_argument("--seconds", type=float, default=3600.0, help="start none after so long")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    chosen = [run for run in runs() if run.name.startswith(tuple(asked.only.split(",")))]
    work = asked.keep or Path(tempfile.mkdtemp(dir="/dev/shm"))
    work.mkdir(parents=True, exist_ok=True)
    try:
        return measure(chosen, work, asked.folder.resolve(), asked.seconds)
    finally:
        if asked.keep is None:
            shutil.rmtree(work, ignore_errors=True)


def measure(chosen: list[TrainerRun], work: Path, results: Path, seconds: float) -> int:
    """Start runs while their guesses fit beside those that live; the largest first, those that die alone."""
    begun = time.monotonic()
    made = {run.model for run in chosen if (work / run.model / "config.json").exists()}
    waiting = sorted(chosen, key=lambda run: (run.gib >= CARD_GIB, -run.gib))
    living: dict[str, tuple[TrainerRun, subprocess.Popen[bytes]]] = {}
    while waiting or living:
        for name, (_, process) in list(living.items()):
            if process.poll() is not None:
                print(f"{time.monotonic() - begun:6.0f} s  {name}: exit {process.returncode}", flush=True)
                del living[name]
        used = sum(run.gib for run, _ in living.values())
        late = time.monotonic() - begun > seconds
        if late:
            waiting = []
        fitting = next((run for run in waiting if not living or used + run.gib <= CARD_GIB), None)
        if fitting is None:
            time.sleep(0.2)
            continue
        waiting.remove(fitting)
        if fitting.model not in made:
            make_model(fitting.model, work)
            made.add(fitting.model)
            print(f"{time.monotonic() - begun:6.0f} s  {fitting.model} made", flush=True)
        living[fitting.name] = (fitting, _started(fitting, work, results))
    (results / "about.json").write_text(json.dumps(_about()))
    return 0 if all((results / f"{run.name}.json").exists() for run in chosen) else 1


def _about() -> dict[str, Any]:
    """Card and libraries, for the table."""
    import torch

    card, size = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory
    libraries = {name: version(name) for name in ("trl", "transformers", "torch", "peft")}
    return {"card": card, "gpus": f"1x{card.split()[-1]}-{round(size / 1e9)}GB", "libraries": libraries}


def _started(run: TrainerRun, work: Path, results: Path) -> subprocess.Popen[bytes]:
    script = run.write(work)
    here = Path(__file__).with_name("measured_run.py")
    command = [sys.executable, str(here), script.name, str(results / f"{run.name}.json")]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(work / f"cache-{run.name}")}
    with (results / f"{run.name}.log").open("wb") as log:
        return subprocess.Popen(command, cwd=work, env=environment, stdout=log, stderr=subprocess.STDOUT)


if __name__ == "__main__":
    sys.exit(main())
