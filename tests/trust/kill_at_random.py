"""Kills watch, fix and the app at random moments, and sees that nothing is lost, halved or left lying about.

    python -m tests.trust.kill_at_random [N]    (500 by default, a quarter of an hour on two cores)

A watched command runs to its end all the same, once, and its output is whole in the record; a script is the old or
the new one to the byte; every session that was saved can be read. Prints how many there were of each, and what did not
hold.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Set
from contextlib import suppress
from functools import cache
from pathlib import Path

from advisor.demo import demo_files
from advisor.session_store import load
from advisor.watch.listing import list_records
from advisor.watch.recording import RecordError, read_record
from tests.trust.pseudo_terminal import PseudoTerminal

ROOT = Path(__file__).parents[2]
HERE = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}
ADVISOR = (sys.executable, "-m", "advisor")
COMMAND = """
import os, sys, time
with open("ran", "a") as ran:
    ran.write("begun\\n")
for number in range(40):
    print("step:", number, flush=True)
    time.sleep(0.02)
with open("ran", "a") as ran:
    ran.write("ended\\n")
"""
LINES = "".join(f"step: {number}\n" for number in range(40))
_PATIENCE_S = 30.0


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait so long and kill it and nothing else; whether it still lived."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
        return False
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    return True


def watch(folder: Path, chance: random.Random) -> tuple[bool, list[str]]:
    """A watched command without a terminal."""
    words = [*ADVISOR, "watch", "-o", "record", "--", sys.executable, "-c", COMMAND]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(words, cwd=folder, env=HERE, start_new_session=True, **streams)
    killed = kill_after(process, chance.uniform(0.0, 1.6))
    ran, until = folder / "ran", time.monotonic() + _PATIENCE_S
    while ran.exists() and "ended" not in ran.read_text() and time.monotonic() < until:
        time.sleep(0.05)
    broken = []
    if ran.exists():
        broken += [f"the command ran as {ran.read_text().split()}"] * (ran.read_text() != "begun\nended\n")
        output = folder / "record" / "output.log"
        while output.read_text() != LINES and time.monotonic() < until:
            time.sleep(0.05)
        broken += ["its output is not whole"] * (output.read_text() != LINES)
    record = folder / "record"
    if (record / "samples.jsonl").exists():
        list_records(folder)
        with suppress(RecordError):  # empty: it was killed before its first line
            read_record(record)
    return killed, broken


FIX = (*ADVISOR, "fix", "run.sh", "--log", "train.log", "-o", "new.sh", "--gpus", "8xA100-40GB")


@cache
def fixed() -> tuple[bytes, bytes]:
    """Script and report as they are where nobody kills anything."""
    with tempfile.TemporaryDirectory() as name:
        plant(Path(name))
        subprocess.run(FIX, cwd=name, env=HERE, check=True, capture_output=True)
        return Path(name, "new.sh").read_bytes(), Path(name, "new.md").read_bytes()


def plant(folder: Path) -> bytes:
    """The demo's crash; the bytes of its script."""
    shutil.copy(demo_files().script, folder / "run.sh")
    shutil.copy(demo_files().log, folder / "train.log")
    return (folder / "run.sh").read_bytes()


def fix(folder: Path, chance: random.Random) -> tuple[bool, list[str]]:
    """A patched script and its report, written anew and over old ones."""
    before, force, wanted = plant(folder), chance.random() < 0.5, fixed()
    files = (folder / "new.sh", folder / "new.md")
    for path in files if force else ():
        path.write_text("old\n")
    words = [*FIX, *["--force"] * force]
    process = subprocess.Popen(words, cwd=folder, env=HERE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killed = kill_after(process, chance.uniform(0.2, 1.6))
    broken = ["the script changed"] * ((folder / "run.sh").read_bytes() != before)
    for path, new in zip(files, wanted, strict=True):
        found = path.read_bytes() if path.exists() else None
        broken += [f"{path.name} is neither old nor new"] * (found not in (b"old\n" if force else None, new))
    return killed, broken + left_in(folder, {"run.sh", "train.log", "new.sh", "new.md"})


def set_over_itself(folder: Path, chance: random.Random) -> tuple[bool, list[str]]:
    """A script that is replaced by its changed self, again and again until the kill."""
    script, values = folder / "run.sh", [b"data.train_batch_size=%d" % number for number in (8, 16)]
    line = b"python3 -m verl.trainer.main_ppo %b " + b"trainer.n_gpus_per_node=8 " * 3000 + b"\n"
    whole = [line % value for value in values]
    script.write_bytes(whole[0])
    code = "import sys\nfrom pathlib import Path\nfrom advisor.script.write import write_file\n"
    code += "texts = [Path(name).read_bytes() for name in sys.argv[1:]]\n"
    code += "while True:\n    for text in texts:\n        write_file(Path('run.sh'), text, force=True)\n"
    for number, text in enumerate(whole):
        (folder / f"text{number}").write_bytes(text)
    process = subprocess.Popen([sys.executable, "-c", code, "text0", "text1"], cwd=folder, env=HERE)
    killed = kill_after(process, chance.uniform(0.05, 0.6))
    broken = ["the script is neither old nor new"] * (script.read_bytes() not in whole)
    return killed, broken + left_in(folder, {"run.sh", "text0", "text1"})


def app(folder: Path, chance: random.Random) -> tuple[bool, list[str]]:
    """The app, in use: answers, switches, a saved script."""
    before = plant(folder)
    state = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder), "TMPDIR": str(folder)}
    terminal = PseudoTerminal([*ADVISOR, "run.sh", "--log", "train.log"], folder, {**HERE, **state})
    until = time.monotonic() + chance.uniform(0.3, 3.0)
    while time.monotonic() < until and terminal.process.poll() is None:
        with suppress(OSError):
            terminal.keys(chance.choice((b"\r", b" ", b"j", b"1", b"2", b"s", b"\x1b[B", b"f")))
            terminal.read(0.05)
    killed = terminal.process.poll() is None
    terminal.close()
    broken = ["the script changed"] * ((folder / "run.sh").read_bytes() != before)
    for path in (folder / "state").rglob("*"):
        if path.suffix == ".json" and path.parent.name == "sittings":
            try:
                load(path)
            except (OSError, ValueError) as error:
                broken.append(f"a session cannot be read: {error}")
    broken += [f"a fault: {path.read_text()[-300:]}" for path in folder.glob("rl-oom-advisor-*.txt")]
    return killed, broken + left_in(folder)


def left_in(folder: Path, known: Set[str] | None = None) -> list[str]:
    """What lies there that nobody asked for; `known` None: what is hidden or a part (the user names the others)."""
    found = [path for path in folder.rglob("*") if path.name.startswith(".") or path.suffix == ".part"]
    more = [
        path for path in folder.iterdir() if known is not None and path.name not in {*known, *(p.name for p in found)}
    ]
    return [f"left: {path.name}" for path in (*found, *more)]


KINDS: dict[str, Callable[[Path, random.Random], tuple[bool, list[str]]]] = {
    "watch": watch, "fix": fix, "set over itself": set_over_itself, "the app": app,
}  # fmt: skip


def main(most: int) -> int:
    """Go through the kinds in turn; the number of times that something did not hold."""
    chance, killed, broken = random.Random(21), Counter[str](), Counter[str]()
    for number in range(most):
        name = list(KINDS)[number % len(KINDS)]
        with tempfile.TemporaryDirectory() as folder:
            hit, found = KINDS[name](Path(folder), chance)
        killed[name] += hit
        for one in found:
            broken[f"{name}: {one}"] += 1
            print(f"  {number}, {name}: {one}", flush=True)
    told = ", ".join(f"{name} {count}" for name, count in killed.items())
    print(f"{most} runs, {killed.total()} killed while they lived ({told}); did not hold: {broken.total()}")
    return broken.total()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500) > 0)
