"""Reads what a person states of a run in sentences: that memory grew, steps were done, and when it died."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from advisor.crash.account import A_PAGE, SENTENCE, told_in
from advisor.crash.observations import Observation, fitted_in
from advisor.hostile import clean_line
from advisor.knowledge.schema import StatementWords
from advisor.language import say
from advisor.regex import compiled, regex
from advisor.words import Phase

A_NOTE = 400
"""Characters up to which every sentence is about the failure (judgement)."""
_FAILS = regex(
    r"(?ai)(?<![a-z])OOM|out[- ]of[- ]memory|显存|内存|memory"
    r"|\b(?:crash|die[sd]?\b|dying|abort|kill|fail|error|happen|occur|stops?\b)"
    r"|报错|崩|挂了|挂掉|被杀|溢出|失败"
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
    r"(?ai)\b(?:maybe|perhaps|might|could|wonder\w*|suspect\w*|guess\w*|probably|should|try|is it|why)\b"
    r"|\?|？|可能|也许|是不是|难道"
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
    return frozenset(_told(text, words))


def holder_said(text: str, words: StatementWords | None) -> frozenset[str]:
    """ "holder.NAME WORDS" for what the sentences of a person say holds the card; none where they name several."""
    if words is None or len(text) > A_PAGE:
        return frozenset()
    told: dict[str, str] = {}
    for found in SENTENCE.finditer(text):
        said = ((holder, compiled(named).search(found[0])) for holder, named in words.holders.items())
        for holder, one in ((name, one) for name, one in said if one and not _DOUBTS.search(found[0])):
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


def libraries_now(found: Mapping[str, str], seen: Sequence[Observation]) -> dict[str, str]:
    """The versions met in a text, without those with which it ran before; the newer ones as the sentences tell them."""
    now = dict(found)
    for library, (old, newer) in fitted_in(seen).items():
        if now.get(library) == old:
            del now[library]
        if newer:
            now.setdefault(library, newer)
    return now


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
    prose = (found[0] for found in SENTENCE.finditer(_WRAPPED.sub(" ", text)))
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
