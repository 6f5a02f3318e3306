"""From logs to the story of a crash: first cause apart from its echoes, its phase, and what the log says on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.crash import verdict as judging
from advisor.crash.config_dump import settings_in
from advisor.crash.evidence import Crash, Evidence, TopUser
from advisor.crash.facts import frameworks_in, gpu_names_in, libraries_in, pip_lines, printed_tensor_bytes, top_users
from advisor.crash.fold import as_evidence, folded, victims
from advisor.crash.keep import Find
from advisor.crash.lines import Line
from advisor.crash.patterns import Catalogue, Field, catalogue, fields_of
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
from advisor.crash.readings import readings_in
from advisor.crash.scan import Scanned, scan
from advisor.crash.sources import Source, open_sources, tail_source, text_source
from advisor.crash.verdict import Judgement, Placed, judge, memory_by_frames, with_processes
from advisor.knowledge.schema import FrameRule, Progress, Signatures
from advisor.words import Phase

_EVIDENCE = 40
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


Told = Callable[[str, int, int | None], None]
"""Called now and then: a log's name, the bytes read of it, its size where that is known."""
PREVIEW = 64 << 20
"""Bytes at the end of a log that a preview reads."""


def read_logs(
    paths: Sequence[Path],
    signatures: Signatures,
    frames: Sequence[FrameRule] = (),
    progress: Sequence[Progress] = (),
    told: Told | None = None,
) -> Crash:
    """What the logs at `paths` (files, folders, "-") prove. Raises LogError, one sentence, for what cannot be read."""
    return _read(open_sources(paths), signatures, frames, progress, told)


def preview(
    paths: Sequence[Path],
    signatures: Signatures,
    frames: Sequence[FrameRule] = (),
    progress: Sequence[Progress] = (),
    length: int = PREVIEW,
) -> Crash | None:
    """What the last `length` bytes of each log prove, in well under a second; None where no log is that long.

    Pipes, standard input and packed logs have no end to begin with and are left out. Raises LogError as `read_logs`.
    """
    sources = [source for source in open_sources(paths) if source.path is not None and source.size]
    tails = [tail_source(source, length) for source in sources]
    if not any(tails):
        return None
    short = [tail or source for tail, source in zip(tails, sources, strict=True)]
    return replace(_read(short, signatures, frames, progress), preliminary=True)


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
    sources: Sequence[Source],
    signatures: Signatures,
    frames: Sequence[FrameRule],
    progress: Sequence[Progress],
    told: Told | None = None,
) -> Crash:
    ready = catalogue(signatures)
    logs = [scan(source, ready, _of_one(told, source)) for source in sources]
    rules = [*signatures.frames, *frames]
    marks = [*signatures.progress, *progress]
    return _Story(logs, signatures, ready, rules, marks).tell()


def _of_one(told: Told | None, source: Source) -> Callable[[int], None] | None:
    if told is None:
        return None
    size = source.size
    return lambda read: told(source.name, read, size)


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
        self.readings = [Placed(i, find) for i, find in self.marks_of_run if find.signature.role == "telemetry"]
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
            readings=readings_in([*self.placed, *self.readings], [log.name for log in self.logs], self.rules),
            steps_done=self._steps_done(),
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

    def _steps_done(self) -> int | None:
        """The highest count of the trainer's own progress ("step:12", "Training Progress: 0%| 0/105")."""
        counts = [
            int(float(str(find.fields[name]).removesuffix("k")))
            for _, find in self.marks_of_run
            if find.signature.id == "training-step"
            for name in ("step", "done")
            if name in find.fields
        ]
        return max(counts, default=None)

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
            told.append(as_evidence(cause, self.logs, "cause" if judgement.verdict != "unclear" else None, rows))
            told.extend(victims(told[0], users))
        rest = [one for one in self.placed if one is not cause]
        rest_told = folded(rest, cause, self.logs, told)
        rest_told.sort(key=lambda evidence: _ORDER[evidence.role])
        return tuple([*told, *rest_told][:_EVIDENCE])

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
    found_lines = (find.first for find in log.finds)
    found: dict[tuple[int, str], Line] = {}
    for line in (*log.head, *log.around, *found_lines, *log.tail):
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
                    fields: dict[str, Field] = {name: text for name, text in match.groupdict().items() if text}
                    if entry.signature.role == "telemetry":
                        fields = fields_of(entry.signature, match)
                    found.append(
                        (index, Find(entry.signature, dict(fields), line, line.number, line.printed, line.number))
                    )
    return found
