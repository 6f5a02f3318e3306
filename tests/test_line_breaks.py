"""Paragraphs in Latin and Chinese script, in lines of so many columns."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.hostile import cells, clean_line
from advisor.line_breaks import wrapped

MIXED = st.text(alphabet="ab 显存，。（）n8·\t", max_size=120)


@given(MIXED, st.integers(4, 40), st.integers(4, 40))
def test_no_line_is_wider_than_it_may_be(text, width, first):
    lines = wrapped(text, width, first)
    assert all(cells(line) <= (width if number else first) for number, line in enumerate(lines))


@given(MIXED, st.integers(4, 40))
def test_nothing_but_spaces_is_lost(text, width):
    assert "".join("".join(wrapped(text, width)).split()) == "".join(clean_line(text).split())


def test_chinese_breaks_between_characters_and_keeps_latin_words_whole():
    said = wrapped("把 rollout.n 从 64 降到 32，显存峰值随之下降。", 16)
    assert said == ["把 rollout.n 从", "64 降到 32，显存", "峰值随之下降。"]


def test_a_line_does_not_begin_with_a_closing_sign_nor_end_with_an_opening_one():
    assert wrapped("显存不足。卡", 8) == ["显存不", "足。卡"]
    assert wrapped("显存不（足）", 8) == ["显存不", "（足）"]


def test_english_breaks_at_spaces_alone():
    assert wrapped("gpu_memory_utilization 0.6 → 0.5 frees 8 GiB", 24) == [
        "gpu_memory_utilization",
        "0.6 → 0.5 frees 8 GiB",
    ]


def test_a_word_wider_than_the_line_is_cut():
    assert wrapped("ab" * 5, 4) == ["abab", "abab", "ab"]
