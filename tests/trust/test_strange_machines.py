"""Machines that are seldom at hand: each is described for what it is, nothing fails, nothing is made up."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.machine import measure as measuring
from advisor.machine.inventory import Gpu, GpuProcess, Host
from advisor.machine.live import NEVER, Gauges
from advisor.machine.nvml import NvmlReader
from advisor.machine.processes import leftovers
from advisor.tui.gauge_strip import strip
from advisor.tui.ui_text import plain
from tests.heavy import sampled
from tests.machine.fake_nvml import Card, FakeNvml
from tests.machine_file import read_machine_file
from tests.stories.told import STORIES, enter

from .strange_machines import ELSEWHERE, MACHINES, Strange, shown

strange_machines = pytest.mark.parametrize("strange", MACHINES, ids=lambda strange: strange.name)
STORY = STORIES["easyr1"]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Strange], Path]:
    """Be at a strange machine: the commands measure it in place of this one."""

    def be(strange: Strange) -> Path:
        (tmp_path / "root").mkdir()
        root = strange.root(tmp_path / "root")
        measure = partial(measuring.measure, nvml=strange.nvml(), root=root)
        monkeypatch.setattr(measuring, "measure", measure)
        monkeypatch.setattr("advisor.request.measure", measure)
        return root

    return be


@strange_machines
def test_the_machine_is_described_as_it_is(strange, at, capsys):
    at(strange)
    assert main(["machine"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in strange.says:
        assert words in text
    assert len(text.split("Not known")[-1]) < 800, "alike things are said once"


@strange_machines
def test_its_description_is_json_that_is_read_back(strange, at, capsys, tmp_path):
    machine = strange.measured(at(strange))
    assert main(["machine", "--format", "json"]) == 0
    told = capsys.readouterr().out
    file = tmp_path / "machine.json"
    file.write_text(told)
    again = read_machine_file(file)
    assert [(gpu.index, gpu.name, gpu.total_bytes, gpu.mig, gpu.problem) for gpu in again.gpus] == [
        (gpu.index, gpu.name, gpu.total_bytes, gpu.mig, gpu.problem) for gpu in machine.gpus
    ]
    assert len(again.usable) == len(machine.usable)
    assert (again.host.total_bytes, again.host.limit_bytes) == (machine.host.total_bytes, machine.host.limit_bytes)
    assert "NaN" not in told
    assert "Infinity" not in told


@strange_machines
def test_the_gauges_show_it_and_the_strip_fits_one_line(strange, tmp_path):
    snapshot = strange.polled(strange.root(tmp_path), 1.0, 2.5, 4.0)
    text = shown(snapshot)
    for words in strange.gauges:
        assert words in text
    for width in (58, 80, 120):
        assert len(plain(strip(snapshot, "", width))) <= width


@pytest.mark.parametrize("strange", sampled(MACHINES, range(0, len(MACHINES), 4)), ids=lambda strange: strange.name)
def test_a_run_is_diagnosed_on_it(strange, at, tmp_path, monkeypatch, capsys):
    enter(STORY, tmp_path / "story", monkeypatch)
    at(strange)
    assert main(["diagnose", STORY.script, "--log", STORY.log, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["crash"]["verdict"] == "oom"
    assert main(["estimate", STORY.script, "--format", "json"]) in (0, 3)


@pytest.mark.parametrize("strange", MACHINES[:: len(MACHINES) - 1], ids=lambda strange: strange.name)
def test_the_demonstration_is_of_no_machine(strange, at, capsys):
    at(strange)
    assert main(["diagnose", "--demo"]) == 0
    assert "Host RAM ran out" in capsys.readouterr().out


@pytest.mark.parametrize("strange", [one for one in MACHINES if one.usable], ids=lambda strange: strange.name)
def test_a_card_that_no_run_can_have_stays_listed_and_is_not_counted(strange, at, tmp_path, monkeypatch, capsys):
    enter(STORY, tmp_path / "story", monkeypatch)
    root = at(strange)
    assert len(strange.measured(root).usable) == strange.usable
    main(["estimate", STORY.script])
    text = " ".join(capsys.readouterr().out.split())
    assert f"  {strange.usable} × NVIDIA".strip() in text
    assert f"The launch asks for 8 GPUs on each node, the machine has {strange.usable}" in text


# --- the driver ------------------------------------------------------------------------------------------------------


class Hanging(FakeNvml):
    """A driver that never answers, as where a card has fallen off the bus in the midst of a call."""

    def nvmlInit(self) -> None:  # noqa: N802
        time.sleep(60)


def test_a_driver_that_hangs_costs_a_while_and_a_sentence(tmp_path):
    begun = time.monotonic()
    machine = measuring.measure(nvml=Hanging(Card()), environ={}, root=tmp_path, patience=0.1)
    assert time.monotonic() - begun < 5
    assert any("the driver did not answer in time" in problem for problem in machine.problems)


def test_gauges_that_hang_are_not_shown_as_if_they_were_fresh(tmp_path):
    snapshot = MACHINES[3].polled(tmp_path)
    text = shown(snapshot.unanswered(61.0))
    assert "does not answer; last read 1m ago" in text
    assert "the driver did not answer in time" in text
    assert "the driver did not answer in time" in shown(NEVER.unanswered(61.0))


def test_a_card_lost_while_it_is_watched_keeps_its_last_numbers_and_comes_back(tmp_path):
    nvml = FakeNvml(Card(uuid="a"), Card(uuid="b"))
    gauges = Gauges(NvmlReader(nvml), host=Host)
    assert [gauge.stale for gauge in gauges.poll(0.0).gpus] == [False, False]
    nvml.cards[1].lost = True
    assert [gauge.stale for gauge in gauges.poll(2.0).gpus] == [False, True]
    assert gauges.poll(4.0).gpus[1].gpu.used_bytes == nvml.cards[1].used
    nvml.cards[1].lost = False
    assert [gauge.stale for gauge in gauges.poll(6.0).gpus] == [False, False]


# --- clocks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [-86400.0, 86400.0 * 365])
def test_a_clock_that_jumps_moves_no_gauge_and_makes_no_age_negative(jump, tmp_path, monkeypatch):
    strange = next(one for one in MACHINES if "host's process ids" in one.name)
    before = strange.measured(strange.root(tmp_path))
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + jump)
    after = strange.measured(tmp_path)
    assert before.problems == after.problems
    gauges = Gauges(NvmlReader(FakeNvml(Card())), host=Host)
    assert gauges.poll(10.0).taken == 10.0
    assert gauges.poll(9.0).taken == 10.0, "a clock that goes back is no reason to poll again"
    assert shown(gauges.poll(20.0)).count("0s") == 0
    future = [GpuProcess(ELSEWHERE, 5, "ana", time.time() + 9000, 1, "python3 train.py")]
    assert leftovers([Gpu(0, "x", 9, 9, processes=tuple(future))], time.time())[0].age_seconds == 0.0


# --- the environment, in processes of their own ---------------------------------------------------------------------

BARE = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
CACHE = {"XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
"""What was compiled once, for all but two environments: those have nowhere to keep anything."""
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "no home": {},
    "a home that is not there": {**CACHE, "HOME": "/proc/nonexistent"},
    "a home that cannot be written": {"HOME": "/proc"},
    "an empty home": {**CACHE, "HOME": "", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""},
    "no locale": {**CACHE, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "POSIX and an ASCII stdout": {**CACHE, "LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii:strict"},
    "a Chinese locale and a Latin stdout": {**CACHE, "LANG": "zh_CN.UTF-8", "PYTHONIOENCODING": "latin-1:strict"},
    "a locale that is not installed": {**CACHE, "LC_ALL": "xx_YY.KOI8-R"},
}


TWICE = ["import sys; from advisor.cli import main; sys.exit(main(['machine']) or main(['diagnose', '--demo']))"]


def advisor(
    *words: str,
    environ: dict[str, str] | None = None,
    cwd: Path | None = None,
    limit: int | None = None,
    program: str = "-madvisor",
):
    """The program in a process of its own. `limit`: bytes of address space."""
    narrow = (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None
    own = BARE | ({"HOME": os.environ.get("HOME", "/"), **CACHE} if environ is None else environ)
    command = [sys.executable, program, *words]
    own["PYTHONPATH"] = str(Path(__file__).parents[2])
    return subprocess.run(command, capture_output=True, env=own, cwd=cwd, preexec_fn=narrow, timeout=60)


def by_shell(command: str, cwd: Path):
    environ = BARE | CACHE | {"HOME": "/proc/nonexistent", "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(["sh", "-c", command], capture_output=True, env=environ, cwd=cwd, timeout=60)


@pytest.mark.parametrize("name", sampled(ENVIRONMENTS, (2, 5, 6)))
def test_the_environment_may_be_as_it_likes(name, tmp_path):
    done = advisor(*TWICE, environ=ENVIRONMENTS[name], cwd=tmp_path, program="-c")
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout) > 2000
    if "ASCII" in name or "no locale" in name:
        assert done.stdout.isascii()
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_be_written_loses_nothing_but_what_would_be_kept_there(tmp_path):
    done = advisor(
        "fix", "--demo", "-o", str(tmp_path / "run.sh"), environ=CACHE | {"HOME": "/proc", "XDG_STATE_HOME": "/proc"}
    )
    assert done.returncode == 0
    assert (tmp_path / "run.sh").stat().st_size > 100


@pytest.mark.parametrize("words", [["machine"], ["fix", "--demo", "-o", "-"]], ids=" ".join)
def test_half_a_gigabyte_is_enough(words):
    done = advisor(*words, limit=512 * 2**20)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) > 200


def test_less_than_python_needs_is_said_in_a_sentence():
    done = advisor("diagnose", "--demo", limit=64 * 2**20)
    assert done.returncode == 1
    if b"Traceback" not in done.stderr:  # where Python itself could start
        assert b"there is too little memory here" in done.stderr


@pytest.mark.parametrize("number", [0, 1, 2], ids=["stdin", "stdout", "stderr"])
def test_a_stream_that_the_caller_closed_is_no_fault(number, tmp_path):
    done = by_shell(
        f"{sys.executable} -m advisor fix --demo -o run.sh {number}{'<' if number == 0 else '>'}&-", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert b"fault" not in done.stderr
    assert (tmp_path / "run.sh").read_bytes().startswith(b"#!")


def test_output_that_finds_no_room_is_said_in_a_sentence():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "advisor", "diagnose", "--demo", "--format", "json"],
            stdout=full, stderr=subprocess.PIPE, timeout=60,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.decode() == "rl-oom-advisor: the output could not be written: no space left on device\n"


def test_a_folder_that_is_gone_is_no_fault(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = by_shell(f"rmdir {gone}; {sys.executable} -m advisor machine", gone)
    assert (done.returncode, done.stderr) == (0, b"")
