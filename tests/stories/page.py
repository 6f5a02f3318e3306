"""Draws one story as a page that a person reads: verdict, cause, plan, and who held how many bytes before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

GIB = 2**30
Answer = dict[str, Any]


def page(answer: Answer, codes: dict[str, int]) -> str:
    """The page of one `diagnose --format json` answer; `codes`: script → exit code of `estimate` on it."""
    ends = [f"estimate {script}: exit {code}" for script, code in codes.items()]
    return "\n".join([*_verdict(answer), "", *_plan(answer), "", *_memory(answer), "", *ends]) + "\n"


def _verdict(answer: Answer) -> Iterator[str]:
    run, crash, diagnosis = answer["run"], answer["crash"], answer["diagnosis"]
    model = run["model"] or {}
    yield f"{run['framework']} {run['era']} · {run['algorithm']} · {model.get('name')} {model.get('parameters') or '?'}"
    yield f"{crash['verdict']} · memory {crash['memory']} · phase {crash['phase']} · {crash['signature']}"
    yield f"cause {diagnosis['cause']} ({diagnosis['basis']}): {diagnosis['title']}"
    for step in diagnosis["path"]:
        yield f"  {step['question']}: {step['answer']} by {step['source']}, {step['because']}"[:118].rstrip(", ")
    yield f"excluded: {', '.join(one['cause'] for one in diagnosis['ruled_out']) or 'nothing'}"
    yield f"less likely: {', '.join(one['cause'] for one in diagnosis['less_likely']) or 'nothing'}"
    yield f"cases: {', '.join(diagnosis['cases']) or 'none'}"


def _plan(answer: Answer) -> Iterator[str]:
    yield "plan"
    for step in answer["plan"]:
        saved = max(step["saves_bytes"].values(), default=0, key=abs) / GIB
        box = "[x]" if step["selected"] else "[ ]"
        yield f"  {box} {step['id']} · {step['results']} · {step['basis']} · {saved:+.2f} GiB"
        yield from (f"        {c['key']} {c['old']} → {c['new']}" for c in step["changes"])
    refused = ", ".join(one["id"] for one in answer["not_proposed"])
    yield f"not proposed: {refused or 'nothing'}"
    outcome = answer["outcome"] or {}
    fit = outcome.get("fit") or {}
    why = [fit[part] for part in ("reason", "place", "phase", "decides") if fit.get(part)]
    yield f"outcome: {fit.get('verdict')}{': ' if why else ''}{', '.join(why)}; margin {outcome.get('margin')}"


def _memory(answer: Answer) -> Iterator[str]:
    for place, wall in (("gpu", "capacity_bytes"), ("host", "limit_bytes")):
        before, after = answer["memory"][place], (answer["after"] or answer["memory"])[place]
        yield f"{place}: {_gib(before[wall])} GiB before, {_gib(after[wall])} after; low, expected, high → after"
        later = {phase["phase"]: phase for phase in after["phases"]}
        for phase in before["phases"]:
            ends = " ".join(_gib(phase[f"{end}_bytes"]) for end in ("low", "expected", "high"))
            now = later.get(phase["phase"])
            yield f"  {phase['phase']:<17}{ends} → {_gib(now['expected_bytes']) if now else '-'}"


def _gib(size: int | None) -> str:
    return f"{'?' if size is None else f'{size / GIB:.2f}':>7}"
