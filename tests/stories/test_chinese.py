"""Each documented crash told in Chinese: how it reads, and that nothing but the words differs from English."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stories.told import DOCUMENTED, RUNS, STORIES, beginning, diagnosis, enter, stable, tell

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]
CHINESE = ("--lang", "zh")
_SIGNS = re.compile("[\u3000-\u9fff\uff00-\uffef]")
PROSE = frozenset(
    {
        "title",
        "because",
        "explains",
        "asks",
        "remarks",
        "record_next_time",
        "differs",
        "says",
        "why",
        "costs",
        "caveats",
    }
    | {"phase_because", "unclear_because", "settle_by", "recognised_by", "note", "notes", "reason", "formula", "tensor"}
    | {"assumed", "missing", "problems", "how", "documented", "shortfall", "environment"}
)
"""Keys of the JSON below which a person is spoken to."""


def golden(file: Path, text: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, "utf-8")
    before = file.read_text("utf-8")
    told = difflib.unified_diff(before.splitlines(True), text.splitlines(True), "expected", "told", n=1)
    assert before == text, "".join(told)[:4000]


@pytest.mark.parametrize(("name", "form", "ending"), [("easyr1", "text", "txt"), ("ms-swift", "markdown", "md")])
def test_a_diagnosis_reads_like_this(
    name: str, form: str, ending: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    story = STORIES[name]
    enter(story, tmp_path, monkeypatch)
    code, out, err = tell(story.words("diagnose", "--format", form, *CHINESE), capsys)
    assert (code, err) == (0, "")
    golden(RUNS / story.folder / f"expected.{name}.zh.{ending}", beginning(stable(out)))


def test_an_explanation_reads_like_this(capsys: Capture) -> None:
    told = [tell(["explain", name, *CHINESE], capsys) for name in ("logits-too-big", "actor.micro_batch", "easyr1-59")]
    assert [code for code, _, _ in told] == [0, 0, 0]
    golden(RUNS.parent / "report" / "golden" / "explain.zh.txt", "\n".join(out for _, out, _ in told))


@pytest.mark.parametrize("name", STORIES)
def test_the_json_is_the_same_but_for_its_prose(name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    story = STORIES[name]
    enter(story, tmp_path, monkeypatch)
    english, chinese = diagnosis(story, capsys), diagnosis(story, capsys, *CHINESE)
    assert dict(leaves(english, lambda key: key not in PROSE)) == dict(leaves(chinese, lambda key: key not in PROSE))
    assert not list(differences(english, chinese))
    assert chinese["diagnosis"]["title"] != english["diagnosis"]["title"]


def differences(english: Any, chinese: Any, at: str = "") -> Iterator[str]:
    """Where two JSON values differ in more than the words of a text."""
    if isinstance(english, dict) and isinstance(chinese, dict):
        if english.keys() != chinese.keys():
            yield f"{at}: {english.keys() ^ chinese.keys()}"
        for key in english.keys() & chinese.keys():
            yield from differences(english[key], chinese[key], f"{at}.{key}")
    elif isinstance(english, list) and isinstance(chinese, list):
        if len(english) != len(chinese):
            yield f"{at}: {len(english)} and {len(chinese)}"
        for number, (one, other) in enumerate(zip(english, chinese, strict=False)):
            yield from differences(one, other, f"{at}[{number}]")
    elif english != chinese and not (isinstance(english, str) and isinstance(chinese, str) and _SIGNS.search(chinese)):
        yield f"{at}: {english!r} and {chinese!r}"


def leaves(value: Any, wanted: Callable[[str], bool], path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of what stands below wanted keys; lists and objects only by their parts."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if wanted(key):
                yield from leaves(inner, wanted, f"{path}.{key}")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, wanted, f"{path}[{place}]")
    else:
        yield path, value


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_patched_script_is_the_same(name: str, tmp_path: Path, monkeypatch: Patch, capsys: Capture) -> None:
    story = STORIES[name]
    folder = enter(story, tmp_path, monkeypatch)
    code, _, err = tell(story.words("fix", *CHINESE), capsys)
    assert code == (3 if name == "openrlhf" else 0), err  # another version is no edit of the script
    written = folder / story.fits
    if not written.exists():
        assert "deepspeed" in err
        return
    old, new = ((folder / file).read_text().splitlines(True) for file in (story.script, story.fits))
    changed = "".join(difflib.unified_diff(old, new, story.script, story.fits))
    assert changed == (RUNS / story.folder / f"expected.{name}.patch").read_text()
