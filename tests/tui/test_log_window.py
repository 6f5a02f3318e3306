"""A window of a log: right lines at both ends, compressed or not, however the lines look."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.crash.sources import open_sources, text_source
from advisor.tui import log_window
from advisor.tui.log_window import LogWindows, shown


def written(folder: Path, lines: int) -> Path:
    path = folder / "train.log"
    path.write_text("".join(f"line {number}\n" for number in range(1, lines + 1)))
    return path


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks even in a small file."""
    monkeypatch.setattr(log_window, "BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("number", [1, 2, 50, 999, 1000])
def test_the_window_stands_around_the_line(tmp_path: Path, number: int) -> None:
    window = LogWindows(open_sources([written(tmp_path, 1000)])[0]).around(number, 3)
    assert window.first == max(1, number - 3)
    assert window.lines[number - window.first] == f"line {number}"
    assert window.ends == (number + 3 >= 1000)


@pytest.mark.usefixtures("small_blocks")
def test_a_second_look_starts_where_lines_are_known_to_begin(tmp_path: Path) -> None:
    windows = LogWindows(open_sources([written(tmp_path, 1000)])[0])
    for number in (900, 10, 905, 300, 999, 1):
        window = windows.around(number, 2)
        assert window.lines[number - window.first] == f"line {number}"


@pytest.mark.usefixtures("small_blocks")
def test_a_compressed_log_is_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "train.log.gz"
    path.write_bytes(gzip.compress(written(tmp_path, 1000).read_bytes()))
    windows = LogWindows(open_sources([path])[0])
    for number in (700, 20):
        assert windows.around(number, 2).lines[2] == f"line {number}"


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12), min_size=1, max_size=40),
    st.data(),
)
def test_any_text_gives_the_lines_that_newlines_make(lines: list[str], data: st.DataObject) -> None:
    text = "\n".join([*lines, "end"])
    number = data.draw(st.integers(1, len(lines) + 1))
    window = LogWindows(text_source(text, "log")).around(number, 5)
    expected = [shown(one.encode()) for one in text.split("\n")][window.first - 1 : number + 5]
    assert list(window.lines) == expected


def test_a_line_of_megabytes_is_cut_and_the_next_one_is_right(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"x" * 9_000_000 + b"\nafter\n")
    window = LogWindows(open_sources([path])[0]).around(2, 1)
    assert window.lines[1] == "after"
    assert len(window.lines[0]) <= 4000


def test_a_redrawn_progress_line_shows_its_last_picture() -> None:
    assert shown(b"10%|#\r50%|###\r100%|######\r\n") == "100%|######"


def test_a_log_that_has_gone_says_so(tmp_path: Path) -> None:
    source = open_sources([written(tmp_path, 3)])[0]
    (tmp_path / "train.log").unlink()
    with pytest.raises(OSError, match="No such file"):
        LogWindows(source).around(1, 1)
