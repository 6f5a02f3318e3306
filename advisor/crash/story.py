"""From logs to the story of a crash: first cause apart from its echoes, its phase, and what the log says on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.crash import verdict as judging
from advisor.crash.config_dump import settings_in
from advisor.crash.evidence import Crash, Evidence, EvidenceRole, TopUser
from advisor.crash.facts import frameworks_in, gpu_names_in, libraries_in, pip_lines, printed_tensor_bytes, top_users
from advisor.crash.lines import Line
from advisor.crash.patterns import Catalogue, catalogue
from advisor.crash.phase import (
    Trace,
    frame_in,
    is_critic,
    last_progress,
    phase_of_frames,
    phase_of_texts,
    tasks_in,
    trace_above,
)
from advisor.crash.scan import Find, Scanned, scan
from advisor.crash.sources import Source, open_sources, text_source
from advisor.crash.verdict import Judgement, Placed, judge, memory_by_frames, with_processes
from advisor.knowledge.schema import FrameRule, Progress, Signatures
from advisor.words import Phase

_EVIDENCE = 40
_TEXT = 4_000
_NEAR_LINES, _TASK_LINES = 30, 6
_STEPS_OF_A_RUN = 3
"""So many different steps on the log, and nothing that failed: the run was going on."""
_FACT_CHARACTERS = 2_000_000
_ORDER: dict[str, int] = {
    "cause": 0,
    "victim": 1,
    "echo": 2,
    "hint": 3,
    "pointer": 4,
    "warning": 5,
    "telemetry": 6,
    "progress": 7,
}


def read_logs(
    paths: Sequence[Path],
    signatures: Signatures,
    frames: Sequence[FrameRule] = (),
    progress: Sequence[Progress] = (),
) -> Crash:
    """What the logs at `paths` (files, folders, "-") prove. Raises LogError, one sentence, for what cannot be read."""
    return _read(open_sources(paths), signatures, frames, progress)


def read_text(
    text: str,
    name: str,
    signatures: Signatures,
    frames: Sequence[FrameRule] = (),
    progress: Sequence[Progress] = (),
) -> Crash:
    """The same for a log already in memory."""
    return _read([text_source(text, name)], signatures, frames, progress)


def _read(
    sources: Sequence[Source], signatures: Signatures, frames: Sequence[FrameRule], progress: Sequence[Progress]
) -> Crash:
    ready = catalogue(signatures)
    logs = [scan(source, ready) for source in sources]
    rules = [*signatures.frames, *frames]
    marks = [*signatures.progress, *progress]
    return _Story(logs, signatures, ready, rules, marks).tell()


class _Story:
    """The logs of one crash, and what is known of them while the story is put together."""

    def __init__(
        self,
        logs: Sequence[Scanned],
        signatures: Signatures,
        ready: Catalogue,
        rules: Sequence[FrameRule],
        marks: Sequence[Progress],
    ) -> None:
        self.logs = logs
        self.rules = rules
        self.marks = marks
        self.lines = [_known_lines(log) for log in logs]
        text = "\n".join(line.printed for lines in self.lines for line in lines)[:_FACT_CHARACTERS]
        self.text = text
        pairs = [(mark["framework"], mark["pattern"]) for mark in signatures.framework_marks]
        self.frameworks = frameworks_in(text, pairs)
        self.versions = [(entry["library"], entry["pattern"]) for entry in signatures.versions]
        self.marks_of_run = _unanchored(ready, self.lines)
        self.placed = self._ordered()

    def _ordered(self) -> list[Placed]:
        finds = [Placed(i, with_processes(find)) for i, log in enumerate(self.logs) for find in log.finds]
        finds += [Placed(i, find) for i, find in self.marks_of_run if find.signature.role == "cause"]
        stamped = len(self.logs) > 1 and all(one.find.first.stamp for one in finds if _is_cause(one))
        if stamped:  # several logs tell their order only by time; one log by position
            return sorted(finds, key=lambda one: (one.find.first.stamp or "~", one.log, one.find.offset))
        return sorted(finds, key=lambda one: (one.log, one.find.offset))

    def tell(self) -> Crash:
        judgement = judge(self.placed, *self._health())
        if not any(log.bytes_read for log in self.logs):
            return self._empty()
        cause = judgement.cause
        trace = self._trace(cause)
        phase, because = self._phase(cause, trace)
        users, rows = self._users(cause)
        memory = judgement.memory
        if cause is not None:
            memory = memory_by_frames(memory, cause.id, trace)
        evidence = self._evidence(judgement, users, rows, phase)
        if cause is not None and evidence:
            fields = {**self._pinned(cause, trace), **evidence[0].fields}
            evidence = (replace(evidence[0], memory=memory, phase=phase, fields=fields), *evidence[1:])
        because_unclear, settle_by = self._unclear(judgement, trace)
        return Crash(
            verdict=judgement.verdict,
            memory=memory,
            phase=phase,
            signature=cause.id if cause else "",
            evidence=evidence,
            frames=trace.frames,
            phase_because=because,
            top_users=users,
            libraries=self._libraries(),
            gpu_names=gpu_names_in(self.text),
            gpu_total_bytes=self._gpu_total(),
            settings=settings_in([line for lines in self.lines for line in lines]),
            frameworks=self.frameworks,
            unclear_because=because_unclear,
            settle_by=settle_by,
            lines_read=sum(log.lines_read for log in self.logs),
        )

    def _empty(self) -> Crash:
        names = ", ".join(log.name for log in self.logs)
        return Crash("unclear", "unknown", "unknown", unclear_because=f"the log is empty ({names})", settle_by=_EMPTY)

    def _health(self) -> tuple[bool, bool]:
        """(the log shows the end of a run, several steps were done)"""
        finished = any(find.signature.id == "run-finished" for _, find in self.marks_of_run)
        steps = {
            tuple(find.fields.values())
            for _, find in self.marks_of_run
            if find.signature.id == "training-step" and find.fields
        }
        return finished, len(steps) >= _STEPS_OF_A_RUN

    def _trace(self, cause: Placed | None) -> Trace:
        """The traceback of the cause; without one, the last traceback of the log."""
        if cause is not None and cause.id != judging.TRACEBACK:
            before = cause.find.before or tuple(
                line for line in self.lines[cause.log] if line.number < cause.find.first.number
            )
            trace = trace_above(before, cause.find.first.process)
            named = tasks_in([cause.find.first]) + trace.tasks + tasks_in(cause.find.after[:_TASK_LINES])
            return replace(trace, tasks=named)
        log = cause.log if cause is not None else 0
        lines = self.lines[log] if self.lines else []
        if cause is not None:
            lines = [cause.find.first, *cause.find.after] if cause.find.after else lines
        last = next((i for i in range(len(lines) - 1, -1, -1) if frame_in(lines[i])), None)
        return trace_above(lines[: last + 2], lines[last].process) if last is not None else Trace()

    def _phase(self, cause: Placed | None, trace: Trace) -> tuple[Phase, str]:
        known = self.frameworks
        phase, because = phase_of_frames(trace.frames, self.rules, known)
        if phase == "actor_update" and is_critic(cause.find.first.process if cause else "", trace):
            return "critic_update", f"{because}, in a critic's process"
        if phase != "unknown":
            return phase, because
        task = str(cause.find.fields.get("task", "")) if cause is not None else ""
        for texts, where in (([task, *trace.tasks], "task"), (trace.texts, "text")):
            phase, because = phase_of_texts([text for text in texts if text], self.rules, where, known)
            if phase != "unknown":
                return phase, because
        if cause is not None and cause.find.signature.phase != "unknown":
            return cause.find.signature.phase, f"the message itself ({cause.find.signature.title})"
        users, _ = self._users(cause)
        commands = [user.command.removeprefix("ray::") for user in users[:1]]
        phase, because = phase_of_texts(commands, self.rules, "task", known)
        if phase != "unknown":
            return phase, because.replace("Ray task", "the largest process,")
        return self._phase_by_progress(cause)

    def _phase_by_progress(self, cause: Placed | None) -> tuple[Phase, str]:
        if cause is None:
            lines: Sequence[Line] = [line for lines in self.lines for line in lines]
        else:
            number = cause.find.first.number
            mine = [line for line in self.lines[cause.log] if line.number <= number]
            lines = [*mine, *cause.find.before, cause.find.first]
        return last_progress(lines, self.marks, self.frameworks)

    def _users(self, cause: Placed | None) -> tuple[tuple[TopUser, ...], tuple[Line, ...]]:
        if cause is None or cause.find.signature.memory != "host":
            return (), ()
        follow = [cause.find.first, *cause.find.after]
        users, rows = top_users(follow)
        if users:
            return users, rows
        return next((found for lines in self.lines if (found := top_users(lines))[0]), ((), ()))

    def _evidence(
        self, judgement: Judgement, users: Sequence[TopUser], rows: Sequence[Line], phase: Phase
    ) -> tuple[Evidence, ...]:
        cause = judgement.cause
        told: list[Evidence] = []
        if cause is not None:
            told.append(_as_evidence(cause, self.logs, "cause" if judgement.verdict != "unclear" else None, rows))
            told.extend(_victim(told[0], users))
        rest = [one for one in self.placed if one is not cause]
        folded = _folded(rest, cause, self.logs, told)
        folded.sort(key=lambda evidence: _ORDER[evidence.role])
        return tuple([*told, *folded][:_EVIDENCE])

    def _pinned(self, cause: Placed, trace: Trace) -> dict[str, int]:
        """The size of a tensor that could not be pinned, where the program printed it just before."""
        if not judging.is_pinning(trace):
            return {}
        size = printed_tensor_bytes(cause.find.before[-_NEAR_LINES:])
        return {"tried_bytes": size} if size is not None else {}

    def _unclear(self, judgement: Judgement, trace: Trace) -> tuple[str, tuple[str, ...]]:
        if judgement.verdict != "unclear":
            return "", ()
        if judgement.because:
            return judgement.because, judgement.settle_by
        if trace.frames:
            return "the log ends inside a traceback, before the line that says what failed", _CUT_OFF
        return "the log shows neither a crash nor the end of a run", _CUT_OFF

    def _libraries(self) -> dict[str, str]:
        found = libraries_in(self.text, self.versions)
        return {**pip_lines(line for lines in self.lines for line in lines), **found}

    def _gpu_total(self) -> int | None:
        for one in self.placed:
            total = one.find.fields.get("total_bytes")
            if isinstance(total, int) and one.find.signature.memory == "gpu":
                return total
        return None


_EMPTY = ("Give the log that the training command itself wrote (standard output and standard error together).",)
_CUT_OFF = (
    "The rest of the log: the last lines of the process that failed first.",
    "In a Ray session's logs folder, the .err file of the worker that died.",
)


def _is_cause(one: Placed) -> bool:
    return one.find.signature.role == "cause"


def _known_lines(log: Scanned) -> list[Line]:
    """Every line the scan kept, in order and once: beginning, surroundings of finds, end."""
    around = (line for find in log.finds for line in (*find.before, find.first, *find.after))
    found: dict[tuple[int, str], Line] = {}
    for line in (*log.head, *around, *log.tail):
        found.setdefault((line.number, line.printed), line)
    return sorted(found.values(), key=lambda line: line.number)


def _unanchored(ready: Catalogue, logs: Sequence[Sequence[Line]]) -> list[tuple[int, Find]]:
    """Finds of signatures without anchors, on the lines that were kept; exceptions only below a traceback's frames."""
    found: list[tuple[int, Find]] = []
    entries = ready.unanchored()
    for index, lines in enumerate(logs):
        in_trace: set[str] = set()
        for line in lines:
            below = line.process in in_trace
            if frame_in(line):
                in_trace.add(line.process)
                continue
            if below and not line.text[:1].isspace():
                in_trace.discard(line.process)
            for entry in entries:
                if entry.signature.id == judging.OTHER_EXCEPTION and not below:
                    continue
                match = entry.regex.search(line.text)
                if match:
                    fields = {name: text for name, text in match.groupdict().items() if text}
                    found.append(
                        (index, Find(entry.signature, dict(fields), line, line.number, line.printed, line.number))
                    )
    return found


def _as_evidence(
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
        text=text[:_TEXT],
        memory=find.signature.memory,
        phase=find.signature.phase,
        fields=find.fields,
        process=find.first.process,
        repeats=find.first.repeats,
    )


def _victim(cause: Evidence, users: Sequence[TopUser]) -> list[Evidence]:
    """The killed Ray task, where it did not fill the node: a larger process exists, or it held under a quarter."""
    held, pid, node = (cause.fields.get(name) for name in ("task_bytes", "pid", "node_used_bytes"))
    if not isinstance(held, int) or not isinstance(node, int):
        return []
    larger = any(user.pid != pid and user.used_bytes > held for user in users)
    if not larger and held > node // 4:
        return []
    fields = {name: cause.fields[name] for name in ("task", "task_bytes", "pid") if name in cause.fields}
    return [replace(cause, role="victim", fields=fields)]


def _folded(
    rest: Sequence[Placed], cause: Placed | None, logs: Sequence[Scanned], told: list[Evidence]
) -> list[Evidence]:
    """The other finds, equal ones (numbers aside) as one with a count; repeats of the cause count on the cause."""
    seen: dict[tuple[str, str], int] = {}
    folded: list[Evidence] = []
    if cause is not None:
        seen[(cause.id, _masked(cause.find.text))] = -1
    for one in rest:
        key = (one.id, _masked(one.find.text))
        more = 1 + one.find.first.repeats
        if key in seen:
            at = seen[key]
            target = told[0] if at < 0 else folded[at]
            counted = replace(target, repeats=target.repeats + more)
            if at < 0:
                told[0] = counted
            else:
                folded[at] = counted
            continue
        seen[key] = len(folded)
        echo: EvidenceRole | None = "echo" if cause is not None and _echoes(one, cause) else None
        folded.append(_as_evidence(one, logs, echo))
    return folded


def _echoes(one: Placed, cause: Placed) -> bool:
    mine, first = one.find.signature, cause.find.signature
    return mine.role == "cause" and mine.verdict == first.verdict and mine.memory == first.memory


def _masked(text: str) -> str:
    return re.sub(r"\d+(?:\.\d+)?", "#", text)[:600]
