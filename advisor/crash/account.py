"""Reads the sentence in which a person tells that memory ran out, and of which memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from advisor.knowledge.schema import AccountWords
from advisor.regex import compiled, regex
from advisor.words import Memory

SENTENCE = regex(r"[^\n]+?(?:[.!?;](?=\s)|[。；！？]|\n|\Z)")
A_PAGE = 32_000
"""Characters up to which a text may be what somebody wrote or pasted: beyond that it is a log (judgement)."""
_NEAR = 3
"""Sentences before and behind an account that may name the memory it speaks of (judgement)."""
TITLE_LINES = 3
"""Lines of a text among which its title stands."""
_NOT_PROSE = regex(
    r"^\s*(?:#\s|>|\||//|[\w.]+\s*=(?!=)(?!\S+ (?:(?:[a-z]+ ){2}|[a-z]+,|→|->))(?![^\n#]*[\u4e00-\u9fff])"
    r"|\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b\W+\d)"
    r"|[EWIF]\d{4} )"
)
"""A comment, somebody else's words, a row of a table, an assignment, a logger's line."""
_LONGEST_PAGE = 4_000
"""Characters of a line beyond which nobody wrote it by hand (judgement)."""


def told_in(text: str, words: AccountWords, line: int = 0) -> tuple[Memory, int] | None:
    """The memory that a line says ran out, "unknown" where it names none, and where that stands in it; None where it
    tells of no shortage. `line`: its number, by which a title is known."""
    if not is_prose(text):
        return None
    text = plain(text)
    told = [
        (memory, found.start() + at)
        for found in SENTENCE.finditer(text)
        for memory, at in _accounts_in(found[0], words)
    ]
    titled = compiled(words.headline).search(text) if not told and 0 < line <= TITLE_LINES else None
    if titled is not None and not compiled(words.unsaid).search(text):
        told = [(_memory_of(text, titled.span(), words), titled.start())]
    return next((one for one in told if one[0] != "unknown"), told[0] if told else None)


_EMPHASIS = regex(r"(?<![\w*])(\*{1,3}|__)(?=[^\s*])([^*\n]{1,160}?)(?<=[^\s*])\1(?![\w*])")


def plain(text: str) -> str:
    """A text without the marks of Markdown that stress a part of it."""
    return _EMPHASIS.sub(r"\2", text)


def is_prose(line: str) -> bool:
    """Whether a person may have written the line."""
    return len(line) <= _LONGEST_PAGE and _NOT_PROSE.match(line) is None


def memory_near(told: str, page: str, words: AccountWords) -> Memory:
    """The memory that the sentences around an account name, else those of the whole page; "unknown" where they name
    none or several."""
    sentences = [found[0] for found in SENTENCE.finditer(page)]
    at = [number for number, one in enumerate(sentences) if one.strip() and one.strip() in told]
    near = sentences[max(0, at[0] - _NEAR) : at[-1] + 1 + _NEAR] if at else []
    for among in (near, sentences):
        named = set(_memories_named(among, words))
        if len(named) == 1:
            return named.pop()
    return "unknown"


def _accounts_in(sentence: str, words: AccountWords) -> Iterator[tuple[Memory, int]]:
    for found in compiled(words.short).finditer(sentence):
        start, end = found.span()
        breaks = [one.end() for one in compiled(words.breaks).finditer(sentence) if one.end() <= start]
        before, behind = sentence[breaks[-1] if breaks else 0 : start], sentence[end:]
        asked = re.match(r"[^,;，。.!]*[?？]", behind) is not None and not compiled(words.factive).search(sentence)
        if asked or compiled(words.unsaid).search(before) or compiled(words.unsaid_behind).match(behind):
            continue
        if compiled(words.by_itself).search(found[0]) or compiled(words.happened).search(sentence):
            yield _memory_of(sentence, (start, end), words), start


def _memory_of(sentence: str, span: tuple[int, int], words: AccountWords) -> Memory:
    """The memory whose name stands nearest to the words of a shortage."""
    begin, end = span
    near: list[tuple[int, Memory]] = [
        (max(begin - one.end(), one.start() - end, 0), memory)
        for memory, named in words.memories.items()
        for one in compiled(named).finditer(sentence)
    ]
    return min(near)[1] if near else "unknown"


def _memories_named(sentences: Iterable[str], words: AccountWords) -> Iterator[Memory]:
    return (memory for one in sentences for memory, named in words.memories.items() if compiled(named).search(one))
