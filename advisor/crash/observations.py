"""Reads what a person tells: what worked, failed or was no help (a setting, lever,
version, number of cards, part of a run), and what there is no more of.

A clause that tells one outcome tells it of what it names; one that tells an outcome alone tells it of what the clauses
or the sentence before it name, and of a number alone where one of these gives a setting another; a line that heads a
list tells it of the list. Where it is not clear which outcome belongs to what, nothing is observed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from advisor.crash.statements import A_PAGE, SENTENCE, is_prose, plain
from advisor.hostile import clean_line
from advisor.knowledge.schema import ObservationWords, StatementWords
from advisor.regex import compiled, regex
from advisor.script.pasted import settings_named
from advisor.words import Memory

Went = Literal["", "worked", "failed", "no_help", "ruled_out"]
Kind = Literal["setting", "lever", "library", "cards", "part", "resource", "run"]
Moved = Literal["", "up", "down", "off", "on"]
_Ways = tuple[tuple[str, Went], ...]
_LONGEST, _QUOTED = 600, 140
"""Characters of a sentence that somebody writes by hand, and of what is kept of it (judgement)."""
_NAME_GOES_ON = regex(r"(?:[A-Za-z0-9_]|\.(?=[A-Za-z_]))*(?: (?:size|len\w*))?", re.ASCII)
_OPTION = regex(
    r"(?<![\w-])--(?:no-)?([A-Za-z][\w-]{2,60})|`((?:\w+[.])*[A-Za-z]\w*[._][A-Za-z]\w*)(?:\(\))?`"
    r"|(?<![\w./$-])(?<!\bin )(?<!during )((?:[a-z]\w*\.)*[a-z]\w*_\w+)(?![\w./\[(]|`? (?:stage|step|phase)\b)",
    re.ASCII,
)
_WORD = regex(r"[\w.-]+")
_AT = regex(r"(?:[^\d,.;]{0,24}\bfrom \d\S* to |[^\d,.;]{0,24}?)(\d[\d.,]*[kK]?)", re.ASCII)
_SET = regex(
    r"[`\"']*(?:\s?(?::|==?)\s?|(?: from \S+)? to |(?: ?从 ?\S+?)? ?(?:改[成为到]|[设调降](?:低|整|成|到|置|为)+) ?"
    r"|(?: (?:is|was|are|stays?|kept|already|set))+ (?:to |at )?(?=[`\"']?(?:\d|[Tt]rue|[Ff]alse|[Nn]one|on\b|off\b)))"
    r"[`\"']?([\w./-]*\w)",
    re.ASCII,
)
"""A value behind the name of a size, and behind any other."""
_BEFORE = regex(r"(?<![\w.])(\d[\d.]*[kK]?)[ -](?:tokens? |(?:for|of|as) (?:the )?[`\"']*)?\Z", re.ASCII)
_THOUSANDS = regex(r"(?<![\w.])(\d{1,3}[kK])\b(?! ?(?:\w*steps?|updat|iter|sampl|example|row|prompt|步|条))", re.ASCII)
"""Tokens of a row, as people write them."""
_FROM_TO = regex(
    r"(?:\bfrom|从)\s?[A-Za-z_.`]*=?(\d[\d.]*[kK]?)(?!\.\d)`? ?(?:to|->|→|[升降调改]*[到至为成])"
    r"\s?[A-Za-z_.`]*=?(\d[\d.]*[kK]?)"
)
"""A value that was set in the place of another."""
_VERSION = r"v?(\d{1,4}(?:\.\d{1,5}){1,3}(?:\.?(?:post|rc|dev)\d{1,4})?)(?!\w|\.\d)"
_BARE_VERSION = regex(rf"(?<![\w.]){_VERSION}", re.ASCII)
_BARE = regex(
    r"(?i)(?<![\w./])(\d[\d.]*[kK]?)(?![\w.]*\w|/|[ -]?(?:%|[gmt]i?b\b|\w*steps?|epoch|iter|hour|min|步|轮|小时))",
    re.ASCII,
)
_PLACED = regex(
    r"^[\s`*\"']*(?:(?:but|and|with|at|for|on|since|under|using|a|an|the|of|only|even|if|when) )*\Z"
    r"|(?:\b(?:with|at|for|on|to|w)\b|[到用成为回])[\s`]*\Z"
)
"""What stands before a number that is a setting's by itself."""
_PRINTED = regex(r"\s*(?:\d+ {3,}|-*> ?\d|File \"|(?:raise|return|assert|self)\b|[\w.]*(?:Error|Exception|Warning)\b)")
"""What programs print: a line of code or of an error."""
_ITEM = regex(r"\s*(?:[-*+•]|\d{1,2}[.)、])\s*\S")
_SETTING_LINE = regex(
    r"\s*(?:(?:[-*+•]|\d{1,2}[.)])\s+)?`?(?:export\s+)?[+-]{0,2}(?=\w*[._-]\w|\w+:\s)([A-Za-z][\w.@-]*)(?:\s*[=:]\s*|\s+)"
    r"[`\"']?([\w.,:/@-]*\w)[`\"']?\s*[,\\]?\s*(?:#.*)?"
)
"""A line that is one setting and its value."""
_HEAD = regex(r"\s*[\w-]+:\s*|\s*```\w*\s*")
_MOVED: tuple[Kind, ...] = ("setting", "lever", "part")
_SET_SO: tuple[Kind, ...] = ("setting", "lever", "library", "cards")
_NUMBER = regex(r" ?(\d+)")
_CONTRARY: Mapping[Went, Went] = {"worked": "failed", "failed": "worked"}
FRESH = "fresh"
"""The part of a run that begins from nothing."""
_SHORT, _SOLVED = 60, 3
"""Characters of a sentence between what is named and its outcome; sentences after "it is solved" (judgement)."""


class Observation(Struct, frozen=True):
    """What somebody saw of one thing."""

    kind: Kind
    name: str
    """A setting's key; the lever, library, part or resource by its name here."""
    value: str = ""
    old: str = ""
    """The version from which it was moved."""
    lever: str = ""
    """The kind of step that it is, where the words of sizes and switches tell."""
    named: str = ""
    """Name and value as they are written."""
    outcome: Went = ""
    change: Moved = ""
    """In which way it was moved, where that is said."""
    began: bool = False
    """It was set so before."""
    only: bool = False
    """With this alone."""
    contrast: bool = False
    """The sentence tells of something that worked and of something that failed."""
    implied: bool = False
    """Told by its contrary alone: without it, or from it to another value."""
    said: str = ""
    line: int = 0


class _Clause(Struct):
    """A part of a sentence: what it names, and how that went."""

    text: str
    named: list[Observation]
    outcome: Went
    change: Moved
    cues: set[str]


def observations_in(text: str, words: StatementWords | None) -> tuple[Observation, ...]:
    """What the sentences of a page tell, in order, each once."""
    found: dict[Observation, None] = {}
    if words is None or words.observed is None or len(text) > A_PAGE:
        return ()
    page, heads = _Sentences(words, words.observed), _NOTHING
    for number, line in enumerate(text.split("\n"), 1):
        told: list[Observation] = []
        page.open = page.open if line.strip() else ""
        if (one := _SETTING_LINE.fullmatch(line)) is not None and heads[0]:
            told = [Observation("setting", one[1], one[2], named=f"{one[1]} {one[2]}", outcome=heads[0], said=heads[1])]
        elif line.strip() and not _HEAD.fullmatch(line) and is_prose(line) and not _PRINTED.match(line):
            item = _ITEM.match(line) is not None
            told, last = page.read(plain(line), heads if item else _NOTHING)
            heads = heads if item else last  # it may head a list
        found |= dict.fromkeys(replace(each, line=number) for each in told)
    return tuple(found)


_NOTHING: tuple[Went, str] = ("", "")


class _Sentences:
    """The sentences of a page, one after the other, with what the last of them leaves for the next."""

    def __init__(self, words: StatementWords, told: ObservationWords) -> None:
        self.words, self.told = words, told
        self.open = ""
        """The sentence before, where it tells no outcome of what it names."""
        self.failing = ""
        """The words of the sentence before, where it tells of a failure."""
        self.solved = 0
        """For how many sentences more one goes on in which all was solved."""

    def read(self, line: str, heads: tuple[Went, str]) -> tuple[list[Observation], tuple[Went, str]]:
        """What a line tells, and the outcome that it tells of a list below it; `heads`: that of the line above."""
        found: list[Observation] = []
        last = _NOTHING
        for sentence in (one[0] for one in SENTENCE.finditer(line) if len(one[0]) <= _LONGEST and one[0].strip()):
            parts = [(one, _outcome(one, self.told)) for one in compiled(self.told.breaks).split(sentence) if one]
            outcomes = {outcome for _, outcome in parts} - {""}
            tried: Went = heads[0] or ("no_help" if _says(self.told, "tried", sentence) else "")
            if outcomes or tried or self.failing or self.solved:
                found += self._observed(sentence, self._clauses(parts), tried)
            elif len(sentence) >= _SHORT or any(one.named for one in self._clauses(parts)):
                self.open = sentence
            outcome: Went = outcomes.pop() if len(outcomes) == 1 else tried if not heads[0] else ""
            last = (outcome if _says(self.told, "heads", sentence) else ""), clean_line(sentence.strip(), _QUOTED)
        return found, last

    def _clauses(self, parts: Sequence[tuple[str, Went]]) -> list[_Clause]:
        return _joined([_clause(one, outcome, self.words, self.told) for one, outcome in parts if one.strip()])

    def _linked(self, outcome: Went, said: str) -> Iterator[Observation]:
        """What the sentence before names, with the outcome that this one tells alone."""
        parts: list[tuple[str, Went]] = [(one, "") for one in compiled(self.told.breaks).split(self.open) if one]
        said = clean_line(f"{self.open.strip()} {said}", _QUOTED)
        for clause in self._clauses(parts):
            for one in clause.named if "asked" not in clause.cues else []:
                if outcome == "no_help" or ("hedged" not in clause.cues and (outcome == "worked" or self._holds(one))):
                    yield replace(one, outcome=outcome, change=clause.change, said=said)

    def _observed(self, sentence: str, clauses: list[_Clause], tried: Went) -> Iterator[Observation]:
        """`tried`: the outcome of the list of which it is an item, or of what it says was tried."""
        words, told, said = self.words, self.told, clean_line(sentence.strip(), _QUOTED)
        outcomes = {one.outcome for one in clauses}
        contrast = {"worked", "failed"} <= {one.outcome for one in clauses if one.named or "otherwise" not in one.cues}
        tried = "" if "worked" in outcomes else tried
        asked = bool(clauses) and "asked" in clauses[0].cues
        named = any(_counts(one) for one in clauses)
        alone = outcomes - {"", "ruled_out"} if not named and not asked else set()
        # what it speaks of it may name itself, in words that are not known
        own, linked = (_says(told, cue, sentence) for cue in ("own", "linked"))
        alone -= {"worked", "no_help"} if own else set() if linked else {"no_help"}
        if len(alone) == 1 and not any("hedged" in one.cues for one in clauses):
            yield from self._linked(next(iter(alone)), said)
        before: Observation | None = None
        fails = self.failing or (said if "failed" in outcomes and "worked" not in outcomes else "")
        for clause in clauses:
            open_, hedged = not asked and "asked" not in clause.cues, "hedged" in clause.cues
            for one in clause.named + _numbers(clause, before):
                valued = before is not None and before.value != ""  # a number to come is another one of its kind
                before = one if one.kind in _SET_SO and (one.value or (one.kind in _MOVED and not valued)) else before
                advised = one.kind == "library" and one.value and "advised" in clause.cues
                cured = bool(
                    hedged and ((advised and (fails or "failed" in outcomes)) or (self.solved and clause.change))
                )
                outcome = clause.outcome or tried or ("worked" if cured else "")
                cues, apart = clause.cues, contrast and "contrary" not in clause.cues
                seen = replace(one, outcome=outcome, change=clause.change, began="began" in cues, said=said,
                               only="only" in cues, contrast=apart or "formerly" in cues)  # fmt: skip
                if outcome == "worked" and one.kind == "part" and not (contrast or clause.change or one.name == FRESH):
                    continue  # it was done, and nothing is told of it
                if outcome in ("no_help", "ruled_out") or (outcome and open_ and (cured or not hedged)):
                    yield seen
                    yield from _contrary(seen, words)
                if fails and not outcome and open_ and not hedged and self._holds(one) and "in_force" in clause.cues:
                    yield replace(seen, outcome="failed", change="", began=False, said=fails)
        if outcomes - {""} or named or len(sentence) >= _SHORT:
            self.open = "" if outcomes - {""} else sentence
        self.failing = said if outcomes & {"failed", "no_help"} and "worked" not in outcomes and not asked else ""
        self.solved = _SOLVED if alone == {"worked"} else max(0, self.solved - 1)

    def _holds(self, one: Observation) -> bool:
        """Whether it is what a run may have been set to."""
        return (bool(one.value) and one.kind in _MOVED) or one.lever in self.words.switches


def _counts(clause: _Clause) -> bool:
    """Whether a clause names what an outcome may be of: not a machine, or which run it is, alone."""
    return any(one.kind not in ("resource", "run") for one in clause.named)


def _contrary(one: Observation, words: StatementWords) -> Iterator[Observation]:
    """What an outcome without something, or of a value in another's place, tells of the thing, or of the other."""
    switched = one.change in ("off", "on") and not one.value and one.lever not in words.sizes and one.kind in _MOVED
    old = one.old or {"true": "False", "false": "True"}.get(one.value.lower() if one.kind == "setting" else "", "")
    if one.outcome == "no_help" and one.value and one.kind != "part":
        yield replace(one, outcome="failed", change="", implied=True)
    if one.outcome in _CONTRARY and (old or switched):
        moved = replace(one, value=old, old="", named=one.named.replace(one.value, old), change="")
        moved = moved if old else replace(one, change="" if one.change == "off" else "off")
        yield replace(moved, outcome=_CONTRARY[one.outcome], began=False, implied=True)


def of_the_run(settings: Mapping[str, str], seen: Sequence[Observation]) -> dict[str, str]:
    """The settings that a person names, without those with which it worked: they are none of the run that died."""
    worked = {(one.name, one.value) for one in seen if one.outcome == "worked"}
    failed = {one.name: one.value for one in seen if one.outcome in ("failed", "no_help") and one.kind == "setting"}
    kept = {name: value for name, value in settings.items() if (name, value) not in worked}
    return kept | {name: value for name, value in failed.items() if name in settings and value}


def _joined(clauses: list[_Clause]) -> list[_Clause]:
    """The clauses, each with its outcome: that of the one behind it which names nothing, that of the one before it
    which names nothing ("it works, if I set X") or announces it ("it works so: `X`"), or its contrary ("unless")."""
    for place, clause in enumerate(clauses):
        for before in reversed(clauses[:place] if not _counts(clause) and not _placed(clause.text, _BARE) else []):
            if before.outcome or not clause.outcome:
                break
            if _counts(before) or (before.named and before is clauses[place - 1]):
                before.outcome = clause.outcome
                before.cues |= clause.cues & {"began", "hedged"}
    for place, clause in reversed(list(enumerate(clauses))):
        if "under" in clause.cues and not clause.outcome and clause.named:  # it is told of what was so
            behind = next((one for one in clauses[place + 1 :] if one.outcome or _counts(one)), clause)
            told = behind.outcome if behind.named or "under" not in behind.cues else ""
            clause.outcome = "no_help" if told == "failed" and "even" in clause.cues else told
        for one in clauses[: place + 1] if "each" in clause.cues else []:  # several have the value behind them
            value = "".join(_placed(clause.text, _BARE)[:1])
            one.named = [replace(each, value=each.value or value) for each in one.named]
            one.outcome = one.outcome or clause.outcome
    for place, (before, after) in enumerate(pairwise(clauses), 1):
        goes_on = "or_so" in after.cues or (not _counts(before) and "goes_on" in after.cues)
        if "contrary" in after.cues:
            after.outcome = _CONTRARY.get(before.outcome, after.outcome)
        elif not after.outcome and (after.text.lstrip().startswith("`") or goes_on):
            after.outcome = before.outcome
        but = "but" in after.cues and not after.named and not _placed(after.text, _BARE)
        if after.outcome == "failed" and not _counts(after) and (but or "later" in before.cues | after.cues):
            for one in (one for one in clauses[:place] if one.outcome == "worked"):
                one.outcome = "failed"  # it ran until then
    return clauses


def _clause(text: str, outcome: Went, words: StatementWords, told: ObservationWords) -> _Clause:
    ways: dict[Moved, str] = {"off": told.changes["off"], "on": told.changes["on"], "down": words.lowered}
    ways["up"] = told.changes["up"]
    change: Moved = next((name for name, pattern in ways.items() if compiled(pattern).search(text)), "")
    cues = {name for name in told.cues if _says(told, name, text)}
    return _Clause(text, _named(text, words, told), outcome, change, cues)


def _says(told: ObservationWords, cue: str, text: str) -> bool:
    return compiled(told.cues[cue]).search(text) is not None


def _outcome(text: str, told: ObservationWords) -> Went:
    """The one outcome that a clause tells; "" where it tells none or several."""
    by_itself: _Ways = ((told.ruled_out, "ruled_out"), (told.no_help, "no_help"), (told.blamed, "failed"))
    for pattern, outcome in by_itself:
        if compiled(pattern).search(text):
            return outcome
    ways: _Ways = ((told.worked, "worked"), (told.failed, "failed"))
    found = {_CONTRARY[outcome] if compiled(told.denied).search(text[: one.start()]) else outcome
             for pattern, outcome in ways for one in compiled(pattern).finditer(text)}  # fmt: skip
    if len(found) != 1:
        return "worked" if found and _says(told, "cured", text) else ""
    return "no_help" if found == {"failed"} and _says(told, "even", text) else found.pop()


def _named(text: str, words: StatementWords, told: ObservationWords) -> list[Observation]:
    """What a clause names: settings with their values, options, levers by their words, cards, versions, parts."""
    found, taken = list[Observation](), list[tuple[int, int]]()
    tables = (words.sizes | words.switches).items()
    levers = {lever: one.span() for lever, pattern in tables if (one := compiled(pattern).search(text))}
    moved = _FROM_TO.search(text)

    def add(kind: Kind, name: str, start: int, end: int, value: str = "", old: str = "") -> None:
        if any(start < last and first < end for first, last in taken):
            return
        lever = next((each for each, (first, _) in levers.items() if start <= first < end), "")
        if not value and kind in ("setting", "lever"):
            value = (_SET.match(text, end) or ("", ""))[1]
        if not value and lever in words.sizes:
            value = (_AT.match(text, end) or _BEFORE.search(text[:start]) or ("", ""))[1].rstrip(".,")
        if not old and kind in ("setting", "lever") and moved is not None and value in ("", moved[1], moved[2]):
            old, value = moved[1].rstrip("."), moved[2].rstrip(".")
        spelt = name if kind == "setting" else text[start:end]
        spelt = f"{spelt} {value}".rstrip() if kind in ("setting", "lever") else spelt
        taken.append((start, end))
        found.append(Observation(kind, name, value, old, lever, clean_line(spelt, _QUOTED)))

    for each in settings_named(data := text.encode()):
        start, end = (len(data[:place].decode("utf-8", "replace")) for place in each.whole)
        key = next((word for word in _WORD.findall(text[start:end]) if word.lower() == each.key), each.key)
        add("setting", key, start, end, data[each.start : each.end].decode("utf-8", "replace").strip('"'))
    for key, names in (*told.names["spelled"].items(), *told.names["files"].items()):
        for short in compiled(names).finditer(text):
            number = _SET.match(text, short.end()) or _NUMBER.match(text, short.end())
            add("setting", key, *short.span(), number[1] if number and key in told.names["spelled"] else short[0])
    for option in _OPTION.finditer(text):
        value = (_SET.match(text, option.end()) or _BEFORE.search(text[: option.start()]) or ("", ""))[1]
        add("setting", next(filter(None, option.groups())), *option.span(), value)
    libraries = [(name, met) for name, one in _libraries(tuple(words.libraries.items())) if (met := one.search(text))]
    for library, met in libraries:
        if met[1]:
            add("library", library, *met.span(), met[2] or met[1], met[1] if met[2] else "")
    for lever, (start, end) in levers.items():
        while start and re.match(r"[A-Za-z0-9_.-]", text[start - 1]):
            start -= 1
        add("lever", lever, start, end + len(_NAME_GOES_ON.findall(text, end)[0]))
    if not found and len(rows := _THOUSANDS.findall(text)) == 1:  # nothing else is counted so
        found.append(Observation("lever", "length", rows[0], "", "length", rows[0]))
    if len(cards := list(compiled(words.cards).finditer(text))) == 1:
        add("cards", "cards", *cards[0].span(), next(filter(None, cards[0].groups()), ""))
    for library, met in libraries:
        add("library", library, *met.span())
    if moved is not None and not found and _BARE_VERSION.fullmatch(moved[2]):  # the framework's own
        add("library", "", *moved.span(), moved[2], moved[1])
    kind: Literal["part", "resource", "run"]
    for kind in ("part", "resource", "run"):
        said = {(name, one[0] if kind == "run" else ""): one[0]
                for name, pattern in told.names[kind].items() for one in compiled(pattern).finditer(text)}  # fmt: skip
        found += [Observation(kind, name, value, named=as_said) for (name, value), as_said in said.items()]
    return found


def _numbers(clause: _Clause, before: Observation | None) -> list[Observation]:
    """A number or "off" by itself is of the setting, the library or the cards that a clause before names."""
    told = clause.outcome or ("hedged" in clause.cues and before is not None and before.kind == "library")
    if before is None or not told or any(one.kind in _SET_SO for one in clause.named):
        return []
    if clause.change in ("off", "on") and before.kind in ("setting", "lever"):  # without it, or with it
        return [replace(before, value="", named=before.name, old="")]
    bare = _BARE_VERSION if before.kind == "library" else _BARE
    found = _placed(clause.text, bare)
    if len(found) != 1 or found[0] == before.value:
        return []
    named = before.named.replace(before.value, found[0]) if before.value else f"{before.named} {found[0]}"
    return [replace(before, value=found[0], named=named, old="")]


def _placed(text: str, bare: re.Pattern[str]) -> list[str]:
    """The numbers that may be a setting's by where they stand."""
    return [one[1].rstrip(".") for one in bare.finditer(text) if _PLACED.search(text[: one.start()])]


@cache
def _libraries(spelled: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Library → its name, with the version behind it, or with two of which it went from one to the other."""
    behind = r"(?:[ =@:`\"'(<>~-]{0,4}(?:version |(?:up|down)\w+ |版本)?"
    behind += r"(?:from |to |从|[降升退换切回][级退换]?[到回成至]|到)?[`\"']?"
    behind += rf"{_VERSION}(?: ?(?:to|->|→|=>|升级到|升到|更新到|到|至) ?{_VERSION})?)?"
    return tuple((name, re.compile(rf"(?ai)(?<![\w./-])(?:{one})(?![\w-]*[a-z_]){behind}")) for name, one in spelled)


def in_vain(seen: Sequence[Observation], words: StatementWords) -> dict[str, str]:
    """Lever → the words that tell that it was no help: of a size one that was made smaller."""
    tried = (one for one in seen if one.outcome == "no_help" and one.lever)
    return {one.lever: one.said for one in tried if one.lever not in words.sizes or one.change == "down"}


def cures(seen: Sequence[Observation]) -> list[Observation]:
    """The settings and levers with which it worked. Where the sentence tells of something that failed, too, or another
    setting is blamed, these may be other runs, but for what was left out, and for another value of the same (of shorter
    rows everybody knows)."""
    seen = [one for one in seen if not one.implied or (one.change == "off" and one.outcome == "worked")]
    failed = {one.name: one.value for one in seen if one.outcome in ("failed", "no_help") and one.change != "on"}
    blamed = (began := trigger(seen)) is not None and began.kind != "cards"
    worked = (one for one in seen if one.outcome == "worked" and one.kind in ("setting", "lever"))
    worked = (one for one in worked if one.kind == "setting" or one.change or not one.value)
    return [
        one for one in worked
        if one.change == "off" or (one.name in failed and one.lever != "length" and failed[one.name] != one.value)
        or not (one.contrast or one.name in failed or blamed)
    ]  # fmt: skip


def memory_moved(seen: Sequence[Observation]) -> Memory:
    """The memory that ran out by what offloading did to it: it moves states from the card to the host."""
    told = [(one.outcome, one.change) for one in seen if one.lever == "offload" and not one.implied]
    worked = any(outcome == "worked" and change != "off" for outcome, change in told)
    return "gpu" if worked else "host" if ("failed", "on") in told else "unknown"


def trigger(seen: Sequence[Observation]) -> Observation | None:
    """The size with which it began to fail: it was set so or raised, or it worked with another."""
    seen = [one for one in seen if not one.implied]
    worked = {(one.kind, one.name): one.value for one in seen if one.outcome == "worked" and one.value}
    for one in seen:
        raised = one.began and one.lever and (one.change in ("up", "on") or (one.value and not one.change))
        other = one.value != worked.get((one.kind, one.name), one.value) and (one.lever or one.kind == "cards")
        if one.outcome == "failed" and (raised or other):
            return one
    return None


def fitted_in(seen: Sequence[Observation]) -> dict[str, tuple[str, str]]:
    """Library → the version with which it ran, and the one with which it does not, "" where nobody says."""
    told = [one for one in seen if one.kind == "library" and one.value]
    ran = {one.name: one.value for one in reversed(told) if one.outcome == "worked"}
    failed = {one.name: one for one in told if one.outcome == "failed"}
    now = {name: one.value for name, one in failed.items()}
    return {name: (old, now.get(name, "")) for name, old in ran.items() if old != now.get(name)}


def libraries_now(found: Mapping[str, str], seen: Sequence[Observation]) -> dict[str, str]:
    """The versions met in a text, without those with which it ran before; the newer ones as the sentences tell them."""
    now = dict(found)
    for library, (old, newer) in fitted_in(seen).items():
        if now.get(library) == old:
            del now[library]
        if newer and library:
            now.setdefault(library, newer)
    return now


def updated_in(seen: Sequence[Observation]) -> Observation | None:
    """The library since the update of which it fails."""
    ran = fitted_in(seen)
    failed = [one for one in seen if one.kind == "library" and one.outcome == "failed" and one.name not in ran]
    often = Counter(one.name for one in failed)  # where it fails with both versions, it is not the update
    told = (one for one in failed if one.began and one.change == "up" and often[one.name] == 1)
    return next(told, None)


def resumes_only(seen: Sequence[Observation]) -> str:
    """The words that it fails only where it takes up a checkpoint; "" where nobody says so."""
    fresh = any(one.name == FRESH and one.outcome == "worked" for one in seen)
    shown = (one.said for one in seen if one.name == "resume" and (
        fresh or one.only if one.outcome == "failed" else (one.outcome, one.change) == ("worked", "off")))  # fmt: skip
    return next(shown, "")
