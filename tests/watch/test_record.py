"""A record is small, survives every kind of end, and reads back as it was written."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.units import MIB
from advisor.watch.gauges import Gauge
from advisor.watch.record import RATE, ROOM, Record, Ring
from advisor.watch.record_files import SAMPLES
from advisor.watch.recording import RecordError, read_record, ring_rows
from tests.heavy import examples
from tests.watch.made_record import made_record

DAY = 86_400


def new_record(folder, gauges=1):
    record = Record.create(folder, {"began": 1.7e9, "command": ["run"]})
    for number in range(gauges):
        record.column(Gauge("gpu", f"GPU {number}", 80_000 * MIB, gpu=number))
    return record


def test_what_is_written_is_read_back(tmp_path):
    record = new_record(tmp_path / "r")
    record.sample(0.0, {0: 100 * MIB})
    record.mark(1.0, phase="actor_update")
    record.mark(2.0, counter="step", count=4)
    record.sample(3.0, {0: 300 * MIB})
    record.mark(4.0, alert=0, mib=300)
    record.mark(5.0, oom_kills=2, group="/g")
    record.mark(6.0, end={"code": 1})
    read = read_record(tmp_path / "r")
    assert list(read.series[0].sizes) == [100 * MIB, 300 * MIB]
    assert read.phases == [(1.0, "actor_update")]
    assert read.steps == {"step": [(2.0, 4.0)]}
    assert (read.alerts[0].bytes, read.oom_kills, read.end) == (300 * MIB, 2, {"code": 1})


def test_a_day_in_which_everything_changes_every_second_takes_less_than_twenty_megabytes(tmp_path):
    record = new_record(tmp_path / "r", gauges=40)
    chance = random.Random(1)
    hours = 2  # the bound is one on the rate: what holds for two hours holds for a day
    for second in range(hours * 3600):
        record.sample(float(second), {column: chance.randrange(80_000) * MIB for column in range(40)})
    size = (tmp_path / "r" / SAMPLES).stat().st_size
    assert size <= ROOM + RATE * hours * 3600 + 4096
    assert ROOM + RATE * DAY + 4096 <= 20e6


def test_samples_put_together_keep_the_peak(tmp_path):
    record = new_record(tmp_path / "r", gauges=40)
    for second in range(3000):
        peak = 79_000 if second == 1777 else second % 997
        record.sample(float(second), {column: (peak + column) * MIB for column in range(40)})
    record.flush(3000.0)
    assert read_record(tmp_path / "r").series[0].peak == 79_000 * MIB


@settings(max_examples=examples(40), deadline=None)
@given(cut=st.integers(min_value=0, max_value=4000))
def test_a_record_cut_anywhere_is_read_as_far_as_it_goes(tmp_path_factory, cut):
    folder = made_record(tmp_path_factory.mktemp("cut") / "r", steps=2)
    path = folder / SAMPLES
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - min(cut, len(data))])
    with suppress(RecordError):  # nothing but the first line was there
        assert read_record(folder).began == 1.7e9


@settings(max_examples=examples(60), deadline=None)
@given(noise=st.binary(max_size=300), at=st.integers(0, 3000))
def test_bytes_of_others_in_a_record_never_break_its_reader(tmp_path_factory, noise, at):
    folder = made_record(tmp_path_factory.mktemp("noise") / "r", steps=2)
    path = folder / SAMPLES
    data = path.read_bytes()
    path.write_bytes(data[:at] + noise + data[at:])
    with suppress(RecordError):
        assert read_record(folder).began > 0


def test_a_folder_without_a_record_is_named(tmp_path):
    with pytest.raises(RecordError, match="is no record"):
        read_record(tmp_path)


def test_the_ring_keeps_the_newest_readings_in_a_file_of_fixed_size(tmp_path):
    ring = Ring.create(tmp_path, 2)
    for tick in range(1000):
        ring.put(tick / 10, [tick * MIB, None])
    ring.close()
    rows = ring_rows(tmp_path)
    assert len(rows) == 600
    assert rows[-1] == (99.9, (999, -1))
    assert rows[0][0] == pytest.approx(40.0)


def test_the_ring_fills_the_end_of_the_series(tmp_path):
    record = new_record(tmp_path / "r")
    ring = Ring.create(tmp_path / "r", 1)
    record.sample(0.0, {0: 5 * MIB})
    ring.put(0.5, [70 * MIB])
    ring.put(0.6, [90 * MIB])
    ring.close()
    assert list(read_record(tmp_path / "r").series[0].sizes) == [5 * MIB, 70 * MIB, 90 * MIB]
