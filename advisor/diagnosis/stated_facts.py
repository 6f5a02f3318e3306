"""Tells what is only stated or likely: a shortage in words that speak of no kill and no RAM; who sent a SIGKILL;
metrics of an evaluation."""

from __future__ import annotations

import re

from advisor.crash.evidence import Crash, stopped
from advisor.crash.verdict import NEARLY_FULL
from advisor.diagnosis.fact import Fact
from advisor.hostile import clean_line
from advisor.regex import regex

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
