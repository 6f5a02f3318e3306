"""A driver that is slow or hangs costs the cards' readings and nothing else."""

from __future__ import annotations

import time
from threading import Event
from types import SimpleNamespace

import pytest

from advisor.units import GIB
from advisor.watch import gpu_gauges
from advisor.watch.gpu_gauges import GpuGauges


class Driver:
    """One card; every call waits until `free` is set."""

    def __init__(self, free=True):
        self.free = Event()
        if free:
            self.free.set()

    def open(self):
        self.free.wait()

    def snapshot(self, processes):
        return [SimpleNamespace(index=0, name="A100 MIG 3g.20gb", mig="3g.20gb", usable_bytes=80 * GIB)]

    def used(self):
        self.free.wait()
        return [3 * GIB]

    def holders(self):
        self.free.wait()
        return {(0, 77): GIB}

    def close(self):
        return


@pytest.fixture
def gauges():
    made = []

    def make(driver):
        made.append((GpuGauges(reader=driver), driver))
        made[-1][0].open()
        return made[-1][0]

    yield make
    for gauge, driver in made:
        driver.free.set()
        gauge.close()


def eventually(ask):
    until = time.monotonic() + 10
    while not (found := ask()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


def test_a_reading_takes_the_answer_to_the_one_before_and_the_last_one_waits(gauges):
    gpus = gauges(Driver())
    assert [gauge.name for gauge in gpus.gauges] == ["GPU 0 A100 MIG 3g.20gb"]
    assert gpus.read() is None
    assert eventually(gpus.read) == [3 * GIB]
    assert gpus.last() == [3 * GIB]
    assert eventually(gpus.holders) == {(0, 77): GIB}


def test_a_driver_that_hangs_holds_nobody_up_and_its_cards_are_unknown_until_it_is_back(gauges, monkeypatch):
    monkeypatch.setattr(gpu_gauges, "_SILENT", 0.05)
    driver = Driver()
    gpus = gauges(driver)
    assert eventually(gpus.read)
    driver.free.clear()
    eventually(lambda: gpus._since)  # asked, and not answered
    begun = time.monotonic()
    unknown = eventually(gpus.read)
    while unknown == [3 * GIB]:  # an answer from before
        unknown = eventually(gpus.read)
    assert unknown == [None]
    assert [gpus.read() for _ in range(100)] == [None] * 100
    gpus.last()
    assert time.monotonic() - begun < 2
    driver.free.set()
    assert eventually(gpus.read) == [3 * GIB]


def test_a_driver_that_starts_late_has_its_cards_joined_then(gauges, monkeypatch):
    monkeypatch.setattr(gpu_gauges, "_OPENING", 0.01)
    driver = Driver(free=False)
    gpus = gauges(driver)
    assert gpus.join() == gpus.gauges == []
    driver.free.set()
    assert [gauge.total for gauge in eventually(gpus.join)] == [80 * GIB]
    assert gpus.join() == []
