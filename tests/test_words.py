"""The closed vocabularies in words, and sentences of them."""

from __future__ import annotations

import errno
import os
from typing import get_args

import pytest

from advisor.language import speak
from advisor.memory.cells import OWNERS, TITLES, Owner
from advisor.words import (
    BASES,
    BASIS_TITLES,
    MEMORIES,
    MEMORY_TITLES,
    PHASE_NAMES,
    PHASE_TITLES,
    PHASES,
    os_words,
    sentence,
    when,
)
from tests.loops import each


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_word_of_a_vocabulary_has_a_title(language: str) -> None:
    speak(language)
    for words, titles in (
        (PHASES, PHASE_TITLES),
        (PHASES, PHASE_NAMES),
        (MEMORIES, MEMORY_TITLES),
        (BASES, BASIS_TITLES),
        (get_args(Owner), TITLES),
    ):
        assert all(titles[word] for word in words)  # type: ignore[index]
        assert len({titles[word] for word in words}) == len(words)  # type: ignore[index]


def test_the_table_of_owners_has_all_of_them() -> None:
    assert tuple(OWNERS) == get_args(Owner)


def test_in_english_short_phases_are_called_as_in_json() -> None:
    assert tuple(PHASE_NAMES[phase] for phase in PHASES) == PHASES


@each("phase", PHASES)
def test_when_is_said_with_the_title_of_the_phase(phase: str) -> None:
    assert when(phase) in (f"while {PHASE_TITLES[phase]}", f"during {PHASE_TITLES[phase]}")  # type: ignore[arg-type, index]


@each("phase", [phase for phase in PHASES if phase != "unknown"])
def test_when_is_said_around_the_phase_in_chinese(phase: str) -> None:
    speak("zh")
    said = when(phase)  # type: ignore[arg-type]
    assert said.startswith("在")
    assert said.endswith("时")


@each(
    ("language", "words", "said"),
    [
        ("en", "the log ends early", "The log ends early."),
        ("en", "it ends early.", "It ends early."),
        ("en", "does it?", "Does it?"),
        ("en", "", ""),
        ("zh", "日志过早结束", "日志过早结束。"),
        ("zh", "日志过早结束。", "日志过早结束。"),
        ("zh", "真的吗？", "真的吗？"),
        ("zh", "actor 更新放不下", "actor 更新放不下。"),
        ("zh", "", ""),
    ],
)
def test_a_clause_becomes_a_sentence_in_the_way_of_the_language(language: str, words: str, said: str) -> None:
    speak(language)
    assert sentence(words) == said


def test_the_systems_errors_are_said_and_our_own_words_stay() -> None:
    gone = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "x")
    own = FileExistsError(errno.EEXIST, "it is there already", "x")
    assert os_words(gone) == "no such file or directory"
    speak("zh")
    assert os_words(gone) == "没有这个文件或文件夹"
    assert os_words(own) == "it is there already"
    assert os_words(OSError("made up")) == "made up"
