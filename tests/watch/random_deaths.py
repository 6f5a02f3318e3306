"""Kills watched runs at random and checks what must hold whatever dies: `python -m tests.watch.random_deaths [N]`.

The original script is untouched, never do two copies run, there is no endless loop, the exit code is the command's and
what is said is readable.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.watch.made_run import search_path, start, steps_in, write_script

KINDS = ("nothing", "watcher", "trainer", "both", "script", "checkpoint", "taken", "every", "cards", "disk")
"""What is killed or spoiled; "taken": the new script's name; "every": it dies of memory whatever is changed; "cards": a
stranger's process holds them all the while; "disk": it is full from a moment on."""
_DISK = "size=4m"
NVML = Path(__file__).parent / "made_nvml"
_MOST_STEPS = 30
_PATIENCE = 60.0


def one_death(kind: str, delay: float, folder: Path) -> list[str]:
    """Run one and spoil it after `delay` seconds; returns what did not hold."""
    script = write_script(folder)
    original = script.read_bytes()
    if kind == "taken":
        (folder / "run.fits-1.sh").write_text("somebody's own\n")
    strange = {"PYTHONPATH": os.pathsep.join([str(NVML), *search_path()])} if kind == "cards" else {}
    process = start(folder, MADE_SECONDS="0.05", MADE_DEATHS="always" if kind == "every" else "", **strange)
    time.sleep(delay)
    if kind == "script":
        original += b"# changed meanwhile\n"
        script.write_bytes(original)
    elif kind == "disk":
        fill(folder / "filler")
    elif kind == "checkpoint":
        with suppress(OSError):
            (folder / "ckpt" / "latest_checkpointed_iteration.txt").write_text("")
    for pid in _victims(kind, process.pid, folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _, said = process.communicate(timeout=_PATIENCE)
    _wait_for_trainer(folder)
    return list(_broken(kind, process.returncode, said, folder, original))


def fill(file: Path) -> None:
    """Write until the disk is full."""
    with suppress(OSError), file.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))


@contextmanager
def place_for(kind: str) -> Iterator[Path]:
    """A folder of its own; for a full disk a small file system. Raises CalledProcessError where none can be mounted."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        if kind == "disk":
            subprocess.run(["mount", "-t", "tmpfs", "-o", _DISK, "none", name], check=True, capture_output=True)
        try:
            yield Path(name)
        finally:
            if kind == "disk":
                subprocess.run(["umount", "--lazy", name], check=False)


def _victims(kind: str, watcher: int, folder: Path) -> list[int]:
    trainer = []
    with suppress(OSError, ValueError):
        trainer = [int((folder / "running.txt").read_text())]
    return {"watcher": [watcher], "trainer": trainer, "both": [watcher, *trainer]}.get(kind, [])


def _wait_for_trainer(folder: Path) -> None:
    end = time.monotonic() + _PATIENCE
    with suppress(OSError, ValueError):
        pid = int((folder / "running.txt").read_text())
        while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
            time.sleep(0.02)


def _broken(kind: str, code: int, said: str, folder: Path, original: bytes) -> list[str]:
    killed = kind in ("watcher", "both")
    steps = steps_in(folder) if (folder / "steps.txt").exists() else []
    wrong = []
    if (folder / "run.sh").read_bytes() != original:
        wrong.append("the original script changed")
    if (folder / "two.txt").exists():
        wrong.append("two copies ran")
    if len(steps) > _MOST_STEPS:
        wrong.append("it did not stop")
    if kind == "taken" and (folder / "run.fits-1.sh").read_text() != "somebody's own\n":
        wrong.append("a file of somebody else was overwritten")
    if killed and code not in (-signal.SIGKILL, 0, 1):
        wrong.append(f"exit code {code} of a watcher that was killed")
    if not killed and code not in ({0} if kind == "nothing" else {0, 1, 137, -signal.SIGKILL}):
        wrong.append(f"exit code {code}")
    if not killed and code == 0 and 6 not in steps:
        wrong.append("code 0 without the last step")
    if "what happened was written to" in said or "advisor/watch" in said:
        wrong.append("the watcher failed")
    return wrong


def main(arguments: Sequence[str]) -> int:
    """Run N of them and print a summary; 1 where something did not hold."""
    count, seed = int(arguments[0]) if arguments else 200, int(arguments[1]) if len(arguments) > 1 else 1
    chance, ran, wrong = random.Random(seed), Counter[str](), Counter[str]()
    for number in range(count):
        kind, delay = KINDS[number % len(KINDS)], chance.uniform(0.2, 2.5)
        with suppress(subprocess.CalledProcessError), place_for(kind) as folder:
            for sentence in one_death(kind, delay, folder):
                wrong[f"{kind}: {sentence}"] += 1
            ran[kind] += 1
    print(f"{ran.total()} runs (seed {seed}): " + ", ".join(f"{kind} {ran[kind]}" for kind in KINDS))
    print("\n".join(f"{times} x {what}" for what, times in wrong.items()) or "everything held")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
