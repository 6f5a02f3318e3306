"""How soon the app shows a verdict, and what it costs while it idles, beside public terminal apps in the same run.

    python -m tests.benchmarks.app_speed [--rounds N] [--idle SECONDS] [--nvml FOLDER] [--peer NAME=COMMAND]...
    python -m tests.benchmarks.app_speed --budget | --steps

`--budget` measures only what the start may cost, and exits 1 where a median is above `BUDGETS`. `--steps` tells when
the first frame, the verdict's sentence and the whole screen with its keys stand, for the demo, a short and a long log,
by the clock and in processor time, which a busy machine changes little.

Everything is started the same way: in a pty of 80 columns and 24 lines, as `TERM=xterm-256color`; the programs take
turns. The log has 200 MB and is made anew in a temporary folder. A frame counts as shown when the words that make it
useful have come through the pty: for the app the verdict and the machine, for a peer the words given behind `@`
(`--peer harlequin=/opt/hq/bin/harlequin@Run Query`). `--nvml` names a folder with a stand-in for libnvidia-ml.so.1.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from .made_log import made_log

OURS = "rl-oom-advisor"
MEGABYTES, COLUMNS, LINES = 200, 80, 24
FIRST_FRAME, VERSION = "first frame", "--version"
BUDGETS = {FIRST_FRAME: 0.4, VERSION: 0.08}
"""Seconds on a quiet machine: to the frame that has the breadcrumb; of a command that loads nothing but argparse."""
LONGEST = 20.0
_CONTROL = re.compile(rb"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-9;?=>< ]*[a-zA-Z]|[()][A-B0-2]|.)")
SCRIPT = """\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct actor_rollout_ref.rollout.n=8 \\
    actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8
"""


@dataclass(frozen=True)
class Program:
    """What is started, and the words that make its first frame useful."""

    name: str
    command: list[str]
    awaited: tuple[str, ...]


class InPty:
    """A program in a pty of its own. What it writes is kept and counted."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.begun = time.perf_counter()
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.written = b""

    def read(self, until: float) -> bool:
        """What comes before `until`; False where the program has gone."""
        ready, _, _ = select.select([self.end], [], [], max(0.0, until - time.perf_counter()))
        if not ready:
            return True
        try:
            piece = os.read(self.end, 1 << 16)
        except OSError:
            return False
        self.written += piece
        return bool(piece)

    def shown(self) -> str:
        """The words written so far, without control sequences."""
        return re.sub(r"\s+", " ", _CONTROL.sub(b" ", self.written).decode(errors="replace"))

    def leave(self) -> None:
        """End it, kindly first."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.kill(self.pid, sign)
                for _ in range(40):
                    if os.waitpid(self.pid, os.WNOHANG)[0]:
                        os.close(self.end)
                        return
                    self.read(time.perf_counter() + 0.05)
            except (ChildProcessError, ProcessLookupError):
                return


def until_shown(program: Program, environment: dict[str, str]) -> float | None:
    """Seconds from the start to the useful frame; None where it never came."""
    running = InPty(program.command, environment)
    while time.perf_counter() < running.begun + LONGEST:
        if not running.read(running.begun + LONGEST):
            break
        if all(words in running.shown() for words in program.awaited):
            taken = time.perf_counter() - running.begun
            running.leave()
            return taken
    running.leave()
    return None


def idling(program: Program, environment: dict[str, str], seconds: float) -> tuple[float, float, float]:
    """(percent of a core, kB/s to the terminal, MB resident) after the program has settled."""
    running = InPty(program.command, environment)
    while time.perf_counter() < running.begun + 6:
        running.read(running.begun + 6)
    family = psutil.Process(running.pid)
    before, written, begun = family.cpu_times(), len(running.written), time.perf_counter()
    while time.perf_counter() < begun + seconds:
        running.read(begun + seconds)
    after, taken = family.cpu_times(), time.perf_counter() - begun
    busy = after.user + after.system - before.user - before.system
    figures = (100 * busy / taken, (len(running.written) - written) / taken / 1000, family.memory_info().rss / 1e6)
    running.leave()
    return figures


STEPS = {FIRST_FRAME: "Machine", "verdict": "ran out", "whole screen": "enter plan"}
"""What is seen of the start, one after the other → words by which it is known to stand."""


def steps_of(program: Program, environment: dict[str, str]) -> dict[str, tuple[float, float]]:
    """Step → seconds by the clock and of the processor until it stood; without those that never did."""
    running, seen = InPty(program.command, environment), {}
    family = psutil.Process(running.pid)
    while time.perf_counter() < running.begun + LONGEST and len(seen) < len(STEPS):
        if not running.read(running.begun + LONGEST):
            break
        shown = running.shown()
        for step, words in STEPS.items():
            if step not in seen and words in shown:
                used = family.cpu_times()
                seen[step] = time.perf_counter() - running.begun, used.user + used.system
    running.leave()
    return seen


def steps(folder: Path, environment: dict[str, str], rounds: int) -> None:
    """The steps of three starts, in turns."""
    whole = b"".join(made_log(MEGABYTES))
    (folder / "long.log").write_bytes(whole)
    (folder / "short.log").write_bytes(whole[:20_000] + b"\n" + whole[-40_000:])
    (folder / "run.sh").write_text(SCRIPT)
    with_log = [OURS, str(folder / "run.sh"), "--gpus", "8xA100-80GB", "--log"]
    programs = [
        Program("demo", [OURS, "--demo"], ()),
        Program("60 kB log", [*with_log, str(folder / "short.log")], ()),
        Program(f"{MEGABYTES} MB log", [*with_log, str(folder / "long.log")], ()),
    ]
    found = [(program, steps_of(program, environment)) for _ in range(rounds) for program in programs]
    for program in programs:
        for step in STEPS:
            times = [seen[step] for which, seen in found if which is program and step in seen]
            clock, used = [one for one, _ in times], [one for _, one in times]
            print(
                told(f"{program.name}: {step}", clock)
                + (f"; processor {1000 * min(used):.0f} ms at least" if used else "")
            )


def headless(command: list[str], environment: dict[str, str]) -> float:
    """Seconds of a command that needs no terminal."""
    begun = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - begun


def told(name: str, times: list[float]) -> str:
    """The median, the least and the most, in milliseconds."""
    if not times:
        return f"{name:34} never showed it"
    low, middle, high = (1000 * pick(times) for pick in (min, statistics.median, max))
    return f"{name:34} {middle:6.0f} ms median ({low:.0f}-{high:.0f} of {len(times)})"


def peers(given: list[str]) -> list[Program]:
    """NAME=COMMAND@WORDS."""
    found = []
    for text in given:
        name, _, rest = text.partition("=")
        command, _, words = rest.partition("@")
        found.append(Program(name, shlex.split(command), (words,) if words else ()))
    return found


def starts(folder: Path, given: list[Program], environment: dict[str, str], rounds: int) -> None:
    """First useful frames, one program after the other in each round."""
    log, script = folder / "train.log", folder / "run.sh"
    log.write_bytes(b"".join(made_log(MEGABYTES)))
    script.write_text(SCRIPT)
    ours = Program(
        f"{OURS} (200 MB log)",
        [OURS, str(script), "--log", str(log), "--gpus", "8xA100-80GB"],
        ("GPU memory ran out", "8 × A100-80GB"),
    )
    programs = [ours, *given]
    times: dict[str, list[float]] = {program.name: [] for program in programs}
    for _ in range(rounds):
        for program in programs:
            taken = until_shown(program, environment)
            times[program.name] += [taken] if taken is not None else []
    for program in programs:
        print(told(program.name, times[program.name]))
    own = statistics.median(times[ours.name]) if times[ours.name] else float("nan")
    for program in given:
        if times[program.name]:
            print(f"  {program.name} takes {statistics.median(times[program.name]) / own:.2f} times as long")


def answers(environment: dict[str, str], rounds: int) -> None:
    """Commands without a screen."""
    demo = [OURS, "diagnose", "--demo"]
    for command in ([OURS, "--version"], [OURS, "--help"], demo):
        print(told(" ".join(command), [headless(command, environment) for _ in range(rounds)]))


def environment_of_a_terminal() -> dict[str, str]:
    """Ours, with our own program first."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "TERM": "xterm-256color", "PATH": path}


def budget(environment: dict[str, str], rounds: int) -> dict[str, float]:
    """Median seconds of what has a budget."""
    frame = Program(FIRST_FRAME, [OURS, "--demo"], ("Machine", "Crash"))
    shown = [until_shown(frame, environment) or LONGEST for _ in range(rounds)]
    version = [headless([OURS, "--version"], environment) for _ in range(rounds)]
    for name, times in ((FIRST_FRAME, shown), (VERSION, version)):
        print(f"{told(name, times)}, of {1000 * BUDGETS[name]:.0f}")
    return {FIRST_FRAME: statistics.median(shown), VERSION: statistics.median(version)}


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--idle", type=float, default=20.0)
    parser.add_argument("--nvml")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--budget", action="store_true")
    parser.add_argument("--steps", action="store_true")
    parsed = parser.parse_args()
    environment = environment_of_a_terminal()
    if parsed.nvml:
        environment["LD_LIBRARY_PATH"] = parsed.nvml
    if parsed.budget:
        taken = budget(environment, parsed.rounds)
        sys.exit(any(seconds > BUDGETS[name] for name, seconds in taken.items()))
    if parsed.steps:
        with tempfile.TemporaryDirectory() as folder:
            steps(Path(folder), environment, parsed.rounds)
        sys.exit()
    given = peers(parsed.peer)
    answers(environment, parsed.rounds)
    with tempfile.TemporaryDirectory() as folder:
        starts(Path(folder), given, environment, parsed.rounds)
        if parsed.idle:
            ours = Program(f"{OURS} (gauges)", [OURS, "--demo"], ())
            for program in (ours, *given):
                core, rate, size = idling(program, environment, parsed.idle)
                print(f"{program.name:34} idle: {core:.2f} % of a core, {rate:.2f} kB/s, {size:.0f} MB")


if __name__ == "__main__":
    main()
