"""Checks what types leave free: phases, places and defaults of a dialect, and every regex."""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.knowledge.checks.shelf import DialectKey, Shelf, found, near, settings
from advisor.knowledge.entries import Finding, KnowledgeEntry
from advisor.knowledge.literals import within
from advisor.knowledge.schema import Framework, SettingFact
from advisor.regex import regex
from advisor.words import PHASES

PLACES = ("gpu", "gpu-", "host", "host-", "none")
EVERY_PHASE = "all"
_FOLLOWS = regex(r"\$\{([^}]*)\}")
_BEHIND = regex(r"\(\?<[=!]")
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "flag": (bool,),
    "str": (str,),
    "list": (str, list),
}


def check_dialects(shelf: Shelf) -> Iterator[Finding]:
    """What a setting moves, what it is where nobody sets it, and by which lines of a log a framework is known."""
    for setting in settings(shelf):
        yield from _moves(setting)
        yield from _defaults(setting)
    for entry in shelf.of("framework"):
        yield from _regexes(entry)


def _moves(setting: DialectKey) -> Iterator[Finding]:
    for phase, place in setting.fact.moves.items():
        if phase not in (*PHASES, EVERY_PHASE):
            yield from setting.found(f"there is no phase {phase}{near(phase, PHASES)}", "moves", phase)
        if place not in PLACES:
            yield from setting.found(f"{place!r} is none of {', '.join(PLACES)}", "moves", phase)


def _defaults(setting: DialectKey) -> Iterator[Finding]:
    default, wanted = setting.fact.default, setting.fact.type
    for value in default.values() if isinstance(default, dict) else (default,):
        follows = isinstance(value, str) and "${" in value
        if follows:
            yield from _followed(setting, str(value))
        if value is None or follows:
            continue
        fits = isinstance(value, _TYPES[wanted]) and (wanted in ("bool", "flag") or not isinstance(value, bool))
        if not fits:
            yield from setting.found(f"its default {value!r} is no {wanted}", "default")


def _followed(setting: DialectKey, default: str) -> Iterator[Finding]:
    """A default that follows another key: there is one, and it does not silence this one as carrier of its knob."""
    keys: dict[str, SettingFact] = setting.entry.value.settings
    for other in _FOLLOWS.findall(default):
        if other not in keys:
            yield from setting.found(
                f"its default follows {other}, which is no setting here{near(other, keys)}", "default"
            )
        elif setting.fact.only_with is None and setting.fact.knob and keys[other].knob == setting.fact.knob:
            says = f"carries {setting.fact.knob} as {other} does, which wins where both are set: give both `only_with`"
            yield from setting.found(says, "knob")


def _regexes(entry: KnowledgeEntry) -> Iterator[Finding]:
    dialect: Framework = entry.value
    lines = [("recognised_by", pattern) for known in dialect.recognised_by for pattern in known.log]
    frames = [("frames", pattern) for rule in dialect.frames for pattern in (rule.frame, rule.under)]
    progress = [("progress", rule.pattern) for rule in dialect.progress]
    for field, pattern in (*lines, *frames, *progress):
        if problem := problem_of(pattern):
            yield from found(entry, f"{field}: {pattern!r}: {problem}", field)
        elif field == "recognised_by" and not within(pattern):
            says = "no three letters stand, as written, in all that it matches, so every line would be tried"
            yield from found(entry, f"{field}: {pattern!r}: {says}", field)


def check_patterns(shelf: Shelf) -> Iterator[Finding]:
    """Where an entry may cover several lines, each space of its pattern matches up to nine characters."""
    for entry in shelf.of("signature"):
        pattern = entry.value.pattern.replace("{size}", r"\d").replace("{num}", r"\d")
        if problem := problem_of(pattern):
            yield from found(entry, f"signature {entry.id}: {problem}", "pattern")
        elif entry.value.span_lines > 1 and _BEHIND.search(pattern):
            yield from found(entry, f"signature {entry.id}: a message that may wrap cannot look behind", "pattern")
    for entry in shelf.of("sharding"):
        for problem in filter(None, map(problem_of, entry.value.named)):
            yield from found(entry, f"sharding {entry.id}: {problem}", "named")


def problem_of(pattern: str) -> str:
    """Why it cannot be compiled; "": it can."""
    try:
        re.compile(pattern)
    except re.error as error:
        return f"its pattern is no regex ({error.msg})"
    return ""
