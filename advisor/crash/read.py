"""Reads logs into a Crash: the first cause apart from its echoes, its phase, and what the logs say on the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from msgspec.structs import replace

from advisor.crash import log_facts
from advisor.crash.command_lines import commands_in
from advisor.crash.config_dump import (
    described_in,
    lines_in_person,
    listed_settings,
    model_config_in,
    settings_in,
    settings_in_blocks,
)
from advisor.crash.evidence import KILL_TOLD, TOLD, Crash, Evidence, Frame, TopUser, parts_in, stopped_without_a_word
from advisor.crash.finds import FAILURES, LogFind, as_evidence, deduplicated, victims
from advisor.crash.holders import with_holders, with_worded
from advisor.crash.kept import SAID_IN, KeptLines, LinesOfRun
from advisor.crash.lines import LogLine
from advisor.crash.log_reader import unwrapped
from advisor.crash.logged_runs import StepCount, newest_crash, runs_in, training_bar
from advisor.crash.observations import libraries_now, memory_moved, observations_in, of_the_run
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
from advisor.crash.sources import PREVIEWS, LogSource, open_sources, tail_source, text_source
from advisor.crash.statements import A_PAGE, holder_said, memory_near, phase_said, runs_told, statements_in
from advisor.crash.tracebacks import BEGIN, NO_TRACE, Trace, trace_of, traced_versions, waiter_of
from advisor.crash.verdict import (
    KILLS,
    SAID,
    Judgement,
    chosen,
    in_phase,
    memory_by_frames,
    met_by_run,
    why_unclear,
)
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
_RAISED_WITHIN = 200
"""Times that a message may be printed before it is raised (judgement)."""
_SAME_STEP = 1
"""Step counts after a save that may still be of the step that saved."""
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
    length: int = 0,
) -> Crash | None:
    """What the last `length` bytes of each log prove (0: as `PREVIEWS` has it); not `preliminary` where none of them is
    longer. None where one is a pipe or standard input, which can be read once only, or packed and long, which has no
    end to begin with. Raises LogError as `read_logs`."""
    sources = open_sources(paths)
    longest = max((source.size or 0 for source in sources), default=0)
    for last in (length,) if length else PREVIEWS if longest > PREVIEWS[-1] else PREVIEWS[-1:]:
        tails = [tail_source(source, last) for source in sources]
        for source, tail in zip(sources, tails, strict=True):
            if source.size is None or (tail is None and source.size > last):
                return None
        short = [tail or source for tail, source in zip(tails, sources, strict=True)]
        crash = replace(_read(short, signatures, frames, progress), preliminary=last if any(tails) else 0)
        if crash.verdict == "oom":
            break
    return crash


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
        self.kept = KeptLines(self.logs)
        self.names, self.text = self.kept.names, self.kept.text
        self.frameworks = log_facts.frameworks_in(self.text, signatures.framework_marks)
        below = {mark.framework for mark in signatures.framework_marks if mark.below}
        self.every_rule, self.rules = rules, rules.of([name for name in self.frameworks if name not in below])
        self.signatures = signatures
        marks = unanchored_finds(ready, self.kept.lines)
        self.placed = self._ordered(marks)
        if not any(one.role in FAILURES for one in self.placed):
            self.placed = self._ordered([*marks, *cut_finds(ready, self.kept.lines)])
        runs = runs_in(self.kept.lines, [source.changed for source in sources], self.kept.said_in)
        self.run, self.earlier = newest_crash(self.placed, marks, runs)
        self.lines = LinesOfRun(self.kept, self.run.lines)
        self.written = self._of_the_run_first(self.kept.page)
        # what a program printed under a time or a process is nobody's account; the numbers of lines stay
        self.told = "\n".join("" if line.stamp or line.process else line.printed for line in self.written)
        self.observed = observations_in(self.told, signatures.statements)

    def _of_the_run_first(self, lines: Iterable[tuple[int, LogLine]]) -> list[LogLine]:
        return [line for _, line in sorted(lines, key=lambda at: not self.run.lines.covers(at[0], at[1].number))]

    def _ordered(self, marks: Sequence[LogFind]) -> list[LogFind]:
        finds = [LogFind(i, with_holders(with_worded(find))) for i, log in enumerate(self.logs) for find in log.finds]
        covered = {(one.log, line) for one in finds if one.role == "cause"
                   for line in range(one.number, one.find.last_number + 1)}  # fmt: skip
        finds = chosen(finds, [one for one in marks if one.role in _JUDGED and not (
            one.is_shortage and one.place[:2] in covered)])  # fmt: skip
        # several logs tell their order only by time, one by position
        stamped = len(self.logs) > 1 and all(one.find.first.stamp for one in finds if one.role == "cause")
        return sorted(finds, key=lambda one: (one.find.first.stamp or "~" if stamped else "", one.place))

    def crash(self) -> Crash:
        judgement, cause = self.run.judgement, self.run.judgement.cause
        if not any(log.bytes_read for log in self.logs):
            because = say("the log is empty ({names})", names=listed(self.names))
            return Crash("unclear", "unknown", "unknown", unclear_because=because, settle_by=(say(_EMPTY),))
        seen = met_by_run(cause, self.run.placed)
        trace = self._trace(seen)
        users, rows, cut = self._users(cause)
        last = last_progress(self.lines.until(seen), self.rules)
        driver = NO_TRACE if trace.frames or seen is None else waiter_of(seen, self.lines.near(seen))
        phase, because = phase_of(seen, trace, last, users, self.rules, driver)
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
                memory = memory_near(cause.find.text, self.told, words.account)
                memory = moved if (moved := memory_moved(self.observed)) != "unknown" else memory
            fields = {**log_facts.fields_beside(judgement, trace, self.run.placed), **evidence[0].fields}
            fields |= {**self._engines(cause), **self._on_card(cause, memory)}
            evidence = (replace(evidence[0], memory=memory, phase=phase, fields=fields), *evidence[1:])
        every = [line for _, line in self.kept.every()]
        unclear_because, settle_by = why_unclear(judgement, trace, every, last, self.rules)
        bare = trace.texts[0] if trace.texts else ""
        failed = Crash(
            verdict=judgement.verdict,
            memory=memory,
            phase=phase,
            signature=cause.id if cause else "",
            evidence=evidence,
            frames=trace.frames,
            source_line=redact(bare.strip()[:_SOURCE]) if not trace.frames and _CODE.search(bare) else "",
            phase_because=because,
            phase_among=among,
            phase_by_mark=by_mark,
            top_users=users,
            users_cut=cut,
            unclear_because=unclear_because,
            settle_by=settle_by,
            dated=log_facts.dated_in(self.text, time.strftime("%Y-%m-%d"))
            or (cause.find.signature.until if cause else ""),
            doubts=(*self._unread(), *self._unordered(cause)),
        )
        return self._on_the_way(self._of_the_launch(self._of_the_machine(failed)), cause, trace, last)

    def _of_the_machine(self, crash: Crash) -> Crash:
        """What ran, and on what."""
        placed, page = self.run.placed, [line.text for _, line in self.kept.page]
        return replace(
            crash,
            gpu_names=log_facts.gpu_names_in(self.text),
            gpu_total_bytes=log_facts.gpu_total(placed),
            host_total_bytes=log_facts.host_total(self.placed) or ram_of_page(page),
            host_filled=log_facts.host_filled(placed),
            platform=log_facts.platform_in(self.text, self.signatures.platforms),
            traced=traced_versions(crash.frames),
            frameworks=self.frameworks,
            project=log_facts.project_in(self.text, self.signatures.projects),
        )

    def _of_the_launch(self, crash: Crash) -> Crash:
        """How it was set, by what programs print of that, and what a person says of the run."""
        # of a setting printed twice that of the run that is judged counts
        printed, written = self._of_the_run_first(self.kept.every()), self.written
        own = sum(self.run.lines.covers(log, line.number) for log, line in self.kept.every())
        settings = {**settings_in(printed[own:]), **settings_in(printed[:own])}
        blocks = settings_in_blocks(written)
        named = {key for key, _ in listed_settings(printed)}
        # a list of the same names is a person's, in parts of names
        theirs = not settings or (settings.keys() <= blocks.keys() and settings.keys() <= named)
        settings = {} if theirs else {**blocks, **settings}
        person, marks = list(dict.fromkeys((*self.kept.said, *lines_in_person(written)))), self.signatures
        in_person, words = "\n".join(person), marks.statements
        met = log_facts.listed_versions((line for _, line in self.kept.every()), words.libraries if words else {})
        return replace(
            crash,
            settings=settings,
            command=next(commands_in(printed), None),
            model_config=model_config_in(printed),
            engine_figures=log_facts.engine_figures_in(self.text, marks.engine_figures),
            counts={**log_facts.ranks_by_batch(self.text, settings), **log_facts.counts_in(self.text, marks.counts)},
            statements=statements_in(self.told, words) | holder_said(self.told, in_person, words),
            observations=self.observed,
            libraries=libraries_now({**met, **log_facts.libraries_in(self.text, marks.versions)}, self.observed),
            runs_told=runs_told(self.told, words) if written else {},
            described={**blocks, **of_the_run(described_in(person), self.observed)},
            prose=words_in(in_person.encode()),
            speaks_of=parts_in(self.text),
        )

    def _on_the_way(self, crash: Crash, cause: LogFind | None, trace: Trace, last: ProgressLine | None) -> Crash:
        """How far it had come, and what was read of the log."""
        health, until = self.run.health, self.lines.until(cause)
        return replace(
            crash,
            steps_done=self._steps_done(trace),
            steps_seen=any(one.count > 0 for one in health.counts),
            stepped=health.stepped,
            finished=health.end is not None,
            preceded=self._preceded(cause, crash.phase),
            resumed=self._resumed(cause),
            trained_before=trained_before(until, last),
            readings=log_facts.readings_in(self.placed, self.names, self.every_rule.frames),
            table_command=match[0] if (match := _TABLE_COMMAND.search(self.text)) else "",
            lines_read=sum(log.lines_read for log in self.logs),
            line_index={log.name: tuple(log.line_index) for log in self.logs if log.line_index},
        )

    def _told_phase(self, cause: LogFind | None, trace: Trace) -> PhaseProof:
        """The phase by the lines around it, where it has no traceback or that is cut; else by what a person writes."""
        until, page = self.lines.until(cause, whole=False), len(self.text) <= A_PAGE
        near = until[-_LINES_OF_A_CUT:] if cause is None else until[-_LINES_ABOVE:-1] if cause.id not in TOLD else []
        if (cause is None) == bool(trace.frames):
            phase, quoted = phase_of_texts([line.text for line in near], self.rules.frames, "text")
            if quoted:
                return phase, say("the log's text {quoted}", quoted=quoted)
        texts = [(cause.find.text, False)] if cause is not None and cause.id in SAID else []
        texts += [(self.told, cause is not None and cause.id in (*TOLD, KILL_TOLD))] if page else []
        words, function = self.signatures.statements, partial(phase_of_function, rules=self.rules.frames)
        told = (phase_said(text, words, function, note=note) for text, note in texts)
        return next((one for one in told if one[0] != "unknown"), ("unknown", ""))

    def _narrowed(
        self, among: tuple[Phase, ...], because: str, cause: LogFind | None
    ) -> tuple[Phase, tuple[Phase, ...], str]:
        """The phases that are left where the training stands at its end: one alone is the phase."""
        ended, told = at_the_end(self.lines.until(cause))
        left = tuple(phase for phase in ended if phase in among) if among else ended
        if not left:
            return "unknown", among, because
        because = clauses(filter(None, (because, told)))
        return (left[0], (), because) if len(left) == 1 else ("unknown", left, because)

    def _trace(self, cause: LogFind | None) -> Trace:
        """The traceback of the cause; if its message was printed before it was raised, the one it was raised with."""
        trace = trace_of(cause, self.lines.near(cause))
        if cause is not None and cause.id == ENDED_BY_LAUNCHER and not trace.frames:
            return trace_of(None, self.lines.until(cause))  # cut where the launcher ended it
        if cause is None or trace.frames:
            return trace
        again = (one for one in self.run.placed if one.id == cause.id and one.place > cause.place)
        raised = (trace_of(one, self.lines.near(one)) for one in islice(again, _RAISED_WITHIN))
        if (shown := next((one for one in raised if one.frames), None)) is not None:
            return replace(trace, frames=shown.frames, texts=(*trace.texts, *shown.texts))
        return replace(trace, frames=self._cut_below(cause))

    def _cut_below(self, cause: LogFind) -> tuple[Frame, ...]:
        """The frames of the only traceback of a page, below its message: somebody pasted that first, and a traceback
        without its last line, perhaps without its first."""
        below = [line for line in self.lines.near(cause) if line.number > cause.find.last_number]
        heads = sum(BEGIN in line.text for line in below)
        ended = any(_RAISED.match(line.text) for line in below)
        return () if heads > 1 or ended or len(self.text) > A_PAGE else trace_of(None, below).frames

    def _steps_done(self, trace: Trace) -> int | None:
        """The trainer's own count, else that of the bar without a title which is shown to be the training's: by the
        lines around it, or as the only one there is inside the loop of transformers' Trainer."""
        counted = self.run.health.steps_done
        if counted is not None:
            return counted
        shown = training_bar(self.lines.all())
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
            if cause is not None and one.is_shortage and cause.is_shortage and one.log != cause.log
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
        found = preceding(self.lines.until(cause), self.rules)
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
        begin, counts = resumed_at(self.lines.until(cause), self.rules), self._counts(cause)
        since = {(one.group, one.count) for one in counts}
        began = begin is not None and all(one.line >= begin for one in counts)
        return begin if began and len(since) == len({group for group, _ in since}) else None

    def _counts(self, cause: LogFind | None) -> list[StepCount]:
        return [one for one in self.run.health.counts if one.log == (cause.log if cause is not None else 0)]

    def _users(self, cause: LogFind | None) -> tuple[tuple[TopUser, ...], tuple[LogLine, ...], bool]:
        """The processes that hold host RAM, the lines that list them, and whether some of those are missing."""
        if cause is None or not (self.run.judgement.memory == "host" or cause.id in KILLS):
            return (), (), False
        around = [cause.find.first, *cause.find.after]
        for lines, whole in ((around, [*cause.find.before, *around]), *((lines, lines) for lines in self.kept.lines)):
            users, rows = log_facts.top_users(lines)
            if users:
                return users, rows, log_facts.is_cut(whole, rows)
        listed = log_facts.listed_users(one.find.fields for one in self.run.placed)
        tables = (log_facts.ram_users(lines) for lines in self.kept.lines)
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
        if cause is None and (end := self.run.health.end) is not None:
            rest.append(as_evidence(end, self.names, "progress"))
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
        told = log_facts.card_users((line for _, line in self.kept.every()), int(card) if card.isdigit() else None)
        return {"card_processes": told} if "," in told else {}  # one alone is this one

    def _engines(self, cause: LogFind) -> dict[str, FieldValue]:
        """What the run's own engine held, where torch lists its process beside the one that failed."""
        labels = [line.process for line in self.lines.all()] + [one.find.first.process for one in self.run.placed]
        return log_facts.engine_processes(cause.find.text, labels)


def _tell(on_progress: ProgressCallback, source: LogSource, read: int) -> None:
    on_progress(source.name, read, source.size)
