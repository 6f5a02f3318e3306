"""Finds a setting of a launch without a dialect by the name that the known dialects give it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

from advisor.knowledge.schema import Knowledge, Remedy
from advisor.plan.situation import Situation
from advisor.run.natives import Native
from advisor.run.run import KnobValue
from advisor.run.values import parse_value

AGREED = 2 / 3
"""Of the dialects that have the name, as many must mean the same by it."""
ROLES = ("critic", "reference", "logprob")
"""Models and passes beside the trained one; their settings bear the same names under another front."""
MOST_NAMES = 2
"""Names told where the launch bears none: enough to look for."""


def last_part(key: str) -> str:
    """The name of a key without what stands before it: "actor.micro_batch_size" and "--micro-batch-size" are one."""
    return key.lstrip("-+").replace("-", "_").rpartition(".")[2].replace("microbatch", "micro_batch")


def names_of(knob: str, situation: Situation) -> list[str]:
    """What the dialects call a knob, the commonest first; only names of several words, which are not used for else."""
    tables, knob = situation.predictor.inputs.tables, _trained(knob)
    counted = tables.once("names of settings", lambda: _counted(situation.knowledge))
    mine = [(name, by) for name, by in counted.items() if "_" in name and knob in by and _means(by) == knob]
    return [name for name, by in sorted(mine, key=lambda each: -each[1][knob])]


def stated_by_name(remedy: Remedy, situation: Situation) -> Native | None:
    """The setting of an unrecognised launch that bears a name of the remedy's knob, the most usual one of several."""
    launch = situation.predictor.inputs.launch
    if launch is None or remedy.knob is None or remedy.value is None:
        return None
    role, names = remedy.knob.partition(".")[0], frozenset(names_of(remedy.knob, situation))
    spelled = _spelling(_trained(remedy.knob), situation.knowledge)
    found: list[tuple[int, Native]] = []
    for setting in launch.effective().values():
        of_role = [other for other in ROLES if other in setting.key.lower()]
        own = last_part(setting.key)
        if not setting.resolved or bool(of_role) != (role in ROLES):
            continue
        ways = (own in names, own.endswith(tuple(f"_{name}" for name in names)), bool(spelled(own)))
        value = _read(setting.text, switch=isinstance(remedy.value.to, bool))
        if any(ways) and value is not None and (not of_role or role in of_role):
            found.append((ways.index(True), Native(setting.key, setting.text, value, "script", setting=setting)))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _spelling(knob: str, knowledge: Knowledge) -> Callable[[str], object]:
    """Whether a name is one of the usual spellings of a knob."""
    spelled = next((one.spelled for one in knowledge.knobs if one.id == knob), "")
    return re.compile(spelled or "(?!)").fullmatch


def _read(text: str, switch: bool) -> KnobValue | None:
    """A switch's position, or a number; None for anything else."""
    if switch:
        return parse_value(text, "bool")
    whole = parse_value(text, "int")
    return whole if whole is not None else parse_value(text, "float")


def _trained(knob: str) -> str:
    """The same setting of the trained model: "critic.micro_batch" is "actor.micro_batch" under another front."""
    role, dot, rest = knob.partition(".")
    return f"actor.{rest}" if role in ROLES and dot else knob


def _counted(knowledge: Knowledge) -> Mapping[str, Counter[str]]:
    """Name → knob → how many dialects mean it."""
    found: dict[str, Counter[str]] = {}
    for framework in knowledge.frameworks:
        meant = {(last_part(key), _trained(fact.knob)) for key, fact in framework.settings.items() if fact.knob}
        for name, knob in meant:
            found.setdefault(name, Counter())[knob] += 1
    return found


def _means(by: Counter[str]) -> str:
    """The knob that most dialects mean by a name; "" where they do not agree."""
    knob, count = by.most_common(1)[0]
    return knob if count >= AGREED * by.total() else ""
