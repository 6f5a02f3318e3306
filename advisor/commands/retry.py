"""Starts a watched command again after a death of memory, with the changes that surely help and change no result."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from advisor.commands.retry_choice import No, NoRetry, Retry, RetryRules, RunDeath, choose
from advisor.commands.watched_run import (
    Finished,
    LiveEvents,
    died_at,
    longest_answer,
    opened,
    script_of,
    tell_death,
    tell_diagnosis,
)
from advisor.exits import Refusal
from advisor.hostile import clean_line, readable
from advisor.language import listed, say
from advisor.memory.cells import Place
from advisor.redact import redact, redact_words
from advisor.report.local_case import Proof, case_yaml, keep_case, local_case
from advisor.report.phrases import change_line
from advisor.run.resume import cost_of_a_death, resumption_of
from advisor.saving import new_files, save
from advisor.script.document import EditRefused
from advisor.session import SessionRequest, State, open_session
from advisor.units import show_bytes
from advisor.watch.end_of_run_log import write_lost_end
from advisor.watch.events import Notifier
from advisor.watch.launcher import WatchResult, watch
from advisor.watch.listing import ListedRecord, add_told, attempts_of, list_records, settings_of, written_at
from advisor.watch.measured import measured_in
from advisor.watch.process_tree import adopt_orphans, others_on_cards, wait_for_leftovers
from advisor.watch.record_files import CASE, COMMAND, SAMPLES, rank, write_private
from advisor.watch.recording import RecordError, Recording, read_record
from advisor.watch.request import Beginning, WatchRequest
from advisor.watch.spawn import release_signals

Tell = Callable[[str], None]
_LIMIT, _GRACE = 60.0, 10.0
"""Seconds that what a dead run left has to end by itself, and once it is told to."""
_MOST_COPIES = 1000
_NAMED = 4
"""Processes of others that are named, those that hold most."""
_INTERRUPTED = 130
"""The shell's code of a command that Ctrl-C ended."""


class Attempt(NamedTuple):
    """One start of the command."""

    number: int
    asked: WatchRequest
    changes: tuple[tuple[str, str | None], ...] = ()
    lines: tuple[str, ...] = ()
    """The changes as a report says them."""
    before: Path | None = None
    """The record of the attempt before."""
    from_step: int | None = None
    chosen: Retry | None = None
    """What was decided when the attempt before died."""


def run_with_retries(asked: WatchRequest, rules: RetryRules, notifier: Notifier, tell: Tell) -> Finished:
    """Run the command, and again after each death that a change mends; ends as its last attempt did."""
    begun, folder = Beginning.now(), Path.cwd()
    adopt_orphans()
    tell(_cost(asked, folder))
    attempt, died, seen = Attempt(1, asked), list[RunDeath](), list[Path]()
    lost = lost_attempt(asked)
    if lost is not None:
        attempt, died, begun = _after_lost(lost, rules, notifier, tell) or (attempt, died, begun)
    while True:
        notifier.attempt, live = attempt.number, LiveEvents(notifier, tell, lambda: longest_answer(asked))
        notifier.send("retry" if attempt.before else "start", changes=attempt.lines)
        asked_now = attempt.asked._replace(on_alert=live.alert, on_steps=live.look, attempt=_about(attempt))
        ended = watch(asked_now, tell)
        release_signals()
        try:
            follows = _after(attempt, ended, died, rules, begun, notifier, tell)
        except KeyboardInterrupt:
            follows = NoRetry(No.STOPPED)
        except Exception as fault:  # noqa: BLE001 - the command's own end counts
            follows = NoRetry(No.FAULT, f"{type(fault).__name__}: {fault}")
        if ended.folder is not None:
            seen.append(ended.folder)
        if isinstance(follows, Attempt):
            attempt = follows
            continue
        how = {"status": ended.status, "why": follows.why.name.lower() if follows is not None else ""}
        notifier.send("end", record=str(ended.folder), **how)
        notifier.finish()
        if follows is not None:
            tell(say(follows.why.value))
            if follows.detail:
                tell(clean_line(follows.detail))
        if notifier.failed:
            tell(say("--notify: {error}", error=clean_line(notifier.failed)))
        tell(say("records: {folders}", folders=listed(clean_line(str(one)) for one in seen)))
        return Finished(ended.status, code=ended.code if ended.not_started else None)


def _after(
    attempt: Attempt,
    ended: WatchResult,
    died: list[RunDeath],
    rules: RetryRules,
    begun: Beginning,
    notifier: Notifier,
    tell: Tell,
) -> Attempt | NoRetry | None:
    """The next attempt, or why there is none; None where the command ended well."""
    if ended.not_started:
        return NoRetry(No.NOT_STARTED, ended.not_started)
    if ended.folder is None:
        return NoRetry(No.NO_RECORD)
    if ended.status == 0:
        _keep_what_worked(attempt, ended, died, None, tell)
        return None
    try:
        recording = read_record(ended.folder)
    except (RecordError, OSError) as error:
        return NoRetry(No.NO_RECORD, str(error))
    end = recording.end or {}
    if ended.was_sent_away or "sent" in end or end.get("code") == _INTERRUPTED:
        _keep_what_worked(attempt, ended, died, None, tell)
        return NoRetry(No.STOPPED)
    return _died(attempt, ended, recording, died, rules, begun, notifier, tell)


def _died(
    attempt: Attempt,
    ended: WatchResult,
    recording: Recording,
    died: list[RunDeath],
    rules: RetryRules,
    begun: Beginning,
    notifier: Notifier,
    tell: Tell,
) -> Attempt | NoRetry:
    record = recording.folder
    finished = Finished(ended.status, record=record, script=script_of([*attempt.asked.argv], record))
    tell_death(notifier, finished)
    state = opened(finished, attempt.asked.knowledge)
    if state is None:
        return NoRetry(No.NOT_PROVEN)
    _keep_what_worked(attempt, ended, died, state, tell)
    died.append(RunDeath(state.diagnosis.phase, died_at(state, attempt.from_step or 0), attempt.changes))
    add_told(record, verdict=state.crash.verdict, memory=state.diagnosis.memory, phase=died[-1].phase)
    tell_diagnosis(notifier, state, died[-1].step)
    chosen = choose(state, died, rules, Path.cwd(), begun.earliest())
    if isinstance(chosen, NoRetry):
        return chosen
    tell(say("it died of memory: {title}", title=clean_line(state.diagnosis.title)))
    left, rays = wait_for_leftovers(_LIMIT, _GRACE, notifier.pids)
    if rays:
        tell(say("left alone, as Ray's own: {processes}", processes=listed(rays)))
    if left:
        return NoRetry(No.STILL_THERE, listed(left))
    if others := [f"{clean_line(name)} ({show_bytes(size)})" for name, size in others_on_cards(recording)]:
        tell(say("others hold memory of the cards, and are left alone: {processes}", processes=listed(others[:_NAMED])))
    return _next(attempt, chosen, record, notifier, tell)


def _after_lost(
    lost: LostAttempt, rules: RetryRules, notifier: Notifier, tell: Tell
) -> tuple[Attempt, list[RunDeath], Beginning] | None:
    """What follows an attempt whose watcher was killed with it; None: what was asked for is started as it is."""
    tell(say("{record}: the watcher was killed with the run", record=clean_line(str(lost.record))))
    try:
        write_lost_end(lost.record)
        died, begun = list(lost.deaths), Beginning(lost.began, time.monotonic())
        attempt = Attempt(lost.number, lost.asked, lost.changes, from_step=lost.from_step)
        killed = WatchResult(lost.record, int(signal.SIGKILL))
        follows = _died(attempt, killed, read_record(lost.record), died, rules, begun, notifier, tell)
    except Exception as fault:  # noqa: BLE001 - what was asked for is started all the same
        follows = NoRetry(No.FAULT, f"{type(fault).__name__}: {fault}")
    if isinstance(follows, Attempt):
        return follows, died, begun
    tell(say(follows.why.value))
    if follows.detail:
        tell(clean_line(follows.detail))
    return None


def _next(attempt: Attempt, chosen: Retry, record: Path, notifier: Notifier, tell: Tell) -> Attempt | NoRetry:
    """Write the script of the next attempt, and say what it changes."""
    document = chosen.patch.rewrites[0].document
    argv = list(attempt.asked.argv)
    kept = document.path == record / COMMAND
    files = [document.path] if kept else [document.path, chosen.state.asked.script]  # or what starts the changed file
    place = next((n for file in files for n, word in enumerate(argv) if file and _is_file(word, file)), None)
    if place is None and not kept:
        return NoRetry(No.ELSEWHERE, clean_line(str(document.path)))
    if kept and redact(shlex.join(argv)) != shlex.join(argv):
        return NoRetry(No.SECRETS)
    try:
        written = _save(chosen, document.path, attempt.number)
    except Refusal as refusal:
        return NoRetry(No.ELSEWHERE, str(refusal))
    except (OSError, EditRefused) as error:
        return NoRetry(No.NOT_WRITTEN, clean_line(str(error)))
    if place is None:
        argv = ["bash", str(written)]
    else:
        argv[place] = os.path.join(os.path.dirname(argv[place]), written.name)
    lines = tuple(change_line(change) for step in chosen.state.plan.selected() for change in step.changes)
    from_step = chosen.checkpoint.step if chosen.checkpoint is not None else None
    for line in lines:
        tell(line)
    if from_step is None:
        tell(say("attempt {number} starts from the beginning: {command}", number=attempt.number + 1, command=written))
    else:
        told = {"number": attempt.number + 1, "step": from_step, "command": clean_line(str(written))}
        tell(say("attempt {number} resumes from step {step}: {command}", **told))
        notifier.send("resumed", attempt=attempt.number + 1, step=from_step)
    folder = attempt.asked.folder
    if folder is not None:
        folder = folder.with_name(f"{folder.name.removesuffix(f'-{attempt.number}')}-{attempt.number + 1}")
    asked = attempt.asked._replace(argv=tuple(argv), folder=folder)
    return Attempt(attempt.number + 1, asked, chosen.changes, lines, record, from_step, chosen)


def _keep_what_worked(
    attempt: Attempt, ended: WatchResult, died: Sequence[RunDeath], now: State | None, tell: Tell
) -> None:
    """A retry that got past the step where its ancestor died is a confirmed case of this site.

    Not so where memory grows, or the same memory ran out again (`now`: the new death): that only bought steps. Best
    effort: what cannot be read or written costs the case.
    """
    chosen, record = attempt.chosen, ended.folder
    if chosen is None or record is None or (now is not None and now.diagnosis.memory == chosen.state.diagnosis.memory):
        return
    with suppress(RecordError, OSError):
        measured = measured_in(record)
        came_to, died_at = measured.last_step, died[-1].step
        if measured.grown or not (ended.status == 0 or (came_to is not None and came_to > died_at)):
            return
        proof = Proof("a retry that got past the step where the run had died", died_at, came_to, time.time())
        case = local_case(chosen.state, chosen.state.plan.selected(), proof)
        write_private(record / CASE, case_yaml(case).encode())
        file = keep_case(case)
        if file is not None:
            tell(say("it worked here: kept as a case of this site in {file}", file=clean_line(str(file))))


def _planned(state: State) -> dict[str, Any] | None:
    """What the plan expects at most in the memory that ran out."""
    place: Place = "host" if state.diagnosis.memory == "host" else "gpu"
    fullest = state.plan.after.peak(place) if state.plan.after is not None else None
    return {"place": place, "phase": fullest.phase, "bytes": fullest.expected} if fullest is not None else None


def _save(chosen: Retry, path: Path, number: int) -> Path:
    """Write script and report beside the original, under the first free name, and the launch script that the command
    names where that starts it. Returns what is to be started.

    Raises OSError, EditRefused; Refusal where no word of the launch script can be changed exactly.
    """
    for count in range(number, _MOST_COPIES):
        state, named = chosen.state, partial(_copy, count=count)
        made = new_files(state.asked.script, state.script, state.launch_index, chosen.patch.rewrites, named)
        if made.by_hand:
            raise Refusal(made.by_hand)
        with suppress(FileExistsError):
            save(state, made, False)
            return made.launch or made.first
    raise FileExistsError(str(path))


def _copy(path: Path, count: int) -> Path:
    origin, _, _ = path.stem.partition(".fits-")
    return path.with_name(f"{origin}.fits-{count}{path.suffix}")


def _is_file(word: str, path: Path) -> bool:
    with suppress(OSError, ValueError):
        return os.path.samefile(word, path)
    return False


def _cost(asked: WatchRequest, folder: Path) -> str:
    """What a death would cost, before the first start."""
    script = script_of([*asked.argv], folder)
    if script is None:
        return say("what a death would cost is not known: the command names no launch script")
    try:
        state = open_session(SessionRequest(script=script, knowledge=asked.knowledge))
    except Exception as error:  # noqa: BLE001 - the command starts all the same
        return clean_line(str(error), 200)
    if state.situation is None or state.launch is None:
        return say("what a death would cost is not known: the command names no launch script")
    program = Path(folder, state.launch.program)
    return cost_of_a_death(resumption_of(state.situation.predictor.built(), folder, program))


def _about(attempt: Attempt) -> bytes:
    """Which attempt it is, so that the chain can be read from the records, whoever is killed."""
    about: dict[str, Any] = {
        "attempt": attempt.number,
        "before": str(attempt.before) if attempt.before is not None else None,
        "changes": list(attempt.lines),
        "set": [list(change) for change in attempt.changes],
        "from_step": attempt.from_step,
        "planned": _planned(attempt.chosen.state) if attempt.chosen is not None else None,
    }
    return json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")


# --- an attempt of this very command whose watcher was killed with it -------------------------------------------------

_PATIENCE = 3.0
"""Seconds after which a record that does not change has no watcher."""


class LostAttempt(Struct, frozen=True):
    """The newest record under the name that was asked for: it has no end, and nobody writes it."""

    record: Path
    asked: WatchRequest
    """As that attempt was started."""
    number: int
    began: float
    """Epoch seconds, of the first attempt."""
    from_step: int | None
    changes: tuple[tuple[str, str | None], ...]
    deaths: tuple[RunDeath, ...]
    """Of the attempts before it."""


def lost_attempt(asked: WatchRequest) -> LostAttempt | None:
    """None where there is none, it ran another command, or its script was written after it: somebody changed that. Nor
    of one rank of many: under one name lie the records of all."""
    if asked.folder is None or rank():
        return None
    try:
        beside = list_records(asked.folder.absolute().parent)
    except OSError:
        return None
    name = asked.folder.name
    numbered = re.compile(re.escape(name) + r"(?:-\d+)*")
    ours = [each for each in beside if numbered.fullmatch(each.folder.name)]
    if not ours or ours[-1].end is not None or _is_written(ours[-1]):
        return None
    last = ours[-1]
    chain = [each.record for each in attempts_of(last.folder)] or [last]
    argv = _started(asked.argv, chain[0], last)
    script = script_of([*argv], last.folder) if argv else None
    if not argv or script is None:
        return None
    try:
        if script.stat().st_mtime > os.stat(last.folder / SAMPLES).st_mtime:
            return None
    except OSError:
        return None
    deaths = tuple(RunDeath(each.phase, each.step or 0, settings_of(each.folder)) for each in chain[:-1])
    place = asked.folder.with_name(last.folder.name)
    of_last = asked._replace(argv=argv, folder=place)
    return LostAttempt(
        last.folder, of_last, last.attempt, chain[0].began, last.from_step, settings_of(last.folder), deaths
    )


def _started(argv: tuple[str, ...], first: ListedRecord, last: ListedRecord) -> tuple[str, ...]:
    """The words of the last attempt, with what records leave out of them; () where the first was another command."""
    told = tuple(clean_line(readable(word), 200) for word in redact_words(argv)[:64])
    if told != first.command:
        return ()
    if len(last.command) != len(told):
        return last.command
    words = zip(argv, told, last.command, strict=False)
    return (*(word if shown == now else now for word, shown, now in words), *argv[64:])


def _is_written(record: ListedRecord) -> bool:
    """Whether its watcher lives, perhaps in another container: it writes twice a second."""
    before, until = written_at(record.folder), time.monotonic() + _PATIENCE
    while record.runs and time.monotonic() < until:
        if written_at(record.folder) != before:
            return True
        time.sleep(0.1)
    return False
