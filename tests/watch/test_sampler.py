"""What is read how often: ten rows a second in the ring, all gauges where memory moves, few where it does not."""

from __future__ import annotations

import json
import os
import subprocess
from time import thread_time
from types import SimpleNamespace

import pytest

from advisor.units import GIB, MIB
from advisor.watch.gauges import Gauge
from advisor.watch.gpu_gauges import GpuGauges
from advisor.watch.process_tree import ProcessTree
from advisor.watch.progress import OutputProgress, Patterns
from advisor.watch.record import Record
from advisor.watch.recording import read_record, ring_rows
from advisor.watch.sampler import Sampler

TOTAL = 64 * GIB


class Host:
    """A host of which the test says what it holds, and that counts how often it is asked for everything."""

    groups = ()
    charged = 0
    first = 1

    def __init__(self):
        self.gauges = [Gauge("host", "host RAM", TOTAL), Gauge("limit", "memory of the group /x", TOTAL)]
        self.ram = self.group = 10 * GIB
        self.whole = 0

    def quick(self):
        return self.group

    def read(self, slow):
        self.whole += 1
        return [self.ram, self.group]

    def close(self):
        return


class Cards(GpuGauges):
    """No card, whatever the machine has."""

    def open(self):
        return


@pytest.fixture
def host():
    return Host()


@pytest.fixture
def sampler(tmp_path, host):
    record = Record.create(tmp_path / "r", {"began": 1.7e9, "command": ["run"]})
    made = Sampler(record, host, Cards(), ProcessTree(os.getpid()), OutputProgress(), 0.0)
    made.open()
    yield made
    made.close()


def run(sampler, begin, end):
    """A tick every tenth of a second."""
    for tenth in range(round(begin * 10), round(end * 10)):
        sampler.tick(tenth / 10 + 0.001)


def rows(sampler):
    sampler._ring.flush()
    return ring_rows(sampler.record.folder)


def test_a_calm_host_is_read_whole_twice_a_second_and_has_ten_rows_in_the_ring(sampler, host):
    run(sampler, 0, 20)
    assert len(rows(sampler)) == pytest.approx(200, abs=20)
    assert host.whole <= 3.5 * 20
    assert {sizes for _, sizes in rows(sampler)} == {(10 * 1024, 10 * 1024, -1)}


def test_a_gauge_that_creeps_is_in_every_row_also_between_whole_readings(sampler, host):
    for tenth in range(100):
        host.group += 2 << 20
        sampler.tick(tenth / 10 + 0.001)
    grown = [sizes[1] for _, sizes in rows(sampler)]
    assert len(set(grown)) > 80
    assert grown == sorted(grown)
    assert host.whole < 40


def test_where_memory_jumps_everything_is_read_at_once(sampler, host):
    run(sampler, 0, 5)
    before = host.whole
    for tenth in range(50, 60):
        host.group += GIB
        host.ram += GIB
        sampler.tick(tenth / 10 + 0.001)
    assert host.whole - before >= 8
    assert rows(sampler)[-1][1][:2] == (20 * 1024, 20 * 1024)
    assert sampler.peaks[0] == sampler.peaks[1] == 20 * GIB


def test_the_level_that_was_asked_for_is_told_between_whole_readings_too(sampler, host):
    told = []
    sampler.alert, sampler.tell = 0.9, told.append
    run(sampler, 0, 2)
    host.group = int(0.95 * TOTAL)
    sampler.tick(2.101)
    assert len(told) == 1
    assert "95.0%" in told[0]


def test_a_process_that_ended_is_marked_so_once(sampler):
    child = subprocess.Popen(["sleep", "60"])
    sampler.processes = ProcessTree(child.pid)
    sampler.processes.refresh()
    (column,) = sampler._of_processes()
    child.kill()
    child.wait()
    assert sampler._of_processes() == {column: None}
    assert sampler._of_processes() == {}


def test_a_row_that_repeats_costs_no_line_in_the_record(sampler, tmp_path):
    run(sampler, 0, 30)
    lines = (tmp_path / "r" / "samples.jsonl").read_text().splitlines()
    assert sum(isinstance(json.loads(line), list) for line in lines) <= 8  # our own memory moves a little


def test_a_look_at_the_record_does_not_keep_the_next_steps_waiting(sampler):
    def dear(_):
        until = thread_time() + 0.03
        while thread_time() < until:
            pass

    sampler.on_steps, sampler.progress = (
        dear,
        OutputProgress(Patterns(step=r"step:(?P<step>\d+)", step_words=("step:",))),
    )
    for step in range(40):
        sampler.hear(f"step:{step} - actor/pg_loss:0.1\n".encode())
        run(sampler, step, step + 1)
    sampler.record.flush(40.0)
    times = [at for marks in read_record(sampler.record.folder).steps.values() for at, _ in marks]
    assert len(times) == 40
    assert max(abs(at - step) for step, at in enumerate(times)) < 5


def test_a_run_that_starts_processes_all_the_time_does_not_fill_the_record_with_them(sampler):
    held = {}
    sampler.processes = SimpleNamespace(names={}, held=lambda: held, close=lambda: None)
    for pid in range(1000, 3000):
        held = {pid: 40 * MIB}
        sampler._of_processes()
    assert len(sampler._columns) == 500
    held = {9000: GIB}
    assert list(sampler._of_processes().values()) == [GIB]
