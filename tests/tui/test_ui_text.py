"""Lines of words: cutting, wrapping and spreading by terminal columns, not by characters."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.hostile import cells
from advisor.line_breaks import cut, cut_left
from advisor.tui.ui_text import Toned, ascii_only, crop, flow, line, pad, plain, span, spread, texts, width_of, wrap

ANY = st.text(max_size=80)
WIDTH = st.integers(1, 60)


@given(ANY, WIDTH)
def test_nothing_ever_gets_wider_than_asked(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width
    assert cells(cut_left(text, width)) <= width
    assert width_of(crop(line(text, Toned("end")), width)) <= width


@given(ANY, WIDTH)
def test_padded_text_has_exactly_its_width(text: str, width: int) -> None:
    assert cells(pad(text, width)) == width


@given(ANY, st.integers(4, 60))
def test_wrapping_loses_no_word_and_keeps_the_width(text: str, width: int) -> None:
    wrapped = wrap(text, width)
    assert all(cells(one) <= width for one in wrapped)
    assert "".join("".join(wrapped).split()) == "".join(span(text).text.split())


def test_cut_says_that_something_is_missing() -> None:
    assert cut("actor_rollout_ref", 8) == "actor_r…"
    assert cut_left("conf/long/vl.yaml", 8) == "…vl.yaml"
    assert cut("short", 8) == "short"


def test_wide_characters_count_two_columns() -> None:
    assert cut("显存不足", 5) == "显存…"
    assert pad("显存", 6) == "显存  "


def test_left_gives_way_to_right() -> None:
    assert plain(spread(line("a long sentence that goes on"), line("41 207"), 20)) == "a long sente… 41 207"


def test_pieces_are_kept_whole() -> None:
    assert texts(flow(["W weights", "O optimizer", "? unproven"], 22)) == "W weights  O optimizer\n? unproven"


def test_a_span_has_no_line_breaks_and_no_control_sequences() -> None:
    assert span("a\nb\x1b[31mred\x07").text == "a bred"


def test_our_signs_have_one_column_in_ascii_too() -> None:
    text = "▸ ✓ ● · … → − – ▕█▌▏ ↑↓ ≥"
    assert ascii_only(text).isascii()
    assert len(ascii_only(text)) == len(text)
    assert ascii_only("显存 →") == "显存 >"
