"""Has a driver library answer nonsense, and sees that nothing of it is told as a fact.

    python -m tests.trust.hostile_nvml FOLDER [N]

FOLDER holds a libnvidia-ml.so.1 that answers from the JSON file of $NVML_STUB_CONFIG ("count", "gpus", and for each
card or for all "total_mib", "used_mib", "name", "procs", "errors" …). N random machines (100 by default, four minutes)
go through `machine`, `machine --format json`, a machine file made of it, and every fifth through `watch`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ADVISOR = (sys.executable, "-m", "advisor")
NUMBERS = (
    *(0, -1, 1, 1e-9, 1e18, -1e18, 2**32, 2**63, 2**64, 1e308, 40960, True, None, "x"),
    *([], [[0, 1]], [[0, 1], [0, 2]]),
)
TEXTS = (
    *("", "\x1b]52;c;AAAA\x07evil", "A" * 5000, "\u202egpu", "NVIDIA A100-SXM4-40GB", "%s%n{}", "[red]x[/red]"),
    *("a\nb\rc", "<b>&", "../../x"),
)
READINGS = (
    *("total_mib", "reserved_mib", "used_mib", "util", "temp", "power_mw", "power_limit_mw", "ecc_errors", "mig_mode"),
    *("lost", "lost_handle"),
)
CALLS = ("GetMemoryInfo", "GetName", "GetUUID", "GetComputeRunningProcesses", "GetTemperature")
BOUNDS = {"temperature": (-50, 200), "power_watts": (0, 10_000), "ecc_errors": (0, 2**53), "total_bytes": (1, 2**46)}
SLOW_S = 20.0


def card(chance: random.Random) -> dict[str, Any]:
    """What a card answers."""
    told: dict[str, Any] = {name: chance.choice(NUMBERS) for name in READINGS if chance.random() < 0.4}
    told |= {name: chance.choice(TEXTS) for name in ("name", "uuid") if chance.random() < 0.5}
    if chance.random() < 0.5:
        pids = (0, 1, -1, "self", 2**31, 2**32 - 1)
        told["procs"] = [
            {"pid": chance.choice(pids), "mib": chance.choice(NUMBERS)} for _ in range(chance.choice((0, 1, 3, 64)))
        ]
    if chance.random() < 0.3:
        told["errors"] = {f"nvmlDevice{chance.choice(CALLS)}": chance.choice((1, 2, 3, 4, 6, 9, 15, 18, 999, -5))}
    if chance.random() < 0.2:
        sizes = [
            {"profile": chance.choice(TEXTS), "total_mib": chance.choice(NUMBERS)} for _ in range(chance.randrange(9))
        ]
        told["mig"] = {"instances": sizes}
    return told


def nonsense(machine: dict[str, Any]) -> Iterator[str]:
    """What is told of cards that no card can be."""
    for gpu in machine["gpus"]:
        total = gpu["total_bytes"]
        for name, (low, high) in BOUNDS.items():
            if gpu.get(name) is not None and not low <= gpu[name] <= high:
                yield f"{name} {gpu[name]}"
        held = [process["used_bytes"] for process in gpu["processes"] or ()]
        for size in (gpu["used_bytes"], gpu["reserved_bytes"], *held):
            if size is not None and not 0 <= size <= (total or 2**46):
                yield f"{size} of {total}"


def problems(folder: Path, environ: dict[str, str], watches: bool) -> Iterator[str]:
    """What did not hold on this machine."""
    commands = [["machine"], ["machine", "--format", "json"]]
    commands += [["watch", "-o", str(folder / "record"), "--", "sleep", "0.5"]] if watches else []
    for words in commands:
        begun = time.monotonic()
        done = subprocess.run([*ADVISOR, *words], env=environ, capture_output=True, check=False, timeout=120)
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode or "fault of the program" in said or time.monotonic() - begun > SLOW_S:
            yield f"{words[0]}: code {done.returncode}, {said[-200:]!r}"
        if any(ord(sign) < 32 and sign not in "\n\t" for sign in said) or "\u202e" in said:
            yield f"{words[0]}: a control sequence"
        if words[-1] == "json":
            (folder / "machine.json").write_bytes(done.stdout)
            yield from nonsense(json.loads(done.stdout))
    (folder / "run.sh").write_text("python3 -m verl.trainer.main_ppo data.train_batch_size=8\n")
    again = [*ADVISOR, "estimate", str(folder / "run.sh"), "--machine", str(folder / "machine.json")]
    done = subprocess.run(again, env=environ, capture_output=True, check=False, timeout=120)
    if b"must be" in done.stderr or b"fault of" in done.stderr:
        yield f"read again: {done.stderr[-200:]!r}"


def main(library: str, most: int = 100) -> int:
    """So many machines; on how many something did not hold."""
    chance, broken = random.Random(21), 0
    for number in range(most):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            told = {"count": chance.choice((0, -1, 1, 2, 8, 64, 1e9)), "driver_version": chance.choice(TEXTS)}
            told |= {"gpus": {str(each): card(chance) for each in range(4)}, **card(chance)}
            (folder / "node.json").write_text(json.dumps(told))
            here = {"PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": library, "NVML_STUB_CONFIG": str(folder / "node.json")}
            found = list(problems(folder, {**os.environ, **here}, number % 5 == 0))
        broken += bool(found)
        for one in sorted(set(found)):
            print(f"  {number}: {one}", flush=True)
    print(f"{most} machines; something did not hold on {broken}")
    return broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])) > 0)
