"""The whole box at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from advisor.machine.describe import described, merge
from advisor.machine.measure import measure
from advisor.machine.nvml import SENTENCES, Trouble
from advisor.units import GIB

from .facts import FACTS
from .fake_nvml import MIB, Card, FakeNvml


def root(tmp_path: Path) -> Path:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n")
    site = tmp_path / "env/lib/python3.10/site-packages/torch-2.5.1.dist-info"
    site.mkdir(parents=True)
    return tmp_path


def test_everything_is_measured_and_says_so(tmp_path: Path):
    root(tmp_path)
    machine = measure(nvml=FakeNvml(Card(), Card()), environ={"VIRTUAL_ENV": f"{tmp_path}/env"}, root=tmp_path)
    assert (machine.nodes, len(machine.gpus), machine.driver) == (1, 2, "550.54.15")
    assert (machine.host.total_bytes, machine.libraries) == (GIB, {"torch": "2.5.1"})
    assert machine.sources == dict.fromkeys(["nodes", "gpus", "host.total", "libraries.torch"], "measured") | (
        {"shm": "measured"} if machine.host.shm_bytes is not None else {}
    )


def test_no_nvml_is_a_problem_and_not_an_error(tmp_path: Path):
    machine = measure(nvml=FakeNvml(init_error=12), environ={}, root=root(tmp_path))
    assert SENTENCES[Trouble.LIBRARY_NOT_FOUND] in machine.problems
    assert machine.gpus == ()
    assert machine.host.total_bytes == GIB


def test_a_lost_card_is_a_problem_with_its_number(tmp_path: Path):
    machine = measure(nvml=FakeNvml(Card(), Card(lost=True)), environ={}, root=root(tmp_path))
    assert any(problem.startswith("GPU 1: GPU is lost") for problem in machine.problems)
    assert machine.gpu_bytes == (40960 - 433) * MIB, "the card that answers"


def test_memory_held_by_processes_of_another_container_is_said(tmp_path: Path):
    machine = measure(nvml=FakeNvml(Card(used=30_000 * MIB)), environ={}, root=root(tmp_path))
    assert any("29.30 GiB are held by processes that cannot be seen" in problem for problem in machine.problems)


def test_processes_left_on_the_cards_are_said(tmp_path: Path):
    machine = measure(nvml=FakeNvml(Card(processes=[(2**22 + 5, 500)])), environ={}, root=root(tmp_path))
    assert any(str(2**22 + 5) in problem for problem in machine.problems)


def test_a_card_that_hangs_hides_no_other_and_a_driver_that_hangs_is_still_that_of_this_box(tmp_path: Path):
    nvml, over = FakeNvml(Card(), Card(uuid="hangs"), Card()), threading.Event()
    asked = nvml.nvmlDeviceGetMemoryInfo
    nvml.nvmlDeviceGetMemoryInfo = lambda card, **words: (  # type: ignore[method-assign]
        over.wait(9) if card.uuid == "hangs" else asked(card, **words)
    )
    nvml.nvmlShutdown = lambda: over.wait(9)  # type: ignore[method-assign, assignment, return-value]
    machine = measure(nvml=nvml, environ={}, root=root(tmp_path), patience=0.6)
    assert [gpu.total_bytes is not None for gpu in machine.gpus] == [True, False, True]
    assert (SENTENCES[Trouble.TIMEOUT] in machine.gpus[1].problem, machine.mute) == (True, False)
    nvml.nvmlInit = lambda: over.wait(9)  # type: ignore[method-assign, assignment, return-value]
    machine = measure(nvml=nvml, environ={}, root=tmp_path, patience=0.6)
    over.set()
    told = merge(machine, described(FACTS, gpus="8xA100-40GB"))
    assert (len(told.gpus), told.host) == (8, machine.host), "its RAM counts"
    assert SENTENCES[Trouble.TIMEOUT] in told.problems


def test_nvml_is_let_go_again(tmp_path: Path):
    nvml = FakeNvml(Card())
    measure(nvml=nvml, environ={}, root=root(tmp_path))
    assert not nvml.is_open


def test_this_real_box_is_measured_quickly():
    measure()
    started = time.perf_counter()
    machine = measure()
    assert time.perf_counter() - started < 1.0
    assert machine.host.total_bytes
