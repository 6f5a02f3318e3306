"""Finds as evidence: equal ones folded into one with a count, the victim of a kill told apart from its cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from advisor.crash.evidence import Evidence, EvidenceRole, TopUser
from advisor.crash.lines import Line
from advisor.crash.phase import Mark
from advisor.crash.scan import Scanned
from advisor.crash.verdict import Placed
from advisor.redact import redact

_TEXT = 4_000
_MARK = 400


def as_evidence(
    one: Placed, logs: Sequence[Scanned], role: EvidenceRole | None = None, rows: Iterable[Line] = ()
) -> Evidence:
    find = one.find
    text = find.text
    if find.signature.id == "ray-top-users":
        text = "\n".join([text, *(row.printed for row in rows)])
    return Evidence(
        signature=find.signature.id,
        role=role if role and find.signature.role != "hint" else find.signature.role,  # type: ignore[arg-type]
        file=logs[one.log].name,
        line=find.first.number,
        text=redact(text[:_TEXT]),
        memory=find.signature.memory,
        phase=find.signature.phase,
        fields=find.fields,
        process=find.first.process,
        repeats=find.first.repeats,
    )


def progress_told(mark: Mark, file: str) -> Evidence:
    """The last progress line before a failure, as evidence of how far the run had come."""
    line, phase = mark
    text = redact(line.printed[-_MARK:])
    return Evidence("training-step", "progress", file, line.number, text, "none", phase, {}, line.process)


def victims(cause: Evidence, users: Sequence[TopUser]) -> list[Evidence]:
    """The killed Ray task, where it did not fill the node: a larger process exists, or it held under a quarter."""
    held, pid, node = (cause.fields.get(name) for name in ("task_bytes", "pid", "node_used_bytes"))
    if not isinstance(held, int) or not isinstance(node, int):
        return []
    larger = any(user.pid != pid and user.used_bytes > held for user in users)
    if not larger and held > node // 4:
        return []
    fields = {name: cause.fields[name] for name in ("task", "task_bytes", "pid") if name in cause.fields}
    return [replace(cause, role="victim", fields=fields)]


def folded(
    rest: Sequence[Placed], cause: Placed | None, logs: Sequence[Scanned], told: list[Evidence]
) -> list[Evidence]:
    """The other finds, equal ones (numbers aside) as one with a count; repeats of the cause count on the cause."""
    seen: dict[tuple[str, str], int] = {}
    told_once: list[Evidence] = []
    if cause is not None:
        seen[(cause.id, _masked(cause.find.text))] = -1
    for one in rest:
        key = (one.id, _masked(one.find.text))
        more = 1 + one.find.first.repeats
        if key in seen:
            at = seen[key]
            target = told[0] if at < 0 else told_once[at]
            if one.find.signature.role == "telemetry" and at >= 0:  # of readings the latest tells most
                counted = replace(as_evidence(one, logs), repeats=target.repeats + more)
            else:
                counted = replace(target, repeats=target.repeats + more)
            if at < 0:
                told[0] = counted
            else:
                told_once[at] = counted
            continue
        seen[key] = len(told_once)
        echo: EvidenceRole | None = "echo" if cause is not None and _echoes(one, cause) else None
        told_once.append(as_evidence(one, logs, echo))
    return told_once


def _echoes(one: Placed, cause: Placed) -> bool:
    mine, first = one.find.signature, cause.find.signature
    return mine.role == "cause" and mine.verdict == first.verdict and mine.memory == first.memory


def _masked(text: str) -> str:
    """A message without its numbers and without Ray's count of repeats."""
    return re.sub(r"\d+(?:\.\d+)?", "#", text.partition(" [repeated ")[0])[:600]
