"""Matches the documented cases to this situation: how many of a case's facts agree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from advisor.diagnosis.diagnosis import CaseMatch
from advisor.diagnosis.fact import Facts, value_of
from advisor.knowledge.schema import Case
from advisor.language import Sayings, say
from advisor.rules.functions import version_in
from advisor.run.run import Run
from advisor.words import MEMORY_TITLES, PHASE_TITLES

GRADES: Sayings[str] = Sayings(
    {
        "confirmed": "confirmed",
        "plausible": "plausible",
        "failed": "failed",
        "reported": "reported",
        "folklore": "folklore",
    }
)
"""How well a case or an advisory is proved, the surest first."""
DECISIVE = ("framework", "memory")
"""A case of another framework, memory or library version is another case; these two alone are none."""
COMMON = frozenset({"framework", "memory", "gpu", "gpus", "model", "algorithm", "lora", "colocated"})
"""What many runs of a framework share: a case that agrees in these alone is not like this one."""
MECHANISM = frozenset({"phase", "trainer", "signature"})
"""What a case must have in common with a run that is like it: a leak of Megatron's is none of FSDP's."""
PART = {
    **dict.fromkeys(("rollout_init", "rollout_generate", "weight_sync"), "rolls_out"),
    "log_prob": "log_prob_pass",
    "critic_update": "has_critic",
}
"""Phase → the fact that a run has it."""
LEAST_WITHOUT_FRAMEWORK = 3
"""Where the framework is not known, so many other facts must be, and all agree."""
LEAST = 2
"""One fact alone makes no situation."""
ENOUGH_FOR_VALUES = 3
ENOUGH = 0.7
"""Share of the facts that are known here which must agree."""

_NAMES = Sayings(
    {
        "framework": "framework",
        "model": "model",
        "gpu": "kind of GPU",
        "gpus": "number of GPUs",
        "algorithm": "algorithm",
        "trainer": "trainer",
        "signature": "crash line",
        "images": "pictures",
        "lora": "LoRA",
    }
)
"""Facts of a situation in words; a knob keeps its name."""
_TITLES: dict[str, Sayings[Any]] = {"memory": MEMORY_TITLES, "phase": PHASE_TITLES}
_YES_NO = Sayings({"True": "yes", "False": "no"})


class MatchedCase(Struct, frozen=True):
    """A case with its count."""

    case: Case
    match: CaseMatch

    @property
    def same(self) -> bool:
        """All of at least three known facts agree: its values may be proposed, not only shown."""
        return self.match.agree == self.match.of >= ENOUGH_FOR_VALUES


def match_cases(cases: Iterable[Case], facts: Facts, run: Run, own: Sequence[str] = ()) -> tuple[MatchedCase, ...]:
    """Cases of the same framework of whose known facts most agree, best first: each that differs takes one away.

    Of equals, the user's `own` (their ids) go first, then those that leave nothing of theirs open here, then confirmed
    ones.
    """
    found = [matched for case in cases if (matched := _match(case, facts, run)) is not None]
    return tuple(sorted(found, key=lambda one: _order(one, one.case.id in own)))


def _order(matched: MatchedCase, own: bool) -> tuple[int, bool, int, int]:
    match, case = matched.match, matched.case
    return match.of - 2 * match.agree, not own, len(case.situation) - match.of, [*GRADES].index(case.grade)


def _match(case: Case, facts: Facts, run: Run) -> MatchedCase | None:
    agreed: list[str] = []
    known = 0
    differs: dict[str, str] = {}
    if value_of(facts, PART.get(str(case.situation.get("phase")), "")) is False:
        return None  # of a phase that this run has not
    for name, wanted in case.situation.items():
        here = _here(name, facts, run)
        if here is None:
            continue
        known += 1
        if _same(name, here, str(wanted)):
            agreed.append(name)
        elif name in (*DECISIVE, "trainer") or name.startswith("version "):
            return None
        else:
            differs[name] = say(
                "{fact}: here {here}, there {there}",
                fact=_NAMES.get(name, name),
                here=_value_words(name, here),
                there=_value_words(name, str(wanted)),
            )
    least, share = _enough(case, facts, run)
    telling = any(name not in DECISIVE and _here(name, facts, run) is not None for name in case.situation)
    if known < least or len(agreed) / known < share or not telling:
        return None
    named = MECHANISM & case.situation.keys()  # of a card without any of these, the size of the model must tell
    shared = named <= set(agreed) and bool(named or "model" in agreed or case.situation.get("memory") == "host")
    alike = "framework" in agreed and shared and bool(set(agreed) - COMMON)
    told = tuple(differs.values())
    return MatchedCase(case, CaseMatch(case.id, case.title, case.source, len(agreed), known, told, alike))


def _enough(case: Case, facts: Facts, run: Run) -> tuple[int, float]:
    """How many facts must be known, and which share of them must agree: more where what decides is not known."""
    unknown = open_words(case, facts, run)
    if "framework" in unknown:
        return LEAST_WITHOUT_FRAMEWORK, 1.0
    if "framework" not in case.situation or any(name.startswith("version ") for name in unknown):
        return LEAST_WITHOUT_FRAMEWORK, ENOUGH
    return LEAST, ENOUGH


def situation_words(name: str, value: object) -> str:
    """Like "number of GPUs 8"; the memory and the phase by their titles alone."""
    told = _value_words(name, str(value))
    return told if name in _TITLES else f"{_NAMES.get(name, name)} {told}"


def _value_words(name: str, value: str) -> str:
    return _TITLES[name].get(value, value) if name in _TITLES else _YES_NO.get(value, value)


def open_words(case: Case, facts: Facts, run: Run) -> list[str]:
    """Facts of a case of which nobody knows what they are here."""
    return [name for name in case.situation if _here(name, facts, run) is None]


def _here(name: str, facts: Facts, run: Run) -> str | None:
    """The fact of this situation that a case calls `name`; None where it is not known."""
    if name == "model":
        return run.model_name or (run.model.name if run.model is not None else None)
    if name == "gpu":
        fact = facts.get("gpu.name")
    elif name.startswith("version "):
        fact = facts.get("library." + name.removeprefix("version "))
    else:
        fact = facts.get(name) or facts.get(f"knob.{name}")
    return None if fact is None else str(fact.value)


def _same(name: str, here: str, wanted: str) -> bool:
    if name.startswith("version "):
        return version_in(wanted, here)
    if name in ("model", "gpu"):
        return _words(wanted) <= _words(here)
    if here.replace(".", "", 1).isdigit() and wanted.replace(".", "", 1).isdigit():
        return float(here) == float(wanted)
    return here.lower() == wanted.lower()


def _words(text: str) -> set[str]:
    """ "Qwen2.5-VL-7B" → {qwen2.5, vl, 7b}: what two spellings of a name share."""
    return {word for word in re.split(r"[\s/_\-]+", text.lower()) if word}
