"""Searching a log: every hit is found in both directions, however the blocks fall."""

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.crash import scan
from advisor.crash.read import read_logs
from advisor.crash.sources import open_sources, text_source
from advisor.knowledge.load import load_knowledge
from advisor.tui import log_window
from advisor.tui.evidence_view import EvidenceView
from advisor.tui.log_window import LogWindows, hit_before, next_hit
from tests.heavy import examples

from .made_state import host_crash
from .screen_text import opened, press, screen_text


def never() -> bool:
    return False


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_window, "BLOCK", 7)
    monkeypatch.setattr(log_window, "OVERLAP", 4)


lines = st.lists(st.text("abX ", max_size=12), max_size=30)


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=lines, wanted=st.sampled_from(["a", "ab", "X", "b a", "Xa"]), start=st.integers(0, 31))
def test_all_hits_are_found_forward_and_backward(lines: list[str], wanted: str, start: int) -> None:
    windows = LogWindows(text_source("\n".join(lines), "log"))
    fold = wanted == wanted.lower()
    hits = [n for n, text in enumerate(lines, 1) if wanted in (text.lower() if fold else text)]
    assert next_hit(windows, wanted, start, never) == next((n for n in hits if n > start), None)
    before = max(1, min(start, len(lines) or 1))
    assert hit_before(windows, wanted, before, never) == next((n for n in reversed(hits) if n < before), None)


def test_a_packed_log_is_searched_forward_only(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\nthree\ntwo\n"))
    windows = LogWindows(open_sources([path])[0])
    assert next_hit(windows, "two", 2, never) == 4
    assert hit_before(windows, "two", 4, never) is None


def test_lines_of_a_long_log_are_found_by_what_its_reading_remembers(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    places = [(before, path.read_bytes().index(f"line {before + 1}\n".encode())) for before in (300, 600, 900)]
    windows = LogWindows(open_sources([path])[0])
    assert windows.trust(places, 990, lambda text: text == "line 990")
    for number in (990, 5, 500, 999, 301, 600, 601):
        assert windows.around(number, 1).lines == tuple(f"line {each}" for each in range(number - 1, number + 2))
    assert windows.offset_of(700) == path.read_text().index("line 700\n")


def test_a_log_that_is_another_one_by_now_is_counted_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"line {number}\n" for number in range(1, 1011)))
    windows = LogWindows(open_sources([path])[0])
    assert not windows.trust([(900, 17)], 990, lambda text: text == "line 990")
    assert windows.around(990, 0).lines == ("line 990",)


def test_the_reading_remembers_where_lines_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LINE_INDEX_STEP", 2 << 20)
    path = tmp_path / "train.log"
    with path.open("w") as out:
        for number in range(1, 400_001):
            out.write(f"step {number} all is well\n")
        out.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    crash = read_logs([path], load_knowledge().signatures)
    miles = crash.line_index[str(path)]
    assert len(miles) >= 2
    with path.open("rb") as log:
        for before, offset in miles:
            log.seek(offset)
            assert log.readline() == f"step {before + 1} all is well\n".encode()
    proof = crash.evidence[0]
    windows = LogWindows(open_sources([path])[0])
    assert windows.trust(miles, proof.line, lambda text: "CUDA out of memory" in text)


async def test_a_search_goes_through_its_hits_and_escape_gives_the_marks_back(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {number}{' NaN' if number % 20_000 == 7 else ''}\n" for number in range(1, 42_000)))
    async with opened(host_crash(log=str(log))) as pilot:
        await press(pilot, "o", "slash", *"nan", "enter")
        assert "no further hit" in screen_text(pilot.app)
        await press(pilot, "N")
        assert "▸ 40 007   step 40007 NaN" in screen_text(pilot.app)
        await press(pilot, "N")
        assert "▸ 20 007   step 20007 NaN" in screen_text(pilot.app)
        await press(pilot, "n")
        assert "▸ 40 007   step 40007 NaN" in screen_text(pilot.app)
        await press(pilot, "escape", "n")
        assert "▸ 41 198 P step 41198" in screen_text(pilot.app)
        await press(pilot, "slash", "q", "escape")
        assert isinstance(pilot.app.screen, EvidenceView)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, EvidenceView)
