"""Reads what a person observed: which setting, lever, version, number of cards or moment of a run worked, failed or did
not help, and what there is no more of.

A sentence is taken apart into clauses. A clause that tells one outcome tells it of what it names; one that tells an
outcome alone tells it of what the clause before it names, and of a number alone where that one names a setting. Where
it is not clear which outcome belongs to what, nothing is observed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.account import A_PAGE, SENTENCE
from advisor.hostile import clean_line
from advisor.knowledge.schema import ObservationWords, StatementWords
from advisor.regex import regex
from advisor.script.sentences import settings_named

Outcome = Literal["worked", "failed", "no_help", "ruled_out"]
Kind = Literal["setting", "lever", "library", "cards", "part", "resource"]
Change = Literal["", "up", "down", "off"]
OUTCOMES: tuple[Outcome, ...] = ("worked", "failed", "no_help", "ruled_out")
_LONGEST = 600
"""Characters of a sentence that somebody writes by hand (judgement)."""
_QUOTED = 140
"""Characters of the sentence that are kept."""
_NAME_GOES_ON = regex(r"(?:[A-Za-z0-9_]|\.(?=[A-Za-z_]))*(?: (?:size|len\w*))?", re.ASCII)
_OPTION = regex(r"(?<![\w-])--(?:no-)?([A-Za-z][\w-]{2,60})|`([a-z]\w*_\w+)`|(?<![\w./$-])([a-z]\w*_\w+)(?![\w./(\[])")
_AT = regex(r"(?:[^\d,.;]{0,24}\bfrom \d\S* to |[^\d,.;]{0,24}?)(\d[\d.,]*[kK]?)", re.ASCII)
"""A value behind the name of its setting."""
_BEFORE = regex(r"(?<![\w.])(\d[\d.]*[kK]?)[ -](?:tokens? )?\Z", re.ASCII)
_SET = regex(r"[`\"']?(?:\s?[:=]\s?|(?: from \S+)? to )[`\"']?([\w./-]*\w)")
_THOUSANDS = regex(r"(?<![\w.])(\d{1,3}[kK])\b", re.ASCII)
"""Tokens of a row, as people write them."""
_WORD = regex(r"[\w.-]+")
_VERSION = r"v?(\d{1,4}(?:\.\d{1,5}){1,3}(?:\.?(?:post|rc|dev)\d{1,4})?)(?!\w|\.\d)"
_BARE_VERSION = regex(rf"(?<![\w.]){_VERSION}", re.ASCII)
_BARE = regex(
    r"(?<![\w./])(\d[\d.]*[kK]?)(?![\w.]*\w|/|[ -]?(?:%|[gmt]i?b\b|[a-z]*steps?|epochs?|iter|hours?|min|步|轮|小时))",
    re.ASCII,
)
_PLACED = regex(
    r"^[\s`*\"']*(?:(?:but|and|with|at|for|on|using|a|an|the|of|only|even|if|when) )*\Z"
    r"|(?:\b(?:with|at|for|on|to|w)\b|[到用])[\s`]*\Z"
)
"""What stands before a number that is a setting's by itself."""
_IF = regex(r"\s*(?:if|when|once|with)\b")


class Observation(Struct, frozen=True):
    """What somebody saw of one thing."""

    outcome: Outcome
    kind: Kind
    name: str
    """A setting's key; the lever, library, part or resource by its name here."""
    value: str = ""
    old: str = ""
    """The value or version from which it was moved."""
    change: Change = ""
    """In which way it was moved, where that is said."""
    lever: str = ""
    """The kind of step that it is, where the words of sizes and switches tell."""
    named: str = ""
    """Name and value as they are written."""
    began: bool = False
    """It was set so, or raised, and then it failed."""
    only: bool = False
    """With this alone."""
    contrast: bool = False
    """The sentence tells of something that worked and of something that failed."""
    said: str = ""
    line: int = 0


class _Subject(Struct, frozen=True):
    """Something that a clause names."""

    kind: Kind
    name: str
    start: int
    end: int
    value: str = ""
    lever: str = ""
    named: str = ""
    old: str = ""


class _Clause(Struct):
    """A part of a sentence: what it names, and how that went."""

    text: str
    subjects: list[_Subject]
    outcome: Outcome | None
    change: Change
    began: bool
    only: bool
    hedged: bool


def observations_in(text: str, words: StatementWords | None) -> tuple[Observation, ...]:
    """What the sentences of a page tell, in order, each once."""
    if words is None or words.observed is None or len(text) > A_PAGE:
        return ()
    found: dict[Observation, None] = {}
    line, at = 1, 0
    for sentence in SENTENCE.finditer(text):
        line, at = line + text.count("\n", at, sentence.start()), sentence.start()
        if len(sentence[0]) <= _LONGEST:
            for one in _observed(sentence[0], words, words.observed):
                found.setdefault(replace(one, line=line))
    return tuple(found)


def told_as_working(text: str, words: StatementWords | None) -> bool:
    """Whether a line tells nothing but what worked: no command or setting in it is the run's that died."""
    if words is None or words.observed is None or len(text) > _LONGEST:
        return False
    every = [one for found in SENTENCE.finditer(text) for one in _observed(found[0], words, words.observed)]
    return bool(every) and all(one.outcome == "worked" and one.kind in ("setting", "lever") for one in every)


def _observed(sentence: str, words: StatementWords, told: ObservationWords) -> Iterator[Observation]:
    if not re.search(told.any_outcome, sentence):
        return
    clauses = _joined([_clause(one, words, told) for one in re.split(told.breaks, sentence) if one and one.strip()])
    asked = re.search(told.asked, sentence) is not None
    outcomes = {one.outcome for one in clauses}
    tried = re.search(told.tried, sentence) and "worked" not in outcomes
    said = clean_line(sentence.strip(), _QUOTED)
    valued: _Subject | None = None
    for clause in clauses:
        outcome = clause.outcome or ("no_help" if tried else None)
        for one in clause.subjects or _numbers(clause, valued):
            valued = one if one.value else valued
            if outcome in ("no_help", "ruled_out") or (outcome and not asked and not clause.hedged):
                yield Observation(
                    outcome, one.kind, one.name, one.value, one.old, clause.change, one.lever,
                    clean_line(one.named, _QUOTED), clause.began, clause.only, {"worked", "failed"} <= outcomes, said,
                )  # fmt: skip


def _joined(clauses: list[_Clause]) -> list[_Clause]:
    """The clauses, where one names something and the next tells how it went as one."""
    joined: list[_Clause] = []
    for clause in clauses:
        before = joined[-1] if joined else None
        alone = clause.outcome is not None and not clause.subjects and not _BARE.search(clause.text)
        if before is not None and before.subjects and before.outcome is None and alone:
            before.outcome, before.began = clause.outcome, before.began or clause.began
            before.hedged = before.hedged or clause.hedged
        else:
            joined.append(clause)
    for before, after in pairwise(joined):  # "it works, if I set X"
        goes_on = not before.subjects and _IF.match(after.text)
        if before.outcome and after.outcome is None and (goes_on or after.text.lstrip().startswith("`")):
            after.outcome = before.outcome
    return joined


def _clause(text: str, words: StatementWords, told: ObservationWords) -> _Clause:
    moved: tuple[tuple[Change, str], ...] = (
        ("off", told.left_out), ("down", words.lowered), ("up", told.raised), ("", ""),
    )  # fmt: skip
    change = next(name for name, pattern in moved if re.search(pattern, text))
    began, only, hedged = (re.search(one, text) is not None for one in (told.began, told.only, told.hedged))
    return _Clause(text, _subjects(text, words, told), _outcome(text, told), change, began, only, hedged)


def _outcome(text: str, told: ObservationWords) -> Outcome | None:
    """The one outcome that a clause tells; None where it tells none or several."""
    if re.search(told.ruled_out, text):
        return "ruled_out"
    if re.search(told.no_help, text):
        return "no_help"
    both: tuple[tuple[str, tuple[Outcome, Outcome]], ...] = (
        (told.worked, ("worked", "failed")), (told.failed, ("failed", "worked")),
    )  # fmt: skip
    found = {
        outcomes[re.search(told.denied, text[: one.start()]) is not None]
        for pattern, outcomes in both
        for one in re.finditer(pattern, text)
    }
    if len(found) != 1:
        return None
    return "no_help" if found == {"failed"} and re.search(told.even, text) else found.pop()


def _subjects(text: str, words: StatementWords, told: ObservationWords) -> list[_Subject]:
    """What a clause names: settings with their values, options, levers by their words, cards, versions, parts."""
    found: list[_Subject] = []
    named = {**words.sizes, **words.switches}
    levers = {lever: one.span() for lever, pattern in named.items() if (one := re.search(pattern, text))}

    def add(kind: Kind, name: str, start: int, end: int, value: str = "", old: str = "") -> None:
        if any(start < one.end and one.start < end for one in found):
            return
        lever = next((each for each, (first, _) in levers.items() if start <= first < end), "")
        if not value and kind == "setting":
            value = (_SET.match(text, end) or ("", ""))[1]
        if not value and lever in words.sizes:
            value = (_AT.match(text, end) or _BEFORE.search(text[:start]) or ("", ""))[1].rstrip(".,")
        spelt = name if kind == "setting" else text[start:end]
        spelt = f"{spelt} {value}".rstrip() if kind in ("setting", "lever") else spelt
        found.append(_Subject(kind, name, start, end, value, lever, spelt, old))

    data = text.encode()
    for each in settings_named(data):
        start, end = (len(data[:place].decode("utf-8", "replace")) for place in each.whole)
        key = next((word for word in _WORD.findall(text[start:end]) if word.lower() == each.key), each.key)
        add("setting", key, start, end, data[each.start : each.end].decode("utf-8", "replace").strip('"'))
    for option in _OPTION.finditer(text):
        add("setting", next(filter(None, option.groups())), *option.span())
    for lever, (start, end) in levers.items():
        while start and re.match(r"[A-Za-z0-9_.-]", text[start - 1]):
            start -= 1
        add("lever", lever, start, end + len(_NAME_GOES_ON.findall(text, end)[0]))
    if not found and len(rows := list(_THOUSANDS.finditer(text))) == 1:  # a row, as nothing else is counted so
        found.append(_Subject("lever", "length", *rows[0].span(), rows[0][1], "length", rows[0][0]))
    if len(cards := list(re.finditer(words.cards, text))) == 1:
        add("cards", "cards", *cards[0].span(), cards[0][0].strip())
    for library, pattern in _libraries(tuple(words.libraries.items())):
        if (met := pattern.search(text)) is not None:
            add("library", library, *met.span(), met[2] or met[1] or "", (met[1] or "") if met[2] else "")
    tables: tuple[tuple[Kind, Mapping[str, str]], ...] = (("part", told.parts), ("resource", told.resources))
    for kind, table in tables:
        spans = ((name, one) for name, pattern in table.items() if (one := re.search(pattern, text)))
        found += [_Subject(kind, name, *one.span(), named=one[0]) for name, one in spans]
    return found


def _numbers(clause: _Clause, before: _Subject | None) -> list[_Subject]:
    """A number by itself is of the setting, the library or the cards that the clause before names with another."""
    if before is None or clause.outcome is None:
        return []
    bare = _BARE_VERSION if before.kind == "library" else _BARE
    found = [one for one in bare.finditer(clause.text) if _PLACED.search(clause.text[: one.start()])]
    if len(found) != 1 or found[0][1] == before.value:
        return []
    value = found[0][1].rstrip(".")
    return [replace(before, value=value, named=before.named.replace(before.value, value), old="")]


_TO = r"(?: ?(?:to|->|→|=>|升级到|升到|更新到|到|至) ?)"


@cache
def _libraries(spelled: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Library → its name, with the version behind it, or with two of which it went from one to the other."""
    behind = r"(?:[ =@:`\"'-]{0,4}(?:version |版本)?(?:from |to |从|降级到|升级到|降到|升到|到)?"
    behind += rf"{_VERSION}(?:{_TO}{_VERSION})?)?"
    return tuple((name, re.compile(rf"(?ai)(?<![\w./-])(?:{one})(?![\w-]*[a-z_]){behind}")) for name, one in spelled)


def in_vain(seen: Sequence[Observation], words: StatementWords) -> dict[str, str]:
    """Lever → the words that tell that it was no help: of a size one that was made smaller."""
    return {
        one.lever: one.said
        for one in seen
        if one.outcome == "no_help" and one.lever and (one.lever not in words.sizes or one.change == "down")
    }


def cures(seen: Sequence[Observation]) -> list[Observation]:
    """The settings and levers with which it worked. Where the sentence tells of something that failed, too, the two may
    be other runs, but for what was left out and fails where it is not."""
    failed = {one.name for one in seen if one.outcome in ("failed", "no_help")}
    return [
        one
        for one in seen
        if one.outcome == "worked"
        and one.kind in ("setting", "lever")
        and (one.change == "off" if one.contrast else one.name not in failed)
    ]


def trigger(seen: Sequence[Observation]) -> Observation | None:
    """The size with which it began to fail: it was set so or raised, or it worked with another."""
    worked = {(one.kind, one.name): one.value for one in seen if one.outcome == "worked" and one.value}
    for one in seen:
        before = worked.get((one.kind, one.name), one.value)
        began = one.began and one.lever and (one.change == "up" or (one.value and not one.change))
        if one.outcome == "failed" and (one.kind == "cards" or one.lever) and (began or before != one.value):
            return one
    return None


def fitted_in(seen: Sequence[Observation]) -> dict[str, tuple[str, str]]:
    """Library → the version with which it ran, and the one with which it does not, "" where nobody says."""
    found: dict[str, tuple[str, str]] = {}
    for one in seen:
        if one.kind == "library" and one.outcome == "worked" and one.value:
            found.setdefault(one.name, (one.value, ""))
    for one in seen:
        if one.kind == "library" and one.outcome == "failed" and one.value:
            old = found.get(one.name, (one.old, ""))[0]
            if old and old != one.value:
                found[one.name] = old, one.value
    return found


def updated_in(seen: Sequence[Observation]) -> tuple[str, str] | None:
    """The library since the update of which it fails, and its version now, "" where nobody says."""
    told = (
        one for one in seen if one.kind == "library" and one.outcome == "failed" and one.began and one.change == "up"
    )
    return next(((one.name, one.value) for one in told if one.name not in fitted_in(seen)), None)


def resumes_only(seen: Sequence[Observation]) -> str:
    """The words that it fails only where it takes up a checkpoint; "" where nobody says so."""
    parts = [one for one in seen if one.kind == "part"]
    fresh = any(one.name == "fresh" and one.outcome == "worked" for one in parts)
    for one in parts:
        if one.name == "resume" and (
            (one.outcome == "failed" and (fresh or one.only)) or (one.outcome == "worked" and one.change == "off")
        ):
            return one.said
    return ""


def ruled_out(seen: Sequence[Observation]) -> frozenset[str]:
    """Resources of which there is no more."""
    return frozenset(one.name for one in seen if one.outcome == "ruled_out" and one.kind == "resource")
