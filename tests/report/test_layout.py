"""Plain text in columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.hostile import cells
from advisor.line_breaks import cut, cut_left
from advisor.report.layout import plain_ascii, table, wrap

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=300)


@given(WORDS, st.integers(0, 12), st.integers(0, 12))
def test_no_wrapped_line_is_wider_than_asked(text, indent, hanging):
    assert all(cells(line) <= 40 for line in wrap(text, indent, hanging, width=40))


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=30), min_size=1))
def test_wrapping_loses_no_word(words):
    assert " ".join(" ".join(wrap(" ".join(words), width=40)).split()) == " ".join(words)


def test_lines_that_go_on_hang_below_the_first():
    assert wrap("one two three", 2, 4, width=10) == ["  one two", "    three"]


def test_a_word_wider_than_the_line_is_cut_across_lines():
    assert wrap("abcdefghij", 2, width=6) == ["  abcd", "  efgh", "  ij"]


def test_nothing_wraps_to_nothing():
    assert wrap("", 2) == []


def test_wide_characters_count_two_columns():
    assert wrap("显存 不足", width=4) == ["显存", "不足"]


@given(WORDS, st.integers(2, 30))
def test_cut_text_fits_on_one_line(text, width):
    for shortened in (cut(text, width), cut_left(text, width)):
        assert cells(shortened) <= width
        assert "\n" not in shortened


def test_cutting_the_front_keeps_the_end():
    assert cut_left("worker.actor.offload.offload_params", 15) == "…offload_params"


def test_a_table_is_as_wide_as_its_cells():
    assert table([["a", "1.0"], ["bbb", "10.0"]], right=frozenset({1})) == ["  a     1.0", "  bbb  10.0"]


def test_ascii_spells_signs_and_marks_the_rest():
    assert plain_ascii("0.6 → 0.5 · 8 × A100 … 显") == "0.6 -> 0.5 | 8 x A100 ... ?"
