"""Reads logs into a Crash: the first cause apart from its echoes, its phase, and what the logs say on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from advisor.crash import log_facts
from advisor.crash.account import A_PAGE, TITLE_LINES, memory_near
from advisor.crash.command_lines import commands_in
from advisor.crash.config_dump import (
    described_in,
    lines_in_person,
    listed_settings,
    model_config_in,
    settings_in,
    settings_in_blocks,
)
from advisor.crash.evidence import Crash, Evidence, Frame, TopUser, parts_in, stopped_without_a_word
from advisor.crash.finds import FAILURES, LogFind, as_evidence, deduplicated, victims
from advisor.crash.holders import with_holders
from advisor.crash.lines import LogLine
from advisor.crash.log_reader import unwrapped
from advisor.crash.logged_runs import StepCount, newest_crash, runs_in, training_bar
from advisor.crash.observations import observations_in, of_the_run
from advisor.crash.patterns import FieldValue, catalogue_of
from advisor.crash.phase import (
    PhaseProof,
    PhaseRules,
    ProgressLine,
    at_the_end,
    last_progress,
    mark_words,
    open_phases,
    phase_of,
    phase_of_function,
    phase_of_texts,
    preceding,
    resumed_at,
    trained_before,
)
from advisor.crash.scan import cut_finds, scan, unanchored_finds
from advisor.crash.snapshot import readable
from advisor.crash.sources import PREVIEW, LogSource, open_sources, tail_source, text_source
from advisor.crash.statements import holder_said, libraries_now, phase_said, runs_told, statements_in
from advisor.crash.tracebacks import BEGIN, NO_TRACE, Trace, trace_of, traced_versions, waiter_of
from advisor.crash.verdict import (
    KILL_TOLD,
    KILLS,
    SAID,
    TOLD,
    Judgement,
    chosen,
    in_phase,
    memory_by_frames,
    why_unclear,
)
from advisor.crash.worded_sizes import with_worded
from advisor.knowledge.schema import FrameRule, Progress, Signatures
from advisor.language import clauses, listed, mark, say
from advisor.machine.ram_words import ram_of_page
from advisor.redact import redact
from advisor.regex import regex
from advisor.script.pasted import words_in
from advisor.words import Memory, Phase, both

STILL = 3 * 3600.0
"""Seconds without a line after which a run is not going on: the longest steps, saves and validations take less
(judgement)."""
_EVIDENCE = 40
"""Pieces of evidence that are given."""
_TABLE_COMMAND = regex(r"\bray logs raylet\.out -ip [0-9A-Za-z.:-]{3,64}")
"""Ray names it where it tells of killed workers."""
_LOOP = ("train", "_inner_training_loop", "training_step")
"""Functions of transformers' Trainer between which its bar moves on (transformers@v4.57.1 trainer.py)."""
_SOURCE = 200
"""Characters kept of a source line."""
_CODE = regex(r"^\s*(?:return |[\w.\[\], ]{1,80} = )?[\w.]{1,80}\(")
"""A statement that calls something, as a traceback quotes it."""
_RAISED = regex(r"\s*[\w.]*(?:Error|Exception|Interrupt|Exit)\b")
"""The line that ends a traceback."""
_SAME_STEP = 1
"""Step counts after a save that may still be of the step that saved."""
_FACT_CHARACTERS = 2_000_000
"""Characters of the kept lines in which facts are looked for."""
_PROGRESS_CHARACTERS = 400
"""Characters shown of the end of a progress line."""
_ORDER = ("cause", "victim", "echo", "hint", "pointer", "warning", "telemetry", "progress")
"""The order in which evidence is given, by its role."""
_JUDGED = (*FAILURES, "warning", "telemetry")
"""Roles of signatures without anchors that are evidence; of progress only the last mark is."""
ENDED_BY_LAUNCHER = "launcher-ended"
"""Signature of a launcher that ends the other processes, in the middle of what they print."""
_LINES_ABOVE = 8
"""Lines right above a failure in which its source line may stand under another label."""
_LINES_OF_A_CUT = 40
"""Last lines of a log without a failure in which a source line may name the phase."""
SAID_IN = "--model"
"""Where people write what is no log of theirs."""
_EMPTY = mark("Give the log that the training command itself wrote (standard output and standard error together).")
ProgressCallback = Callable[[str, int, int | None], None]
"""Called now and then: a log's name, the bytes read of it, its size where that is known."""


def read_logs(
    paths: Sequence[Path],
    signatures: Signatures,
    frames: Sequence[FrameRule] = (),
    progress: Sequence[Progress] = (),
    on_progress: ProgressCallback | None = None,
    words: str = "",
) -> Crash:
    """What the logs at `paths` (files, folders, "-") prove. Raises LogError, one sentence, for what cannot be read.
    `words`: what a person says of the run beside them."""
    said = [text_source(words, SAID_IN)] if words else []
    return _read([*said, *open_sources(paths)], signatures, frames, progress, on_progress)


def read_ends(
    paths: Sequence[Path],
    signatures: Signatures,
    frames: Sequence[FrameRule] = (),
    progress: Sequence[Progress] = (),
    length: int = PREVIEW,
) -> Crash | None:
    """What the last `length` bytes of each log prove; not `preliminary` where none of them is longer. None where one is
    a pipe or standard input, which can be read once only, or packed and long, which has no end to begin with. Raises
    LogError as `read_logs`."""
    sources = open_sources(paths)
    tails = [tail_source(source, length) for source in sources]
    for source, tail in zip(sources, tails, strict=True):
        if source.size is None or (tail is None and source.size > length):
            return None
    short = [tail or source for tail, source in zip(tails, sources, strict=True)]
    return replace(_read(short, signatures, frames, progress), preliminary=any(tails))


def read_text(
    text: str, name: str, signatures: Signatures, frames: Sequence[FrameRule] = (), progress: Sequence[Progress] = ()
) -> Crash:
    """The same for a log already in memory."""
    return _read([text_source(text, name)], signatures, frames, progress)


def _read(
    sources: Sequence[LogSource],
    signatures: Signatures,
    frames: Sequence[FrameRule],
    progress: Sequence[Progress],
    on_progress: ProgressCallback | None = None,
) -> Crash:
    rules = PhaseRules([*signatures.frames, *frames], [*progress, *signatures.progress])  # its own words go first
    crash = _CrashReader(sources, signatures, rules, on_progress).crash()
    last = max((source.changed for source in sources), default=0.0)
    still = 0 < last < time.time() - STILL  # nobody writes to it any more
    # that it died in some phase a person's words alone tell of a run that ended well
    told = crash.phase != "unknown" and not crash.phase_by_mark and not crash.frames
    if crash.is_well and (told or (not crash.finished and still)):
        return stopped_without_a_word(crash)
    if crash.is_well and crash.doubts:  # nothing failed in what was read; what was not is where it would stand
        return replace(crash, verdict="unclear", memory="unknown", unclear_because=crash.doubts[0].rstrip(".。"))
    if crash.verdict != "unclear" and crash.phase != "unknown":
        return crash
    whole = unwrapped(sources)
    again = _CrashReader(whole, signatures, rules).crash() if whole is not None else crash
    # it settles what was left open, and contradicts nothing that was proven
    settled = crash.verdict == "unclear" and again.verdict != "unclear"
    same = (again.verdict, again.memory) == (crash.verdict, crash.memory)
    return again if settled or (same and crash.phase == "unknown" != again.phase) else crash


class _CrashReader:
    """The logs of one crash, scanned, and what is known of them while the crash is put together."""

    def __init__(
        self,
        sources: Sequence[LogSource],
        signatures: Signatures,
        rules: PhaseRules,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        ready, self.sources = catalogue_of(signatures), sources
        told = [None if on_progress is None else partial(_tell, on_progress, source) for source in sources]
        self.logs = [scan(readable(source), ready, tell) for source, tell in zip(sources, told, strict=True)]
        self.names = [log.name for log in self.logs]
        self.lines = [log.kept_lines() for log in self.logs]
        self.text = "\n".join(line.printed for _, line in self._every_line())[:_FACT_CHARACTERS]
        self.frameworks = log_facts.frameworks_in(self.text, signatures.framework_marks)
        below = {mark.framework for mark in signatures.framework_marks if mark.below}
        self.every_rule, self.rules = rules, rules.of([name for name in self.frameworks if name not in below])
        self.signatures = signatures
        marks = unanchored_finds(ready, self.lines)
        self.placed = self._ordered(marks)
        if not any(one.role in FAILURES for one in self.placed):
            self.placed = self._ordered([*marks, *cut_finds(ready, self.lines)])
        said = frozenset(at for at, name in enumerate(self.names) if name == SAID_IN)
        # what a person may have written
        self.page = [at for at in self._every_line() if len(self.text) <= A_PAGE or at[0] in said]
        self.said = [line.text for log in said for line in self.lines[log]]
        runs = runs_in(self.lines, [source.changed for source in sources], said)
        self.run, self.earlier = newest_crash(self.placed, marks, runs)

    def _ordered(self, marks: Sequence[LogFind]) -> list[LogFind]:
        finds = [LogFind(i, with_holders(with_worded(find))) for i, log in enumerate(self.logs) for find in log.finds]
        covered = {(one.log, line) for one in finds if one.role == "cause"
                   for line in range(one.number, one.find.last_number + 1)}  # fmt: skip
        finds = chosen(finds, [one for one in marks if one.role in _JUDGED and not (
            _is_shortage(one) and one.place[:2] in covered)])  # fmt: skip
        # several logs tell their order only by time, one by position
        stamped = len(self.logs) > 1 and all(one.find.first.stamp for one in finds if one.role == "cause")
        return sorted(finds, key=lambda one: (one.find.first.stamp or "~" if stamped else "", one.place))

    def crash(self) -> Crash:
        judgement, cause = self.run.judgement, self.run.judgement.cause
        if not any(log.bytes_read for log in self.logs):
            because = say("the log is empty ({names})", names=listed(self.names))
            return Crash("unclear", "unknown", "unknown", unclear_because=because, settle_by=(say(_EMPTY),))
        trace = self._trace(cause)
        users, rows, cut = self._users(cause)
        last = last_progress(self._lines_until(cause), self.rules)
        driver = NO_TRACE if trace.frames or cause is None else waiter_of(cause, self._lines_of(cause))
        phase, because = phase_of(cause, trace, last, users, self.rules, driver)
        by_mark = last is not None and because == mark_words(last)
        if phase == "unknown":
            phase, because = self._told_phase(cause, trace)
        among, frame = open_phases(cause, trace, self.rules) if phase == "unknown" else ((), "")
        if among:
            because = say("{frame}: part of {phases}; its caller is not shown", frame=frame, phases=both(among))
        if phase == "unknown" and (cause is not None or judgement.verdict != "not_oom"):
            phase, among, because = self._narrowed(among, because, cause)
        judgement = in_phase(judgement, phase, trace, self.signatures.signatures)
        cause, memory = judgement.cause, judgement.memory
        evidence = self._evidence(judgement, users, rows, last)
        if cause is not None:
            memory = memory_by_frames(memory, cause.id, trace)
            if memory == "unknown" and cause.id in TOLD and (words := self.signatures.statements):
                memory = memory_near(cause.find.text, self._plain(), words.account)
            fields = {**log_facts.fields_beside(judgement, trace, self.run.placed), **evidence[0].fields}
            fields |= {**self._engines(cause), **self._on_card(cause, memory)}
            evidence = (replace(evidence[0], memory=memory, phase=phase, fields=fields), *evidence[1:])
        every, marks = [line for _, line in self._every_line()], self.signatures
        unclear_because, settle_by = why_unclear(judgement, trace, every, last, self.rules)
        # of a setting printed twice the first one counts: the lines of the run that is judged come first
        printed, written = (
            [line for _, line in sorted(lines, key=lambda at: not self.run.lines.covers(at[0], at[1].number))]
            for lines in (self._every_line(), self.page)
        )
        settings = settings_in(printed)
        blocks = settings_in_blocks(written)
        lists = dict(listed_settings(printed))
        # a list of the same names is a person's, in parts of names
        settings = {} if settings.keys() <= blocks.keys() & lists.keys() else {**blocks, **settings}
        person = list(dict.fromkeys((*self.said, *lines_in_person(written))))
        in_person = "\n".join(person)
        # what a program printed under a time or a process is nobody's account; the numbers of lines stay
        plain = "\n".join("" if line.stamp or line.process else line.printed for line in written)
        stated = statements_in(plain, marks.statements) | holder_said(in_person, marks.statements)
        observed = observations_in(plain, marks.statements)
        spelled = marks.statements.libraries if marks.statements else {}
        bare, dated = trace.texts[0] if trace.texts else "", log_facts.dated_in(self.text, time.strftime("%Y-%m-%d"))
        met = {**log_facts.listed_versions(every, spelled), **log_facts.libraries_in(self.text, marks.versions)}
        return Crash(
            verdict=judgement.verdict,
            memory=memory,
            phase=phase,
            signature=cause.id if cause else "",
            evidence=evidence,
            frames=trace.frames,
            source_line=redact(bare.strip()[:_SOURCE]) if not trace.frames and _CODE.search(bare) else "",
            phase_because=because,
            top_users=users,
            users_cut=cut,
            libraries=libraries_now(met, observed),
            traced=traced_versions(trace.frames),
            gpu_names=log_facts.gpu_names_in(self.text),
            gpu_total_bytes=log_facts.gpu_total(self.run.placed),
            settings=settings,
            command=next(commands_in(printed), None),
            engine_figures=log_facts.engine_figures_in(self.text, marks.engine_figures),
            model_config=model_config_in(printed),
            counts={**log_facts.ranks_by_batch(self.text, settings), **log_facts.counts_in(self.text, marks.counts)},
            platform=log_facts.platform_in(self.text, marks.platforms),
            host_total_bytes=log_facts.host_total(self.placed) or ram_of_page([line.text for line in written]),
            host_filled=log_facts.host_filled(self.run.placed),
            frameworks=self.frameworks,
            project=log_facts.project_in(self.text, marks.projects),
            unclear_because=unclear_because,
            settle_by=settle_by,
            lines_read=sum(log.lines_read for log in self.logs),
            readings=log_facts.readings_in(self.placed, self.names, self.every_rule.frames),
            steps_done=self._steps_done(trace),
            line_index={log.name: tuple(log.line_index) for log in self.logs if log.line_index},
            phase_among=among,
            phase_by_mark=by_mark,
            finished=self.run.health.finished,
            steps_seen=any(one.count > 0 for one in self.run.health.counts),
            stepped=self.run.health.stepped,
            preceded=self._preceded(cause, phase),
            resumed=self._resumed(cause),
            trained_before=trained_before(self._lines_until(cause), last),
            speaks_of=parts_in(self.text),
            dated=dated or (cause.find.signature.until if cause else ""),
            table_command=match[0] if (match := _TABLE_COMMAND.search(self.text)) else "",
            doubts=(*self._unread(), *self._unordered(cause)),
            statements=stated,
            observations=observed,
            runs_told=runs_told(self._plain(), marks.statements) if written else {},
            described={**blocks, **of_the_run(described_in(person), observed)},
            prose=words_in(in_person.encode()),
        )

    def _told_phase(self, cause: LogFind | None, trace: Trace) -> PhaseProof:
        """The phase by the lines around it, where it has no traceback or that is cut; else by what a person writes."""
        until, page = self._lines_until(cause, whole=False), len(self.text) <= A_PAGE
        near = until[-_LINES_OF_A_CUT:] if cause is None else until[-_LINES_ABOVE:-1]
        if (cause is None) == bool(trace.frames):
            phase, quoted = phase_of_texts([line.text for line in near], self.rules.frames, "text")
            if quoted:
                return phase, say("the log's text {quoted}", quoted=quoted)
        texts = [(cause.find.text, False)] if cause is not None and cause.id in SAID else []
        texts += [(self._plain(), cause is not None and cause.id in (*TOLD, KILL_TOLD))] if page else []
        words, function = self.signatures.statements, partial(phase_of_function, rules=self.rules.frames)
        told = (phase_said(text, words, function, note=note) for text, note in texts)
        return next((one for one in told if one[0] != "unknown"), ("unknown", ""))

    def _narrowed(
        self, among: tuple[Phase, ...], because: str, cause: LogFind | None
    ) -> tuple[Phase, tuple[Phase, ...], str]:
        """The phases that are left where the training stands at its end: one alone is the phase."""
        ended, told = at_the_end(self._lines_until(cause))
        left = tuple(phase for phase in ended if phase in among) if among else ended
        if not left:
            return "unknown", among, because
        because = clauses(filter(None, (because, told)))
        return (left[0], (), because) if len(left) == 1 else ("unknown", left, because)

    def _trace(self, cause: LogFind | None) -> Trace:
        """The traceback of the cause; if its message was printed before it was raised, the one it was raised with."""
        trace = trace_of(cause, self._lines_of(cause))
        if cause is not None and cause.id == ENDED_BY_LAUNCHER and not trace.frames:
            return trace_of(None, self._lines_until(cause))  # cut where the launcher ended it
        if cause is None or trace.frames:
            return trace
        again = (one for one in self.run.placed if one.id == cause.id and one.place > cause.place)
        raised = (trace_of(one, self._lines_of(one)).frames for one in again)
        return replace(trace, frames=next(filter(None, raised), ()) or self._cut_below(cause))

    def _cut_below(self, cause: LogFind) -> tuple[Frame, ...]:
        """The frames of the only traceback of a page, below its message: somebody pasted that first, and a traceback
        without its last line, perhaps without its first."""
        below = [line for line in self._lines_of(cause) if line.number > cause.find.last_number]
        heads = sum(BEGIN in line.text for line in below)
        ended = any(_RAISED.match(line.text) for line in below)
        return () if heads > 1 or ended or len(self.text) > A_PAGE else trace_of(None, below).frames

    def _steps_done(self, trace: Trace) -> int | None:
        """The trainer's own count, else that of the bar without a title which is shown to be the training's: by the
        lines around it, or as the only one there is inside the loop of transformers' Trainer."""
        counted = self.run.health.steps_done
        if counted is not None:
            return counted
        shown = training_bar(self._of_run())
        in_loop = any(frame.function in _LOOP and frame.file.endswith("trainer.py") for frame in trace.frames)
        return self.run.health.bar_done if shown is None and in_loop else shown

    def _unread(self) -> Iterator[str]:
        """What of the logs was not read."""
        for log in self.logs:
            yield from log.doubts
        if left_out := sum(source.left_out for source in self.sources):
            yield say(
                "{count} more logs of the folder were not read; those that end in a failure went first, the earliest "
                "of them before the others. Give the log of a rank with --log to look at it.",
                count=left_out,
            )

    def _unordered(self, cause: LogFind | None) -> Iterator[str]:
        """That another log shows another shortage, and no times say which came first."""
        others = [
            one for one in self.run.placed
            if cause is not None and _is_shortage(one) and _is_shortage(cause) and one.log != cause.log
            and one.memory != cause.memory and not (one.find.first.stamp and cause.find.first.stamp)
        ]  # fmt: skip
        if cause is not None and others:
            yield say(
                "{other} shows another shortage than {file}, and no times say which came first: {file} is taken to, "
                "because it was given first.",
                file=self.names[cause.log],
                other=self.names[others[0].log],
            )

    def _preceded(self, cause: LogFind | None, phase: Phase) -> tuple[Phase, int] | None:
        """The save or validation right before the failure: no further step was done since, and no steps after an
        earlier one, which shows that what it leaves has room."""
        found = preceding(self._lines_until(cause), self.rules)
        if not found or found[-1][1] == phase:
            return None
        line, ended = found[-1]
        ends, counts = [one.number for one, kind in found if kind == ended], self._counts(cause)
        for begin, end in zip(ends, (*ends[1:], math.inf), strict=True):
            if len({(one.group, one.count) for one in counts if begin < one.line < end}) > _SAME_STEP:
                return None
        return ended, line.number

    def _resumed(self, cause: LogFind | None) -> int | None:
        """The line on which the run takes up a checkpoint, where no step stands above it and none was done below."""
        begin, counts = resumed_at(self._lines_until(cause), self.rules), self._counts(cause)
        since = {(one.group, one.count) for one in counts}
        began = begin is not None and all(one.line >= begin for one in counts)
        return begin if began and len(since) == len({group for group, _ in since}) else None

    def _counts(self, cause: LogFind | None) -> list[StepCount]:
        return [one for one in self.run.health.counts if one.log == (cause.log if cause is not None else 0)]

    def _every_line(self) -> Iterator[tuple[int, LogLine]]:
        return ((log, line) for log, lines in enumerate(self.lines) for line in lines)

    def _of_run(self) -> list[LogLine]:
        return [line for log, line in self._every_line() if self.run.lines.covers(log, line.number)]

    def _plain(self) -> str:
        """The lines that bear neither a time nor a process: what a person may have written."""
        return "\n".join(line.printed for _, line in self.page if not (line.stamp or line.process))

    def _own(self, log: int, lines: Iterable[LogLine]) -> list[LogLine]:
        """Those of the lines of a log that belong to the run that is judged."""
        return [line for line in lines if self.run.lines.covers(log, line.number)]

    def _lines_of(self, cause: LogFind | None) -> list[LogLine]:
        """The kept lines of the cause's log, or of the first one, as far as they belong to the run that is judged."""
        log = cause.log if cause is not None else min(self.run.lines.logs, default=0)
        return self._own(log, self.lines[log] if self.lines else [])

    def _lines_until(self, cause: LogFind | None, whole: bool = True) -> list[LogLine]:
        """The lines of the cause's run up to it; `whole`: all of a post below its title, which names what they show."""
        if cause is None:
            return self._of_run()
        titled = whole and cause.number <= TITLE_LINES and len(self.text) <= A_PAGE
        mine = [line for line in self._lines_of(cause) if titled or line.number <= cause.number]
        return [*mine, *self._own(cause.log, cause.find.before), cause.find.first]

    def _users(self, cause: LogFind | None) -> tuple[tuple[TopUser, ...], tuple[LogLine, ...], bool]:
        """The processes that hold host RAM, the lines that list them, and whether some of those are missing."""
        if cause is None or not (self.run.judgement.memory == "host" or cause.id in KILLS):
            return (), (), False
        around = [cause.find.first, *cause.find.after]
        for lines, whole in ((around, [*cause.find.before, *around]), *((lines, lines) for lines in self.lines)):
            users, rows = log_facts.top_users(lines)
            if users:
                return users, rows, log_facts.is_cut(whole, rows)
        listed = log_facts.listed_users(one.find.fields for one in self.run.placed)
        tables = (log_facts.ram_users(lines) for lines in self.lines)
        users, rows = next((found for found in tables if len(found[0]) > len(listed)), (listed, ()))
        return users, rows, False

    def _evidence(
        self, judgement: Judgement, users: Sequence[TopUser], rows: Sequence[LogLine], last: ProgressLine | None
    ) -> tuple[Evidence, ...]:
        cause, witness, first = judgement.cause, judgement.witness, list[Evidence]()
        if cause is not None:
            first.append(as_evidence(cause, self.names, "cause" if judgement.verdict != "unclear" else None, rows))
            first.extend(victims(first[0], users))
        if witness is not None:
            first[:] = [replace(first[0], role="cause"), as_evidence(witness, self.names), *first[1:]]
        known = {one.place for one in (cause, witness) if one is not None}
        others = [one for one in self.run.placed if one.place not in known]
        rest = deduplicated(others, cause, self.names, first)
        rest += [replace(one, role="warning") for one in deduplicated(self.run.outlived, None, self.names, [])]
        if last is not None and all(one.line != last[0].number for one in (*first, *rest)):
            (line, phase), file = last, self.names[cause.log if cause is not None else 0]
            text = redact(line.printed)[-_PROGRESS_CHARACTERS:]  # how far the run had come
            rest.append(Evidence("training-step", "progress", file, line.number, text, "none", phase, {}, line.process))
        for ago, run in enumerate(self.earlier, 1):
            if run.judgement.cause is not None:
                rest.append(replace(as_evidence(run.judgement.cause, self.names, "warning"), runs_ago=ago))
        rest.sort(key=lambda evidence: _ORDER.index(evidence.role))
        return tuple([*first, *rest][:_EVIDENCE])

    def _on_card(self, cause: LogFind, memory: Memory) -> dict[str, FieldValue]:
        """Who held the card by a pasted table of nvidia-smi, where torch's message names no process."""
        fields = cause.find.fields
        if memory != "gpu" or {"other_processes", "card_processes"} & fields.keys():
            return {}
        card = str(fields.get("gpu"))
        told = log_facts.card_users((line for _, line in self._every_line()), int(card) if card.isdigit() else None)
        return {"card_processes": told} if "," in told else {}  # one alone is this one

    def _engines(self, cause: LogFind) -> dict[str, FieldValue]:
        """What the run's own engine held, where torch lists its process beside the one that failed."""
        labels = [line.process for line in self._of_run()] + [one.find.first.process for one in self.run.placed]
        return log_facts.engine_processes(cause.find.text, labels)


def _is_shortage(one: LogFind) -> bool:
    return one.role == "cause" and one.verdict == "oom"


def _tell(on_progress: ProgressCallback, source: LogSource, read: int) -> None:
    on_progress(source.name, read, source.size)
