"""Gauges: what is wrong with a card, who was left behind on it, and three kinds of nothing to show."""

import os

import pytest

from advisor.machine.inventory import Gpu, GpuProcess, Host
from advisor.machine.live import GaugeSnapshot, GpuGauge
from advisor.machine.processes import UNKNOWN_PROCESS
from advisor.tui.gauge_strip import strip
from advisor.tui.gauges_view import Expected, gauge_rows, left_behind, load_words, timeline_rows
from advisor.tui.ui_text import plain, texts
from tests.replacing import replace

from .made_state import G, snapshot

NOW = 10_000.0


def card(**more: object) -> GpuGauge:
    gpu = Gpu(2, "A100", 40 * G, 30 * G, "", 97, 63, 318.0, 400.0, ())
    return GpuGauge(replace(gpu, **more), 90.0, history=(G, 30 * G), peak_bytes=38 * G)  # type: ignore[arg-type]


def shown(*gauges: GpuGauge, ended: float | None = None, width: int = 78) -> str:
    return texts(gauge_rows(GaugeSnapshot(100.0, gauges, Host(total_bytes=G)), "", NOW, width, ended=ended))


def process(pid: int, began: float, command: str = "python3 train.py", size: int = 30 * G) -> GpuProcess:
    return GpuProcess(pid, size, "ana", began, G, command)


def test_power_stands_beside_its_cap_and_the_peak_in_the_bar() -> None:
    text = shown(card())
    assert "318/400W" in text
    assert "|" in text.splitlines()[2]
    assert load_words(Gpu(0, "x", G)).strip() == ""


@pytest.mark.parametrize("width", [58, 78, 118])
def test_columns_stay_in_line_whatever_a_card_tells(width: int) -> None:
    cards = (card(), card(utilisation=None), card(power_watts=None), card(temperature=None))
    rows = [row for row in shown(*cards, width=width).splitlines() if "75 %" in row]
    assert len(rows) == 4
    assert len({row.index("75 %") for row in rows}) == 1
    assert max(map(len, rows)) <= width


def test_what_holds_a_card_back_is_said_below_it() -> None:
    text = shown(card(throttle=("power cap", "temperature (hardware)"), ecc_errors=3))
    assert "held back by: power cap, temperature (hardware) · 3 uncorrected memory errors (ECC)" in " ".join(
        text.split()
    )


def test_a_lost_card_stays_listed_with_the_age_of_its_numbers() -> None:
    text = " ".join(shown(replace(card(problem="GPU is lost: it fell off the bus"), stale=True)).split())
    assert "30.0/40.0G" in text
    assert "does not answer; last read 10s ago · GPU is lost" in text


def test_instances_are_named_by_their_profile() -> None:
    assert "3g.20gb" in shown(card(mig="3g.20gb", parent=2))


def test_what_a_dead_run_left_behind_is_flagged_and_nothing_else_is() -> None:
    found = (
        process(11, NOW - 5000),  # before the log ended
        process(12, NOW - 10),  # began after it: another run
        process(13, NOW - 5000, "/usr/bin/gnome-shell"),
        process(os.getpid(), NOW - 5000),
        process(14, NOW - 5000, size=0),
        GpuProcess(15, 30 * G, None, None, None, UNKNOWN_PROCESS),  # perhaps of another container, which goes on
    )
    gauge = card(processes=found)
    taken = GaugeSnapshot(100.0, (gauge,), Host())
    assert list(left_behind(taken, NOW, NOW - 100)) == [11]
    assert left_behind(taken, NOW, None) == {}
    text = shown(gauge, ended=NOW - 100)
    assert "! Left over from a run that ended: pid 11 (30.00 GiB)" in text
    assert "!2  11" in text
    assert "Left over" not in shown(gauge)


def test_the_largest_holder_comes_first() -> None:
    text = shown(card(processes=(process(21, NOW, size=G), process(22, NOW, size=9 * G))))
    assert text.index("22 ") < text.index("21 ")


def test_memory_that_no_visible_process_holds_is_said_once() -> None:
    text = " ".join(shown(card(), card(index=5)).split())
    assert "GPU 2, 5: up to 30.00 GiB on each are held by processes that cannot be seen from here" in text


def test_three_kinds_of_nothing_are_told_apart() -> None:
    none_yet = texts(gauge_rows(None, "", NOW, 78))
    no_card = shown()
    unreadable = texts(gauge_rows(GaugeSnapshot(1.0, (), Host(), None, "NVML: this user may not read"), "", NOW, 78))
    assert "reading the gauges" in none_yet
    assert "The driver answers, and shows no GPU" in no_card
    assert "NVML: this user may not read" in unreadable
    strips = [None, GaugeSnapshot(1.0), GaugeSnapshot(1.0, problem="x")]
    assert len({plain(strip(one, "", 78)) for one in strips}) == 3


def test_silence_about_processes_is_no_claim_that_there_are_none() -> None:
    text = shown(card(processes=None))
    assert "GPU 2: the driver does not say which processes" in text
    assert "no process" not in text
    assert "no process on the GPUs" in shown(card(used_bytes=0))


def test_the_strip_names_how_many_more_there_are() -> None:
    assert "+7 GPUs: g" in plain(strip(snapshot(), "", 78))


def test_who_holds_a_card_is_said_by_kind_and_the_fullness_by_colour_and_number() -> None:
    found = (
        process(1, 0, "ray::WorkerDict.actor_update", 20 * G),
        process(2, 0, "VLLM::EngineCore", 8 * G),
        process(3, 0, "Xorg [red]", 2 * G),
    )
    full, empty = card(processes=found, used_bytes=38 * G), card(used_bytes=2 * G)
    rows = gauge_rows(GaugeSnapshot(100.0, (full, empty), Host(total_bytes=G)), "", NOW, 158)
    text = texts(rows)
    assert "training 20.0 G  engine 8.0 G  other 2.0 G" in text
    assert "GPUs: 2 × A100" in text
    tones = [part.tone for row in rows[2:4] for part in row.line if "▕" in part.text]
    assert tones == ["bad", "good"]
    assert "95 %" in text
    assert "training" not in texts(gauge_rows(GaugeSnapshot(100.0, (full,), Host(total_bytes=G)), "", NOW, 78))


def test_the_predicted_peak_is_marked_on_cards_of_the_size_it_was_counted_for() -> None:
    snap = GaugeSnapshot(100.0, (card(),), Host(total_bytes=100 * G, available_bytes=60 * G, used_bytes=40 * G))
    counted = Expected(20 * G, 40 * G, 60 * G, 95 * G, 100 * G)
    text = texts(gauge_rows(snap, "", NOW, 118, expected=counted)).splitlines()
    assert "P predicted" in text[0]
    assert "P" in text[2].partition("▏ ")[0]
    ram = next(row for row in text if row.startswith("RAM"))
    assert ram.index("P") < ram.index("R", 3)
    assert "R: Ray kills here" in ram
    other = replace(counted, gpu_capacity=80 * G, host_capacity=500 * G)
    rows = texts(gauge_rows(snap, "", NOW, 118, expected=other)).splitlines()
    assert "P" not in rows[2]
    assert "Ray kills" not in "".join(rows)


def test_the_time_line_grows_with_the_window() -> None:
    gauge = replace(card(), history=tuple(G * (1 + at % 38) for at in range(300)))
    drawn = [sum(sign in "▁▂▃▄▅▆▇█" for sign in shown(gauge, width=width).splitlines()[2]) for width in (80, 120, 200)]
    assert drawn == sorted(set(drawn)), drawn
    assert drawn[-1] >= 60, drawn


def test_free_lines_show_the_fullest_card_over_time_and_never_more_than_there_are() -> None:
    host = Host(total_bytes=100 * G, available_bytes=60 * G, used_bytes=40 * G)
    seen = (10 * G, 20 * G, 40 * G)
    gauges = tuple(replace(card(index=i), history=(0, i * G, 2 * i * G), peak_bytes=2 * i * G) for i in range(3))
    snapshot = GaugeSnapshot(100.0, gauges, host, host_history=seen)
    heights = {room: len(timeline_rows(snapshot, 78, room)) for room in range(40)}
    assert all(lines <= room for room, lines in heights.items())
    assert heights[4] == 0
    told = texts(timeline_rows(snapshot, 78, 12))
    assert "GPU 2, the fullest: the last 3 readings, GiB" in told
    assert "Host: the last 3 readings, GiB" in told
    assert timeline_rows(GaugeSnapshot(1.0), 78, 30) == []
