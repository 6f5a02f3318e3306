"""Tells how memory went over the steps that a log counts: how many were done, and whether host or GPU memory grew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from advisor.crash.evidence import Crash, Reading, ReadingKind, stopped
from advisor.crash.observations import cures, in_vain, resumes_only, trigger, updated_in
from advisor.crash.statements import BEHIND, FACT, FIRST, HOLDER, HOST_HOLDER, SECOND
from advisor.crash.verdict import NEARLY_FULL
from advisor.diagnosis.fact import Fact
from advisor.hostile import clean, clean_line
from advisor.knowledge import load_knowledge
from advisor.language import listed, mark, say
from advisor.regex import regex
from advisor.units import show_bytes

COURSE_ENOUGH = 4
"""Readings of one moment in one process before they tell a course."""
RISEN, LEVEL, RISING = 0.10, 0.03, 0.9
"""A course grows that rises by RISEN in all, at RISING of its readings and to its end; one within LEVEL does not
(judgement)."""
ONE_JUMP = 0.75
"""Part of a rise that one reading may bring: more of it happened once and is no growth (judgement)."""
FILLS, LITTLE = 0.5, 0.35
"""Parts of a card: what a step adds above the first, to less than the second, is its pass (judgement)."""
SLEEPS = 3
"""Readings after sleeps from which growth is told, and the last ones that are shown."""


def course_facts(crash: Crash) -> dict[str, Fact]:
    """steps_done, finished, first_step, second_step, host.grows, gpu.grows, in_vain, trigger and what sentences tell;
    each only where something tells."""
    facts: dict[str, Fact] = {}
    if crash.steps_done is not None:
        because = say("the log counts {count} done steps", count=crash.steps_done)
        facts["steps_done"] = Fact(crash.steps_done, "log", because)
        facts["first_step"] = Fact(crash.steps_done == 0, "log", because)
    if crash.finished:
        facts["finished"] = Fact(True, "log", say("the log shows the end of the run"))
    kinds: tuple[tuple[str, ReadingKind], ...] = (("host.grows", "host_used"), ("gpu.grows", "allocated"))
    for name, kind in kinds:
        fact = _grows(crash.readings, kind)
        if fact is not None:
            facts[name] = fact
    return {**_told(crash), **facts}


def _told(crash: Crash) -> dict[str, Fact]:
    """What a person wrote of it; where they name no memory that grew, both may."""
    because = say("by the words of the report")
    facts = {"first_step": Fact(False, "log", because)} if "steps" in crash.statements else {}
    if FIRST in crash.statements and not facts:
        facts = {"first_step": Fact(True, "log", because)}
    if SECOND in crash.statements:
        facts |= {"second_step": Fact(True, "log", because), "first_step": Fact(False, "log", because)}
    for place in ("gpu", "host"):
        if {"grows", f"grows.{place}"} & crash.statements:
            facts[f"{place}.grows"] = Fact(True, "log", because)
    behind = [name.removeprefix(BEHIND) for name in crash.statements if name.startswith(BEHIND)]
    if len(behind) == 1 and crash.preceded is None and crash.phase not in behind:
        facts["right_after"] = Fact(behind[0], "log", because)
        facts |= {} if FIRST in crash.statements else {"ran": Fact(True, "log", because)}
    facts |= {**_observed(crash), **said_facts(crash)}
    for fact, prefix in (("stated.holder", HOLDER), ("stated.host_holder", HOST_HOLDER)):
        if held := sorted(name.removeprefix(prefix) for name in crash.statements if name.startswith(prefix)):
            holder, _, quoted = held[0].partition(" ")
            because = say("so the post says: “{quoted}”", quoted=clean(quoted))
            facts[fact] = Fact(holder, "log", because)
    if others := [memory for memory in crash.runs_told if crash.memory not in ("unknown", memory)]:
        because = say(
            "the post tells of two runs: this one on {here} GPUs, and another on {there} GPUs",
            here=crash.runs_told.get(crash.memory, 0),
            there=crash.runs_told[others[0]],
        )
        facts["other.full"] = Fact(others[0], "log", because)
    return facts


def _observed(crash: Crash) -> dict[str, Fact]:
    """in_vain, helped.LEVER, updated, trigger and resumes.only, by what a person saw."""
    seen, words = crash.observations, load_knowledge().signatures.statements
    found: dict[str, tuple[str | bool, str]] = {}
    if words is not None and (tried := in_vain(seen, words)):
        found["in_vain"] = " ".join(sorted(tried)), next(iter(tried.values()))
    found |= {f"helped.{one.lever}": (True, one.said) for one in cures(seen) if one.lever and one.change != "off"}
    if (updated := updated_in(seen)) is not None:
        found["updated"] = updated.name, updated.said
    if said := resumes_only(seen):
        found["resumes.only"] = True, said
    quote = mark("so the post says: “{quoted}”")
    facts = {name: Fact(value, "log", say(quote, quoted=said)) for name, (value, said) in found.items()}
    if (began := trigger(seen)) is not None:
        on = "-off" if began.change == "on" and began.kind == "lever" else ""  # back is without it
        facts["trigger"] = Fact(f"{began.lever or began.kind}{on}", "log", began.named)
    return facts


def said_facts(crash: Crash) -> dict[str, Fact]:
    """Each fact that a sentence of a person tells by itself."""
    told = (one.removeprefix(FACT).partition(" ") for one in sorted(crash.statements) if one.startswith(FACT))
    return {name: Fact(True, "log", say("so the post says: “{quoted}”", quoted=clean(said))) for name, _, said in told}


def peak_facts(crash: Crash, card: int | None) -> dict[str, Fact]:
    """gpu.peak_of_pass: that a step had little allocated and a peak that fills the card, by the log's own lines."""
    readings = {kind: [one for one in crash.readings if one.kind == kind] for kind in ("allocated", "peak")}
    pairs = [(low, top) for low in readings["allocated"] for top in readings["peak"]
             if (low.line, low.file) == (top.line, top.file)]  # fmt: skip
    if not pairs or not card:
        return {}
    low, top = max(pairs, key=lambda pair: pair[1].bytes)
    told = {"low": show_bytes(low.bytes), "peak": show_bytes(top.bytes), "card": show_bytes(card), "line": top.line}
    because = say("{low} allocated, {peak} of {card} at the peak of a step (line {line})", **told)
    much = top.bytes - low.bytes > FILLS * card and low.bytes < LITTLE * card
    return {"gpu.peak_of_pass": Fact(much, "log", because)}


def left_facts(crash: Crash) -> dict[str, Fact]:
    """sleep.left: what stayed in use when the engine slept; sleep.left_grows: more of it after each step."""
    left = [one for one in crash.readings if one.kind == "still_used"]
    if not left or crash.memory == "host":  # it lay on a card
        return {}
    sizes = listed(dict.fromkeys(show_bytes(one.bytes) for one in (left[0], *left[1:][1 - SLEEPS :])))
    because = say("after the engine slept {sizes} stayed in use (line {line})", sizes=sizes, line=left[-1].line)
    facts = {"sleep.left": Fact(left[-1].bytes, "log", because)}
    rises = all(later.bytes >= earlier.bytes for earlier, later in pairwise(left))
    grows = len(left) >= SLEEPS and rises and left[-1].bytes > (1 + FILLS) * left[0].bytes and _to_the_end(left)
    return {**facts, "sleep.left_grows": Fact(True, "log", because)} if grows else facts


def _to_the_end(course: Sequence[Reading]) -> bool:
    """Whether the later half rises, too, and not at once: what is full after a step and stays so does not grow."""
    first, middle, last = (course[at].bytes for at in (0, len(course) // 2, -1))
    largest = max(later.bytes - earlier.bytes for earlier, later in pairwise(course))
    return last - middle > RISEN * (last - first) and largest <= ONE_JUMP * (last - first)


def rising_course(readings: Sequence[Reading], kind: ReadingKind) -> list[Reading] | None:
    """The readings of one moment in one process that rise all along; None where none do."""
    return next((course for course in _courses(readings, kind) if _course(course) is True), None)


def _grows(readings: Sequence[Reading], kind: ReadingKind) -> Fact | None:
    """True where some moment's course rises, False where all that can be told are level, else None."""
    rising = rising_course(readings, kind)
    shown = rising or next((course for course in _courses(readings, kind) if _course(course) is False), None)
    if shown is None:
        return None
    first, last = shown[0], shown[-1]
    sizes = {"first": show_bytes(first.bytes), "last": show_bytes(last.bytes)}
    lines = {"first_line": first.line, "last_line": last.line}
    if last.at:
        because = say(
            "{first} in line {first_line}, {last} in line {last_line} {moment}", **sizes, **lines, moment=last.at
        )
    else:
        because = say("{first} in line {first_line}, {last} in line {last_line}", **sizes, **lines)
    return Fact(rising is not None, "log", because)


def _courses(readings: Sequence[Reading], kind: ReadingKind) -> Iterator[list[Reading]]:
    """The readings of one moment in one process, in order."""
    courses: dict[tuple[str, str, str], list[Reading]] = {}
    for reading in readings:
        if reading.kind == kind:
            courses.setdefault((reading.file, reading.process, reading.at), []).append(reading)
    yield from (course for course in courses.values() if len(course) >= COURSE_ENOUGH)


def _course(course: Sequence[Reading]) -> bool | None:
    first, last = course[0].bytes, course[-1].bytes
    if first <= 0:
        return None
    pairs = [*pairwise(course)]
    rises = sum(later.bytes >= earlier.bytes for earlier, later in pairs)
    if last >= first * (1 + RISEN) and rises >= len(pairs) * RISING and _to_the_end(course):
        return True
    return False if abs(last - first) <= first * LEVEL else None


_STATED = frozenset({"oom-words", "oom-said", "oom-told", "oom-advice"})
"""Signatures of plain words, which tell no memory."""
_KILLS = frozenset({"killed-9", "exit-137", "bash-killed", "dataloader-killed", "kill-told"})
"""Signatures of a SIGKILL of which nobody says who sent it."""
_CUT_BEHIND = ("traceback", "collective-failed", "ray-wrapper")
"""Signatures of an error that the process raised itself, without what it says."""
_OTHER_HAND = regex(
    r"(?i)\b(?:preempt\w*|time ?limit|wall ?time|scancel\w*|cancel\w*|ctrl[-+ ]?c|manually|by hand|i killed)\b"
    r"|\bby (?:slurm|the (?:scheduler|queue|cluster))\b|\bexactly\b|抢占|超时|手动"
)
"""Words of another who ends runs."""
_OF_HOST = regex(
    r"(?i)kill|\b137\b|(?<!\w)-9\b|\b(?:RAM|host|cpu|swap|workers?|pod|slurm|cgroup|container)\b|cannot allocate|内存"
)
_METRICS = regex(r"^[^#\n]*\b(compute_metrics\w*)\s*[=(](?!\s*None)", re.MULTILINE)
_REDUCED = regex(r"\bpreprocess_logits_for_metrics\s*=(?!\s*None)")


def metrics_facts(text: str) -> dict[str, Fact]:
    """eval.metrics: a Trainer keeps the logits of the whole evaluation set for them. `text`: of the launch."""
    found = _METRICS.search(text)
    return {} if found is None or _REDUCED.search(text) else {"eval.metrics": Fact(True, "script", found[1])}


_QUOTED = 120
"""Characters of a command that are quoted."""
_BOUND = regex(r"\bnumactl\b[^\n;|&]{0,200}?\s(?:--membind|-m)[= ]\S{1,40}")
"""numactl(8): memory from these NUMA nodes alone; a preference (--preferred, --localalloc) is no limit."""


def bound_facts(text: str, crash: Crash) -> dict[str, Fact]:
    """numa.bound: the command confines each process to the RAM of some NUMA nodes. `text`: of the launch."""
    for number, one in enumerate(crash.evidence):
        if (found := _BOUND.search(one.text)) is not None:
            return {"numa.bound": Fact(True, "log", clean_line(found[0], _QUOTED), (number,))}
    found = _BOUND.search(text)
    return {} if found is None else {"numa.bound": Fact(True, "script", clean_line(found[0], _QUOTED))}


def stated_facts(crash: Crash) -> dict[str, Fact]:
    """stated.card: most who write so mean the card; killed.likely: most runs that were killed had filled the RAM.
    Nothing proves it, so each is a guess."""
    first = crash.evidence[0] if crash.evidence else None
    if first is not None and crash.verdict == "unclear" and crash.signature in _KILLS:
        if any(_OTHER_HAND.search(one.text) for one in crash.evidence):
            return {}
        return {"killed.likely": Fact(True, "log", "", (0,))}
    if crash.unclear_because == stopped() and crash.host_filled is not None and crash.host_filled[0] >= NEARLY_FULL:
        return {"killed.likely": Fact(True, "log", "")}
    if crash.verdict == "unclear" and crash.frames and (first is None or first.signature in _CUT_BEHIND):
        return {"raised.cut": Fact(True, "log", crash.unclear_because)}
    open_ = crash.verdict == "oom" and crash.memory == "unknown"
    if first is None or not open_ or any(one.signature not in _STATED for one in crash.evidence):
        return {}
    lines = [one.text for one in crash.evidence]
    return {} if any(_OF_HOST.search(line) for line in lines) else {"stated.card": Fact(True, "log", "", (0,))}
