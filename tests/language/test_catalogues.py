"""The Chinese catalogues against the source: nothing missing, nothing left over, every field in its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from advisor.folders import knowledge_folder
from advisor.language import CHINESE
from tests.language.texts import ADVISOR, said_in
from tests.language.untranslated import compared
from tests.loops import each

_HAN = "\u4e00-\u9fff\u3400-\u4dbf"
_FIELD = re.compile(r"\{(?:\w+(?:![rsa])?(?::[^{}]*)?)?\}")
_HALF_WIDTH = re.compile(rf"[{_HAN}][,;:?!]")
_SENTENCE = re.compile(r"(?<![\w.=/-])[A-Za-z']+(?:[,:;]? [A-Za-z'-]+){4,}(?![\w.=/-])")
"""More than four words that are neither keys nor values."""
_SHORT = 3
"""Words of a text of the knowledge that may mean another thing in another file: "nodes" of a unit, "driver" of Ray."""


@lru_cache(maxsize=1)
def catalogues() -> dict[str, list[tuple[str, str]]]:
    """Path → its pairs as they are written, doubles included."""
    folders = (ADVISOR / "languages" / CHINESE, knowledge_folder() / CHINESE)
    return {
        str(file.relative_to(ADVISOR.parent)): json.loads(file.read_bytes(), object_pairs_hook=list)
        for folder in folders
        for file in sorted(folder.glob("*.json"))
    }


def pairs() -> Iterator[tuple[str, str, str]]:
    for name, own in catalogues().items():
        for english, chinese in own:
            yield name, english, chinese


def nothing(wrong: Iterator[str]) -> None:
    """Fails with every finding on a line of its own."""
    found = list(wrong)
    assert not found, "\n".join(found)


def test_every_text_has_its_translation_and_no_translation_is_left_over() -> None:
    nothing(
        f"{name}: {what} {text!r}"
        for name, (missing, stale) in compared(CHINESE).items()
        for what, texts in (("lacks", missing), ("nothing says any more", stale))
        for text in texts
    )


def test_no_catalogue_has_a_text_twice() -> None:
    nothing(
        f"{name}: {text!r}"
        for name, own in catalogues().items()
        for text in {english for english, _ in own}
        if sum(english == text for english, _ in own) > 1
    )


def test_every_field_of_the_english_stands_in_the_chinese_and_no_other() -> None:
    nothing(
        f"{name}: {english!r} → {chinese!r}"
        for name, english, chinese in pairs()
        if set(_FIELD.findall(english)) != set(_FIELD.findall(chinese))
    )


def test_no_half_width_sign_stands_behind_a_chinese_character() -> None:
    nothing(f"{name}: {chinese!r}" for name, _, chinese in pairs() if _HALF_WIDTH.search(chinese))


def test_a_sentence_ends_as_a_sentence_of_its_language() -> None:
    nothing(
        f"{name}: {english!r} → {chinese!r}"
        for name, english, chinese in pairs()
        if english.endswith(".") != chinese.endswith("。") and not english.endswith("...")
    )


def test_no_english_sentence_stands_in_place_of_its_translation() -> None:
    nothing(
        f"{name}: {chinese!r}"
        for name, _, chinese in pairs()
        if not re.search(f"[{_HAN}]", chinese) and _SENTENCE.search(chinese)
    )


def test_one_text_has_one_translation() -> None:
    """The program's catalogues are one when they are read; of the knowledge each file has its own."""
    found: dict[str, dict[str, str]] = {}
    for name, english, chinese in pairs():
        if name.startswith("advisor") or len(english.split()) > _SHORT:
            found.setdefault(english, {}).setdefault(chinese, name)
    nothing(f"{english!r}: {many}" for english, many in found.items() if len(many) > 1)


def test_the_reader_is_addressed_as_a_colleague() -> None:
    nothing(f"{name}: {chinese!r}" for name, _, chinese in pairs() if "您" in chinese)


@each(
    "source",
    [
        'say(f"{count} lines read")',
        'mark(f"{NAME}")',
        'Sayings({"a": f"{b}"})',
        'say("a" if one else f"{b}")',
        'say("a " + b)',
        'say("a {}".format(b))',
    ],
)
def test_a_text_that_is_put_together_before_it_is_said_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match="no f-string"):
        list(said_in(source))


def test_what_is_said_marked_and_looked_up_is_found() -> None:
    source = (
        'say("a {b}", b=1)\nA = mark("b")\nB: Sayings[str] = Sayings({"k": "c"})\n'
        'C = Sayings[str]({"k": "d"})\nsay_count("one", "many", 2)\nsay("x" if y else "z")\nsay(A)\n'
    )
    assert [text for text, _ in said_in(source)] == ["a {b}", "b", "c", "d", "many", "x", "z"]


def test_the_catalogues_are_where_the_program_reads_them() -> None:
    assert {Path(name).parent.name for name in catalogues()} == {CHINESE}
    assert len(catalogues()) > 12


FIELD_TERMS = {
    r"\bprompts?\b": ("提示",),
    r"\bKV cache\b": ("键值缓存",),
    r"\bswap space\b": ("交换空间",),
    r"\bmicro[- ]?batch": ("微批",),
    r"\bgradient checkpointing\b": ("梯度检查站", "检查点技术"),
    r"\btensor parallel": ("张量平行", "张量切分"),
    r"\boffload": ("下放", "分流"),
    r"\bGPU memory\b": ("GPU 内存", "图形内存"),
    r"\bkill": ("杀掉",),
}
"""English → words by which nobody in the field calls it."""


@each(("english", "strange"), FIELD_TERMS.items())
def test_chinese_has_the_terms_of_the_field(english: str, strange: tuple[str, ...]) -> None:
    nothing(
        f"{name}: {word} in {chinese!r}"
        for name, text, chinese in pairs()
        for word in strange
        if word in chinese and re.search(english, text, re.IGNORECASE)
    )
