"""Lets TRL's real GRPOTrainer die of a real memory limit and come back: `python -m tests.watch.real_death PYTHON`.

PYTHON: an interpreter with `trl` and a CPU torch. The kernel kills; nothing is made up but the model and the data.
Four runs: without a limit, with one (its losses must be those of the first, step by step), with a reward function that
leaks (foreseen, started again once, then told as a leak), and with one that makes answers grow (foreseen).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.units import MIB
from advisor.watch.listing import list_records
from tests.watch.memory_group import memory_group
from tests.watch.terminals import WATCH

HERE = Path(__file__).parent / "real_trl"
LIMIT, LEAK_LIMIT = 1100 * MIB, 1300 * MIB
LEAK_STEPS = 60
LETTERS, LONGEST, LONGER_STEPS = "acefnotu0123456789:\u0120", 1024, 40
"""What the model of the run with growing answers knows, the most tokens of an answer there, and its steps."""
_COMPARED = ("step", "loss", "grad_norm", "reward", "learning_rate", "num_tokens")
_SAID = "rl-oom-advisor watch: "


class Checks:
    """What held and what did not, said as it is found."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, holds: bool, what: str) -> None:
        self.failed += not holds
        print(f"  {'ok ' if holds else 'NOT'} {what}", flush=True)


def _history(folder: Path) -> list[dict[str, Any]]:
    """What the trainer logged of every step, by its last checkpoint."""
    last = max(folder.glob("out/checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    found: list[dict[str, Any]] = json.loads((last / "trainer_state.json").read_text())["log_history"]
    return [{name: entry.get(name) for name in _COMPARED} for entry in found if "loss" in entry]


def _prepared(folder: Path, python: str, steps: int | None = None) -> Path:
    folder.mkdir()
    for name in ("train_grpo.py", "run.sh"):
        shutil.copy(HERE / name, folder)
    shutil.copytree(folder.parent / "model", folder / "model")
    script = folder / "run.sh"
    text = script.read_text().replace('"$TRL_PYTHON"', python)
    script.write_text(text if steps is None else text.replace("--max_steps 16", f"--max_steps {steps}"))
    return script


def _watched(folder: Path, limit: int, **environment: str) -> tuple[int, list[str], list[dict[str, Any]], int]:
    """`watch --retry` inside a group: exit code, what it said, its events, and the most that was in use."""
    argv = [*WATCH, "--retry", "--alert", "95%", "--notify", f"tee -a {folder}/events.txt", "-o", "record"]
    with memory_group(limit) as group:
        root = str(Path(__file__).parents[2])
        env = {**os.environ, "PYTHONPATH": root, "XDG_CONFIG_HOME": str(folder / "config"), **environment}
        done = group.run([*argv, "--", "bash", "run.sh"], cwd=folder, env=env)
        peak = group.peak
    said = [part.split(_SAID, 1)[1] for part in done.stderr.replace("\r", "\n").split("\n") if _SAID in part]
    events = [json.loads(line) for line in (folder / "events.txt").read_text().splitlines()]
    return done.returncode, said, events, peak


def _told(said: Sequence[str], folder: Path) -> None:
    for sentence in said:
        print(f"    {sentence.replace(str(folder), '.')}")
    for record in list_records(folder):
        changed = f"; changed: {', '.join(record.changed)}; from step {record.from_step}" if record.after else ""
        print(f"    attempt {record.attempt}: {record.ended}, step {record.step}{changed}")


def comes_back(root: Path, python: str, check: Checks) -> None:
    """Killed, changed, resumed, ended; and the same losses as the run that was never killed."""
    print("A run that the kernel kills, beside the same run without a limit")
    well = root / "without"
    _prepared(well, python)
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(["bash", "run.sh"], cwd=well, env=environment, check=True, capture_output=True)
    folder = root / "killed"
    original = _prepared(folder, python).read_bytes()
    code, said, events, peak = _watched(folder, LIMIT)
    _told(said, folder)
    first, *others = list_records(folder)
    kernel = (folder / "record" / "kernel.log").read_text()
    check("Memory cgroup out of memory: Killed process" in kernel, "the kernel killed it, as its own log says")
    check((first.verdict, first.memory) == ("oom", "host"), "the verdict is host RAM")
    check(code == 0 and len(others) == 1, f"the second attempt ended well, the exit code is its own ({code})")
    check((folder / "run.sh").read_bytes() == original, "the original script is untouched")
    check(peak <= LIMIT, f"at most {peak // MIB} of {LIMIT // MIB} MiB were in use")
    mine, undisturbed = _history(folder), _history(well)
    steps = [entry["step"] for entry in undisturbed]
    same = sum(one == other for one, other in zip(mine, undisturbed, strict=False))
    check(
        mine == undisturbed, f"{same} of {len(steps)} steps have the same {', '.join(_COMPARED[1:])}, to the last bit"
    )
    check([one["event"] for one in events][-1] == "end", f"{len(events)} events")


def leaks(root: Path, python: str, check: Checks) -> None:
    """A reward function that keeps 30 MiB a step: foreseen, one retry, then told."""
    print("A reward function that keeps 30 MiB in every step")
    folder = root / "leaks"
    _prepared(folder, python, steps=LEAK_STEPS)
    code, said, events, _ = _watched(folder, LEAK_LIMIT, LEAK_MIB="30", TABLE_MIB="50")
    _told(said, folder)
    _, *others = list_records(folder)
    foreseen = [one for one in events if one["event"] == "forecast" and one["attempt"] == 1]
    check(bool(foreseen), "it was foreseen before the first death")
    if foreseen:
        died = next(one["time"] for one in events if one["event"] == "death")
        soon, late = foreseen[0]["steps_left"]
        left = f"{died - foreseen[0]['time']:.0f} s ahead, {soon:g} to {late:g} steps by the forecast"
        check(foreseen[0]["time"] < died, left)
    check(len(others) == 1, f"{len(others)} retry")
    check(any("a leak; more retries only delay it" in sentence for sentence in said), "then it says that it is a leak")
    check(code == 137, f"exit code {code}, the command's")


def grows_longer(root: Path, python: str, check: Checks) -> None:
    """A reward for length: the trainer learns it, and that answers grow toward their cap is told while they do."""
    print("A reward function that pays for length")
    folder = root / "longer"
    script = _prepared(folder, python, steps=LONGER_STEPS)
    made = {**os.environ, "LETTERS": LETTERS}
    argv = [python, str(HERE / "make_model.py"), str(folder / "model")]
    subprocess.run(argv, check=True, capture_output=True, env=made)
    text = script.read_text().replace("--max_completion_length 96", f"--max_completion_length {LONGEST}")
    script.write_text(text.replace("--dataloader_num_workers 4", "--dataloader_num_workers 1"))
    code, said, events, _ = _watched(folder, 4 * LEAK_LIMIT, LONGER="1", TABLE_MIB="1")
    _told(said, folder)
    told = [one for one in events if one["event"] == "longer_answers"]
    check(len(told) == 1 and told[0]["cap"] == LONGEST, "it was told once, with the cap of the script")
    check(code == 0, "the run ended well")


def main(arguments: Sequence[str]) -> int:
    """1 where something did not hold."""
    python = os.path.abspath(arguments[0])
    asked = "import torch, transformers, trl; print(torch.__version__, transformers.__version__, trl.__version__)"
    versions = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    print("torch {}, transformers {}, trl {}".format(*versions))
    check = Checks()
    with tempfile.TemporaryDirectory(prefix="real-death-") as name:
        root = Path(name)
        subprocess.run([python, str(HERE / "make_model.py"), str(root / "model")], check=True, capture_output=True)
        comes_back(root, python, check)
        leaks(root, python, check)
        grows_longer(root, python, check)
    print("everything held" if not check.failed else f"{check.failed} did not hold")
    return bool(check.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
