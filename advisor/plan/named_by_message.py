"""Finds the settings that the failing line itself tells to lower or to raise, by the name that it gives them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from advisor.knowledge.schema import NewValue, Remedy
from advisor.plan.common_names import names_of
from advisor.plan.situation import Situation
from advisor.regex import regex
from advisor.words import BETWEEN_SENTENCES

_PROVES = ("cause", "victim", "hint")
_NAME = regex(r"(?:--)?[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+")
_DOWN = regex(r"(?i)\b(?:lower|reduc|decreas|shorten)(?:e|ing|ed)?\b")
_UP = regex(r"(?i)\b(?:increas|rais|enlarg)(?:e|ing)?\b")
_CONDITION = regex(r"(?i)\s*(?:if|when|where|in case)\b")
"""What torch prints of fragmentation under every failure holds only on a condition."""
_Way = Literal["down", "up"]


def named_by_message(situation: Situation) -> dict[str, str]:
    """Remedy id → the setting's name as the message has it, in its order; {} where it names none."""
    told = dict(_told(situation))
    return {
        remedy.id: name
        for name, way in told.items()
        for remedy in situation.remedies
        if remedy.memory == situation.place and situation.cause not in remedy.never_for
        if remedy.value is not None and _way_of(remedy.value) == way
        if name.lstrip("-").replace("-", "_") in _names(remedy, situation)
    }


def _told(situation: Situation) -> Iterator[tuple[str, _Way]]:
    """Names and whether they are to fall or to rise: the verb that stands before them in their sentence decides."""
    for entry in situation.predictor.crash.evidence:
        if entry.role not in _PROVES or entry.runs_ago:
            continue
        for sentence in BETWEEN_SENTENCES.split(entry.text):
            if _CONDITION.match(sentence):
                continue
            verbs = [(one.start(), "down") for one in _DOWN.finditer(sentence)]
            verbs += [(one.start(), "up") for one in _UP.finditer(sentence)]
            for name in _NAME.finditer(sentence):
                before = [way for start, way in sorted(verbs) if start < name.start()]
                if before:
                    yield name.group(), "down" if before[-1] == "down" else "up"


def _way_of(value: NewValue) -> _Way | None:
    if value.floor is not None or value.tries:
        return "down"
    return "up" if value.ceiling is not None else None


def _names(remedy: Remedy, situation: Situation) -> set[str]:
    """What libraries and dialects call it."""
    keys = {one.key.lstrip("-").replace("-", "_") for one in remedy.known_as}
    return keys | set(names_of(remedy.knob, situation) if remedy.knob is not None else ())
