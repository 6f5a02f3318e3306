"""Tells whether a checkpoint or an evaluation was due where the run died, by its interval and the steps done."""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.diagnosis.fact import Fact
from advisor.language import listed, say_count
from advisor.run.run import Knob, Run

LEAST = 4
"""Steps of an interval: what comes with every step or two is due anywhere, and tells something at its first time alone
(judgement)."""
_EVENTS = (
    ("save.due", "save.first", "checkpoint.every", "checkpoint.when"),
    ("eval.due", "eval.first", "eval.every", "eval.on"),
)
"""What comes now and then: its facts, the knobs of its interval, and of what counts it or switches it off."""
_NAMES = {
    "checkpoint.every": re.compile(
        r"(?:^|[./_-])(?:save|ckpt|checkpoint(?:ing)?)[_-](?:steps|interval|freq|every)(?:[_-]steps)?$"
    )
}
"""What a launch that no dialect describes mostly calls an interval."""
_OTHERWISE = ("epoch", "best")
"""Intervals that are no number of steps."""
_NEVER = ("no", "false", "none")


def due_facts(run: Run, done: int | None) -> dict[str, Fact]:
    """save.due, eval.due: whether it came with the step that failed; .first: no earlier one had. `done`: steps.

    Some trainers print a step before what comes with it and some behind it: a step beside the interval counts as due.
    """
    facts: dict[str, Fact] = {}
    for due, first, interval, counted_by in _EVENTS:
        knob, when = run.knobs.get(interval) or _by_name(run, _NAMES.get(interval)), run.knobs.get(counted_by)
        switch = str(when.value).lower() if when is not None else ""
        if switch in _NEVER and when is not None and when.source != "default":
            facts[due] = Fact(False, "script", f"{when.key} = {when.value}")
        elif knob is not None and switch not in _OTHERWISE and _is_known(knob, run):
            facts.update(_due(due, first, knob, done))
    return facts


def event_facts(run: Run) -> dict[str, Fact]:
    """events: the saves and evaluations that the launch itself makes due now and then."""
    stated: list[str] = []
    for _, _, interval, counted_by in _EVENTS:
        every, when = (_stated(run.knobs.get(name)) for name in (interval, counted_by))
        if when is not None and str(when.value).lower() in (*_OTHERWISE, *_NEVER):
            every = None
        told = when if every is None else every
        if told is not None and str(told.value).lower() not in _NEVER:
            stated.append(f"{told.key} {told.value:g}" if isinstance(told.value, float) else f"{told.key} {told.value}")
    return {"events": Fact(True, "script", listed(stated))} if stated else {}


def _stated(knob: Knob | None) -> Knob | None:
    return None if knob is None or not knob.key or knob.source in ("default", "assumed") else knob


def _by_name(run: Run, names: re.Pattern[str] | None) -> Knob | None:
    """The interval by its usual name, where no dialect says what its settings mean."""
    if names is None or run.framework != "unknown":
        return None
    other = (*_OTHERWISE, *_NEVER)
    if any(one.key.endswith("save_strategy") and str(one.value).lower() in other for one in run.settings):
        return None
    found = [(one.key, one.value) for one in run.settings if names.search(one.key)]
    key, text = found[-1] if found else ("", None)
    value = int(text) if isinstance(text, str) and text.isdecimal() else text
    return Knob("checkpoint.every", value, key=key, source="script") if isinstance(value, (int, float)) else None


def _is_known(knob: Knob, run: Run) -> bool:
    """A default counts where the whole launch was seen."""
    return isinstance(knob.value, (int, float)) and (knob.source != "default" or run.seen_whole)


def _due(due: str, first: str, knob: Knob, done: int | None) -> dict[str, Fact]:
    every = float(knob.value) if isinstance(knob.value, (int, float)) else 0.0
    told = {"key": knob.key, "every": f"{every:g}"}
    if every <= 0:
        return {due: Fact(False, "script", f"{knob.key} = {knob.value}")}
    if done is None or every != int(every) or (due == "eval.due" and not done):  # some evaluate before the first step
        return {}
    if (done and done % every == 0) or (done + 1) % every == 0:
        because = _told(done, told)
        none_before = done <= every
        certain = every >= LEAST or done == every
        return {due: Fact(True, "log", because), first: Fact(none_before, "log", because)} if certain else {}
    return {due: Fact(False, "log", _told(done, told))}


def _told(done: int, told: Mapping[str, object]) -> str:
    return say_count(
        "{number} step was done, and {key} = {every}", "{number} steps were done, and {key} = {every}", done, **told
    )
