"""A language of one sign: whatever still reads as English was never asked of a catalogue."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from advisor import cli, language
from advisor.knowledge import load
from advisor.language import CHINESE
from tests.language.test_nothing_english_is_left import forget, given_texts
from tests.stories.told import STORIES, enter, tell

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

_FIELD = re.compile(r"(\{\w*(?:![rsa])?(?::[^{}]*)?\})")
_WORD = re.compile(r"[A-Za-z][a-z']+")
_RUN = re.compile(r"(?<![\w./=@:|{-])[A-Za-z][a-z']+(?: [A-Za-z][a-z']+)*(?![\w/=@|}-]|\.\w|:\d)")
_QUOTED = re.compile(r"`[^`]*`|\"[^\"]*\"|\([^()]*Error: [^()]*\)|\[[^]]*\]|\{[^}]*\}|https?://\S+|[\w']*(?:…|\.\.\.)")
_TITLES = re.compile(r"^\s*(?:\w+: )?(?:rl-oom-advisor \w+|[\w-]+\s{2,}\S+)\s")
NAMES = ("pip install", "sigterm", "traceback", "did not find expected document start")
"""Commands of others, ids of lines that are one word, and what the YAML library says."""


class Signs(dict[str, str]):
    """A catalogue that has every text, each letter one and the same sign."""

    def __bool__(self) -> bool:
        return True

    def get(self, text: str, default: object = None) -> str:  # type: ignore[override]
        parts = _FIELD.split(text)
        return "".join(part if _FIELD.fullmatch(part) else re.sub("[A-Za-z]", "字", part) for part in parts)


class Kinds(dict[str, Signs]):
    """Such a catalogue for every kind of knowledge."""

    def __bool__(self) -> bool:
        return True

    def get(self, kind: str, default: object = None) -> Signs:  # type: ignore[override]
        return Signs()


@pytest.fixture
def signs(tmp_path: Path, monkeypatch: Patch) -> Iterator[None]:
    """The program, speaking in signs."""
    forget()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(load, "catalogue_of", lambda folder, language: Kinds())
    monkeypatch.setattr(language._Spoken, "catalogue", Signs())
    monkeypatch.setattr(language._Spoken, "language", CHINESE)
    monkeypatch.setattr(cli, "speak", lambda _: None)
    yield
    monkeypatch.undo()
    forget()


@functools.lru_cache(maxsize=1)
def known() -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """The words of the files that the commands read, and which follow one another."""
    words: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for text in (*given_texts(), *NAMES):
        found = _WORD.findall(text.lower())
        words.update(found)
        pairs.update(pairwise(found))
    return frozenset(words), frozenset(pairs)


def left_in(text: str, more: str) -> Iterator[str]:
    """The lines with words that nobody said."""
    words, pairs = known()
    own = set(_WORD.findall(more.lower()))
    for line in text.splitlines():
        for run in _RUN.findall(_TITLES.sub(" ", _QUOTED.sub(" 字 ", line))):
            found = run.lower().split()
            told = all(word in words or word in own for word in found)
            if not told or not all(pair in pairs for pair in pairwise(found)):
                yield line.strip()
                break


def test_every_word_is_said(tmp_path: Path, monkeypatch: Patch, capsys: Capture, signs: None) -> None:
    story = STORIES["open-reasoner-zero"]
    enter(story, tmp_path, monkeypatch)
    (tmp_path / "open.sh").write_text("python3 -m verl.trainer.main_ppo data.x='8 \\\n")
    found: list[str] = []
    for words in (
        story.words("diagnose"),
        ["settings", story.script],
        ["scan", story.log],
        ["estimate", story.script, *story.machine],
        ["fix", "--demo"],
        ["--help"],
        ["diagnose", "--help"],
        ["estimate", "--run", story.script],
        ["settings", str(tmp_path / "open.sh")],
        ["explain", "engine-not-freed"],
        ["machine", "--machine", story.log],
    ):
        _, out, err = tell(words, capsys)
        assert "字" in out + err, words
        found += [f"{' '.join(words)}: {line}" for line in left_in(out + err, " ".join(words))]
    assert not found, "\n".join(dict.fromkeys(found))
