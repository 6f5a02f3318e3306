"""From logs to the story of a crash: first cause apart from its echoes, its phase, and what the log says on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from advisor.crash import verdict as judging
from advisor.crash.config_dump import settings_in
from advisor.crash.evidence import Crash, Evidence, TopUser
from advisor.crash.facts import frameworks_in, gpu_names_in, libraries_in, pip_lines, printed_tensor_bytes, top_users
from advisor.crash.fold import as_evidence, folded, progress_told, victims
from advisor.crash.keep import Find
from advisor.crash.lines import Line
from advisor.crash.marks import known_lines, unanchored
from advisor.crash.moment import Rules, left_open, moment_of, trace_of
from advisor.crash.neighbours import engine_processes, lists_processes
from advisor.crash.parts import parts
from advisor.crash.patterns import Field, catalogue
from advisor.crash.phase import Mark, Trace, last_progress
from advisor.crash.readings import readings_in
from advisor.crash.runs import newest_crash
from advisor.crash.scan import Scanned, scan
from advisor.crash.snapshot import readable
from advisor.crash.sources import PREVIEW, Source, open_sources, tail_source, text_source
from advisor.crash.unwrap import unwrapped
from advisor.crash.verdict import ALLOCATOR_WARNING, Judgement, Placed, memory_by_frames, with_processes
from advisor.knowledge.schema import FrameRule, Progress, Signatures
from advisor.language import listed, mark, say
from advisor.words import both

_EVIDENCE = 40
_NEAR_LINES = 30
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
    crash = _once(sources, signatures, frames, progress, told)
    if crash.verdict != "unclear" and crash.phase != "unknown":
        return crash
    whole = unwrapped(sources)
    again = _once(whole, signatures, frames, progress) if whole is not None else crash
    return again if _tells_more(again, crash) else crash


def _tells_more(again: Crash, crash: Crash) -> bool:
    """Whether a second reading settles what the first left open, and contradicts nothing that it proved."""
    if crash.verdict == "unclear":
        return again.verdict != "unclear"
    same = (again.verdict, again.memory) == (crash.verdict, crash.memory)
    return same and crash.phase == "unknown" and again.phase != "unknown"


def _once(
    sources: Sequence[Source],
    signatures: Signatures,
    frames: Sequence[FrameRule],
    progress: Sequence[Progress],
    told: Told | None = None,
) -> Crash:
    ready = catalogue(signatures)
    logs = [scan(readable(source), ready, _of_one(told, source)) for source in sources]
    lines = [known_lines(log) for log in logs]
    rules, marks = [*signatures.frames, *frames], [*signatures.progress, *progress]
    changed = [source.changed for source in sources]
    return _Story(logs, signatures, unanchored(ready, lines), rules, marks, lines, changed).tell()


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
        marks: Sequence[tuple[int, Find]],
        rules: Sequence[FrameRule],
        progress: Sequence[Progress],
        lines: Sequence[Sequence[Line]],
        changed: Sequence[float],
    ) -> None:
        self.logs = logs
        self.lines = lines
        self.marks = [Placed(i, find) for i, find in marks]
        self.text = "\n".join(line.printed for of_one in lines for line in of_one)[:_FACT_CHARACTERS]
        self.rules = Rules(rules, progress, frameworks_in(self.text, signatures.framework_marks))
        self.versions = signatures.versions
        self.placed = self._ordered()
        self.run, self.earlier = newest_crash(self.placed, self.marks, parts(lines, changed))

    def _ordered(self) -> list[Placed]:
        finds = [Placed(i, with_processes(find)) for i, log in enumerate(self.logs) for find in log.finds]
        finds += [one for one in self.marks if one.find.signature.role in _JUDGED]
        stamped = len(self.logs) > 1 and all(one.find.first.stamp for one in finds if _is_cause(one))
        if stamped:  # several logs tell their order only by time; one log by position
            return sorted(finds, key=lambda one: (one.find.first.stamp or "~", one.log, *one.place))
        return sorted(finds, key=lambda one: (one.log, *one.place))

    def tell(self) -> Crash:
        judgement, cause = self.run.judgement, self.run.judgement.cause
        if not any(log.bytes_read for log in self.logs):
            return self._empty()
        trace = trace_of(cause, self._lines_of(cause))
        users, rows = self._users(cause)
        mark = last_progress(self._lines_until(cause), self.rules.progress, self.rules.frameworks)
        phase, because = moment_of(cause, trace, mark, users, self.rules)
        among, frame = left_open(cause, trace, self.rules) if phase == "unknown" else ((), "")
        if among:
            because = say("{frame}: part of {phases}; its caller is not shown", frame=frame, phases=both(among))
        memory = judgement.memory
        if cause is not None:
            memory = memory_by_frames(memory, cause.id, trace)
        evidence = self._evidence(judgement, users, rows, mark)
        if cause is not None and evidence:
            fields = {**self._pinned(cause, trace), **_warned(cause, self.run.placed), **_witnessed(judgement)}
            fields |= evidence[0].fields
            fields |= self._engines(cause)
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
            settings=settings_in(self._told_first()),
            frameworks=tuple(self.rules.frameworks),
            unclear_because=because_unclear,
            settle_by=settle_by,
            lines_read=sum(log.lines_read for log in self.logs),
            readings=readings_in(self.placed, [log.name for log in self.logs], self.rules.frames),
            steps_done=self.run.health.steps_done,
            miles={log.name: tuple(log.miles) for log in self.logs if log.miles},
            phase_among=among,
        )

    def _empty(self) -> Crash:
        because = say("the log is empty ({names})", names=listed(log.name for log in self.logs))
        return Crash("unclear", "unknown", "unknown", unclear_because=because, settle_by=(say(_EMPTY),))

    def _lines_of(self, cause: Placed | None) -> Sequence[Line]:
        """The kept lines of the cause's log, or of the first one, as far as they belong to the run told of."""
        log = cause.log if cause is not None else min(self.run.part.logs, default=0)
        lines = self.lines[log] if self.lines else []
        return [line for line in lines if self.run.part.covers(log, line.number)]

    def _lines_until(self, cause: Placed | None) -> Sequence[Line]:
        if cause is None:
            return [line for log, line in self._every_line() if self.run.part.covers(log, line.number)]
        number = cause.find.first.number
        mine = [line for line in self._lines_of(cause) if line.number <= number]
        before = (line for line in cause.find.before if self.run.part.covers(cause.log, line.number))
        return [*mine, *before, cause.find.first]

    def _told_first(self) -> list[Line]:
        """Every kept line; those of the run told of first, because of a setting printed twice the first one counts."""
        every = sorted(self._every_line(), key=lambda placed: not self.run.part.covers(placed[0], placed[1].number))
        return [line for _, line in every]

    def _every_line(self) -> list[tuple[int, Line]]:
        return [(log, line) for log, lines in enumerate(self.lines) for line in lines]

    def _users(self, cause: Placed | None) -> tuple[tuple[TopUser, ...], tuple[Line, ...]]:
        if cause is None or self.run.judgement.memory != "host":
            return (), ()
        follow = [cause.find.first, *cause.find.after]
        users, rows = top_users(follow)
        if users:
            return users, rows
        return next((found for lines in self.lines if (found := top_users(lines))[0]), ((), ()))

    def _evidence(
        self, judgement: Judgement, users: Sequence[TopUser], rows: Sequence[Line], mark: Mark | None
    ) -> tuple[Evidence, ...]:
        cause, told = judgement.cause, list[Evidence]()
        if cause is not None:
            told.append(as_evidence(cause, self.logs, "cause" if judgement.verdict != "unclear" else None, rows))
            told.extend(victims(told[0], users))
        if judgement.witness is not None:
            told[:] = [replace(told[0], role="cause"), as_evidence(judgement.witness, self.logs), *told[1:]]
        known = {id(cause), id(judgement.witness)}
        rest = folded([one for one in self.run.placed if id(one) not in known], cause, self.logs, told)
        rest.extend(replace(one, role="warning") for one in folded(self.run.outlived, None, self.logs, []))
        if mark is not None and all(one.line != mark[0].number for one in (*told, *rest)):
            rest.append(progress_told(mark, self._name_of(cause)))
        rest.extend(self._of_earlier_runs())
        rest.sort(key=lambda evidence: _ORDER[evidence.role])
        return tuple([*told, *rest][:_EVIDENCE])

    def _name_of(self, cause: Placed | None) -> str:
        return self.logs[cause.log if cause is not None else 0].name

    def _of_earlier_runs(self) -> list[Evidence]:
        """The first cause of each earlier run, newest first."""
        told = []
        for ago, run in enumerate(self.earlier, 1):
            if run.judgement.cause is not None:
                told.append(replace(as_evidence(run.judgement.cause, self.logs, "warning"), runs_ago=ago))
        return told

    def _engines(self, cause: Placed) -> dict[str, Field]:
        """What the run's own engine held, where torch lists its process beside the one that failed."""
        if not lists_processes(cause.find.text):
            return {}
        kept = {line.process for log, line in self._every_line() if self.run.part.covers(log, line.number)}
        return engine_processes(cause.find.text, kept | {one.find.first.process for one in self.run.placed})

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
        cut_off = tuple(say(text) for text in _CUT_OFF)
        if trace.frames:
            return say("the log ends inside a traceback, before the line that says what failed"), cut_off
        return say("the log shows neither a crash nor the end of a run"), cut_off

    def _libraries(self) -> dict[str, str]:
        found = libraries_in(self.text, self.versions)
        return {**pip_lines(line for lines in self.lines for line in lines), **found}

    def _gpu_total(self) -> int | None:
        for one in self.run.placed:
            total = one.find.fields.get("total_bytes")
            if isinstance(total, int) and one.find.signature.memory == "gpu":
                return total
        return None


_JUDGED = ("cause", "hint", "pointer", "warning", "telemetry")
"""Roles of signatures without anchors that are evidence; of progress only the last mark is."""
_EMPTY = mark("Give the log that the training command itself wrote (standard output and standard error together).")
_CUT_OFF = (
    mark("The rest of the log: the last lines of the process that failed first."),
    mark("In a Ray session's logs folder, the .err file of the worker that died."),
)


def _is_cause(one: Placed) -> bool:
    return one.find.signature.role == "cause"


def _warned(cause: Placed, placed: Sequence[Placed]) -> dict[str, Field]:
    """What the allocator's last warning before a message printed of the same request, where the message is cut."""
    tried = cause.find.fields.get("tried_bytes")
    before = [one for one in placed if one.id == ALLOCATOR_WARNING and one.find.offset < cause.find.offset]
    if not before or before[-1].log != cause.log or not isinstance(tried, int):
        return {}
    fields = before[-1].find.fields
    asked = fields.get("tried_bytes")
    return dict(fields) if isinstance(asked, int) and abs(asked - tried) <= tried // 100 else {}


def _witnessed(judgement: Judgement) -> dict[str, Field]:
    """What the reading that makes a kill a shortage showed."""
    if judgement.witness is None:
        return {}
    reading = judgement.witness.find
    return {**reading.fields, "witness_line": reading.first.number}
