"""Reads what a person states of a run in sentences: which memory ran out, that it grew, that steps were done, when."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from advisor.hostile import clean_line
from advisor.knowledge.schema import AccountWords, StatementWords
from advisor.language import say
from advisor.regex import compiled, regex
from advisor.words import Memory, Phase

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
    told = [*compiled(words.short).finditer(sentence)]
    breaks = [one.end() for one in compiled(words.breaks).finditer(sentence)] if told else []
    for found in told:
        start, end = found.span()
        before, behind = sentence[max((at for at in breaks if at <= start), default=0) : start], sentence[end:]
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


A_NOTE = 400
"""Characters up to which every sentence is about the failure (judgement)."""
_FAILS = regex(
    r"(?ai)(?<![a-z])OOM|out[- ]of[- ]memory|显存|内存|memory"
    r"|\b(?:crash|die[sd]?\b|dying|abort|kill|fail|error|happen|occur|stops?\b)|报错|崩|挂了|挂掉|被杀|溢出|失败"
)
_WRAPPED = regex(r"(?<=[a-z,`*])\n(?=[a-z`*])")
"""A line break inside a sentence."""
_FUNCTION = regex(r"(?<![\w./=-])(?:\w+(?:\.|::))*(_?[a-z]\w*_\w+)(?:\(\))?(?![\w./(\[-]|\s*=)", re.ASCII)
"""A function as people name one: not a path, an option, or what is set to a value."""
_QUOTED = 80
"""Characters of the words that are quoted."""
SHARED, ON = "shared.", "on."
FIRST, SECOND = "first_step", "second_step"
FACT = "fact."
BEHIND = "behind."
HOLDER, HOST_HOLDER = "holder.", "host_holder."
_DOUBTS = regex(
    r"(?ai)\b(?:maybe|perhaps|might|could|wonder\w*|suspect\w*|guess\w*|probably|should(?! (?:sleep|be)))\b"
    r"|\b(?:try|is it|why)\b|\?|？|可能|也许|是不是|难道"
)
"""Words of one who asks or guesses."""
_RISEN = 1.15
"""Times that memory has to have risen between two sizes that a sentence names (judgement)."""
_UNITS: Mapping[str, int] = {"m": 1, "g": 1024, "t": 1024 * 1024}


def statements_in(text: str, words: StatementWords | None) -> frozenset[str]:
    """The names of what the sentences of a page tell: "grows", "grows.gpu", "grows.host", "steps", "shared.HOW" for
    how the states are shared, "on.KNOB", "first_step", "second_step", "behind.PHASE" of one that was over right before,
    and "fact.NAME WORDS" for each fact that a sentence tells."""
    if not words or len(text) > A_PAGE:
        return frozenset()
    return frozenset(_told(plain(text), words))


def holder_said(page: str, in_person: str, words: StatementWords | None) -> frozenset[str]:
    """ "holder.NAME WORDS" for what the sentences of a person say holds the card; none where they name several."""
    text = plain(page if len(page) <= A_NOTE else in_person)
    if words is None or len(text) > A_PAGE:
        return frozenset()
    told: dict[str, str] = {}
    for found in SENTENCE.finditer(text):
        for holder, named in words.holders.items() if not _DOUBTS.search(found[0]) else ():
            if (one := compiled(named).search(found[0])) is not None:
                told.setdefault(holder, one[0])
    return frozenset(f"{HOLDER}{name} {clean_line(quoted, _QUOTED)}" for name, quoted in told.items() if len(told) == 1)


def runs_told(text: str, words: StatementWords | None) -> dict[str, int]:
    """Memory → on how many GPUs the run filled it, in the order of the text, where the sentences tell of two runs of
    which each filled another memory; {} where they do not."""
    told: dict[str, int] = {}
    if words is None or not words.numbered or len(text) > A_PAGE:
        return told
    for found in SENTENCE.finditer(text):
        filled = told_in(found[0], words.account)
        counts = {int(next(filter(None, one.groups()))) for one in compiled(words.numbered).finditer(found[0])}
        if filled and filled[0] != "unknown" and len(counts) == 1:
            told.setdefault(filled[0], counts.pop())
    return told if len(told) > 1 and len(set(told.values())) > 1 else {}


def _told(text: str, words: StatementWords) -> Iterator[str]:
    for found in SENTENCE.finditer(text):
        sentence = found[0]
        rose = _rose(sentence, words)
        if rose or compiled(words.grows).search(sentence):
            named = words.account.memories
            places = [place for place in ("gpu", "host") if compiled(named[place]).search(sentence)]
            yield f"grows.{places[0]}" if len(places) == 1 else "grows"
            yield "steps"
        if compiled(words.steps).search(sentence):
            yield "steps"
        if compiled(words.second).search(sentence) and _FAILS.search(sentence):
            yield SECOND
        if not rose and compiled(words.first).search(sentence) and _FAILS.search(sentence):
            yield FIRST
        yield from (f"{SHARED}{how}" for how, named in words.shared.items() if compiled(named).search(sentence))
        if not compiled(words.not_in_use).search(sentence):
            yield from (f"{ON}{knob}" for knob, what in words.switched.items()
                        if compiled(words.in_use.replace("{what}", what)).search(sentence))  # fmt: skip
        if _FAILS.search(sentence):
            yield from (f"{BEHIND}{phase}" for phase, named in words.behind.items() if compiled(named).search(sentence))
        if not _DOUBTS.search(sentence):
            told = ((name, compiled(named).search(sentence)) for name, named in words.host_holders.items())
            yield from (f"{HOST_HOLDER}{name} {clean_line(one[0], _QUOTED)}" for name, one in told if one)
        told = ((name, compiled(named).search(sentence)) for name, named in words.facts.items())
        yield from (f"{FACT}{name} {clean_line(one[0], _QUOTED)}" for name, one in told if one)


def _rose(sentence: str, words: StatementWords) -> bool:
    """Whether memory went from one size to a clearly larger one."""
    found = compiled(words.rose).search(sentence)
    if found is None:
        return False
    sizes = (("low", "unit"), ("high", "unit_"))
    low, high = (float(found[size]) * _UNITS[found[unit].lower()] for size, unit in sizes)
    return high > low * _RISEN


def phase_said(
    text: str, words: StatementWords | None, of_function: Callable[[str], Phase], *, note: bool = False
) -> tuple[Phase, str]:
    """When it died by the sentence that says so, or that names the function in which; and what says it. ("unknown",
    "") where none or several phases are told. `note`: the text tells of a failure, and a few lines of it of nothing
    else."""
    if words is None or len(text) > A_PAGE:
        return "unknown", ""
    every = note and len(text) <= A_NOTE
    prose = (found[0] for found in SENTENCE.finditer(_WRAPPED.sub(" ", plain(text))))
    sentences = [one for one in prose if every or _FAILS.search(one)]
    moments = {
        phase: words.moment.replace("{what}", names.removeprefix("(?ai)")) for phase, names in words.moments.items()
    }
    told: dict[Phase, str] = {}
    for named in (words.phases, moments):
        told = told or {phase: found[0] for one in reversed(sentences) for phase, how in named.items()
                        if (found := compiled(how).search(one))
                        and not _is_over(one, words.behind.get(phase))}  # fmt: skip
    if not told:
        called = ((of_function(found[1]), found[1]) for one in sentences for found in _FUNCTION.finditer(one))
        told = {phase: name for phase, name in called if phase != "unknown"}
    if len(told) != 1:
        return "unknown", ""
    ((phase, quoted),) = told.items()
    return phase, say("the words “{quoted}”", quoted=clean_line(quoted, _QUOTED))


_AFTER = regex(r"(?ai)\bafter\b|后")


def _is_over(sentence: str, behind: str | None) -> bool:
    """Whether a sentence tells that a phase was over before it died."""
    found = compiled(behind).search(sentence) if behind else None
    return found is not None and _AFTER.search(found[0]) is not None
