"""Runs a command and records it, and diagnoses it where it died of memory."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.arguments import add_knowledge
from advisor.commands.watched_run import (
    PROGRAM,
    Finished,
    died_at,
    longest_answer,
    narrate,
    opened,
    script_of,
    tell_death,
    tell_diagnosis,
)
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.words import os_words

if TYPE_CHECKING:
    from advisor.watch.events import Notifier
    from advisor.watch.launcher import WatchResult
    from advisor.watch.request import WatchRequest

_MOST_RETRIES = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options = "[-o DIR] [--alert 95%%] [--notify COMMAND] [--retry [N]]"
    parser.usage = f"{PROGRAM} {options}\n{' ' * 28}(-- COMMAND ... | --attach PID)"
    parser.add_argument(
        "-o", "--output", metavar="DIR", help=say("directory of the record (default: watch-TIME, here)")
    )
    parser.add_argument("--attach", type=int, metavar="PID", help=say("watch a process that is running already"))
    parser.add_argument(
        "--alert", type=_percent, metavar="95%", help=say("warn on stderr when a GPU or the host is that full")
    )
    parser.add_argument(
        "--retry",
        nargs="?",
        type=_count,
        const=3,
        metavar="N",
        help=say("after a death of memory start again with what helps, up to N times (default: 3)"),
    )
    parser.add_argument(
        "--accept",
        default="same-results",
        metavar="same-results|recommended|ID,ID",
        help=say("which changes --retry may make (default: those that leave training results alone)"),
    )
    parser.add_argument(
        "--from-scratch", action="store_true", help=say("let --retry start from the beginning, without a checkpoint")
    )
    parser.add_argument(
        "--notify", metavar="COMMAND", help=say("command that gets each event as JSON on standard input")
    )
    add_knowledge(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=say("command to run, behind --"))


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") or float(text) > 1 else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(say("{text} is not a share like 95%", text=repr(text))) from None
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(say("{text} is not a share like 95%", text=text))
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST_RETRIES:
        raise argparse.ArgumentTypeError(say("{text} is no number from 1 to {most}", text=text, most=_MOST_RETRIES))
    return int(text)


def run(parsed: argparse.Namespace) -> Finished:
    """Run the command, or join one that runs. Raises Refusal."""
    from advisor.watch.request import WatchRequest

    argv = list(parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command)
    folder = Path(parsed.output) if parsed.output else None
    if bool(argv) == (parsed.attach is not None):
        raise Refusal(say("give a COMMAND behind --, or --attach PID"))
    knowledge = tuple(Path(own) for own in parsed.knowledge)
    if parsed.attach is not None:
        if parsed.retry is not None:
            raise Refusal(say("--retry needs a COMMAND behind --: what runs already cannot be started again"))
        if parsed.notify is not None:
            raise Refusal(say("--notify needs a COMMAND behind --"))
        return _attached(parsed.attach, folder, parsed.alert, knowledge)
    asked = WatchRequest(tuple(argv), folder, parsed.alert, knowledge)
    if parsed.retry is not None:
        from advisor.commands.retry import run_with_retries
        from advisor.commands.retry_choice import RetryRules

        rules = RetryRules(parsed.retry, parsed.accept, parsed.from_scratch)
        return run_with_retries(asked, rules, _notifier(parsed.notify), narrate)
    from advisor.watch.launcher import watch

    if parsed.notify is not None:
        return _notified(asked, parsed.notify)
    if parsed.alert is not None:
        from advisor.commands.watched_run import LiveEvents
        from advisor.watch.events import Notifier

        live = LiveEvents(Notifier(None), narrate, lambda: longest_answer(asked))
        asked = asked._replace(on_steps=live.look)
    return _finished(asked, watch(asked, narrate))


def _finished(asked: WatchRequest, ended: WatchResult, notifier: Notifier | None = None) -> Finished:
    """What is said of a run that ended; `notifier` is told of its death first."""
    argv, knowledge = [*asked.argv], asked.knowledge
    if ended.folder is None or ended.not_started:
        narrate(clean_line(ended.not_started))
        return Finished(None, code=ended.code)
    folder = ended.folder
    if ended.status == 0 or ended.was_sent_away:
        narrate(say("record: {folder}", folder=clean_line(str(folder))))
        return Finished(ended.status)
    try:
        return _diagnosed(Finished(ended.status, record=folder, script=script_of(argv, folder)), knowledge, notifier)
    except Exception as fault:  # noqa: BLE001 - the command's own end counts
        error = clean_line(f"{type(fault).__name__}: {fault}", 200)
        narrate(say("what it died of cannot be told ({error})", error=error))
        return Finished(ended.status)


def _notified(asked: WatchRequest, command: str) -> Finished:
    from advisor.commands.watched_run import LiveEvents
    from advisor.watch.launcher import watch

    notifier = _notifier(command)
    live = LiveEvents(notifier, narrate, lambda: longest_answer(asked))
    notifier.send("start", changes=())
    ended = watch(asked._replace(on_alert=live.alert, on_steps=live.look), narrate)
    finished = _finished(asked, ended, notifier)
    notifier.send("end", record=str(ended.folder), status=ended.status, why="")
    notifier.finish()
    if notifier.failed:
        narrate(say("--notify: {error}", error=clean_line(notifier.failed)))
    return finished


def _notifier(command: str | None) -> Notifier:
    """Raises Refusal where the command cannot be split into words."""
    from advisor.watch.events import Notifier

    try:
        return Notifier(command)
    except ValueError as error:
        raise Refusal(say("--notify {command}: {error}", command=clean_line(command or ""), error=error)) from error


def _attached(pid: int, wanted: Path | None, alert: float | None, knowledge: tuple[Path, ...]) -> Finished:
    from advisor.watch.recorder import attach

    try:
        folder = attach(pid, wanted, alert, knowledge, narrate)
    except ProcessLookupError as error:
        raise Refusal(say("--attach {pid}: there is no such process", pid=pid)) from error
    except OSError as error:
        told = {"folder": clean_line(str(wanted or Path.cwd())), "error": os_words(error)}
        raise Refusal(say("{folder}: no record can be written ({error})", **told)) from error
    return _diagnosed(Finished(None, code=0, record=folder), knowledge)


def _diagnosed(finished: Finished, knowledge: tuple[Path, ...], notifier: Notifier | None = None) -> Finished:
    """Whether it died of memory; where no app can be opened, the report goes to standard error."""
    from advisor.commands.streams import tell
    from advisor.report.short_report import short_report
    from advisor.watch.listing import add_told, end_words
    from advisor.watch.recording import RecordError, read_record

    record = finished.record
    state = opened(finished, knowledge)
    if state is not None and record is not None:
        add_told(record, verdict=state.crash.verdict, memory=state.diagnosis.memory, phase=state.diagnosis.phase)
    if notifier is not None:
        tell_death(notifier, finished)
        if state is not None:
            tell_diagnosis(notifier, state, died_at(state))
    if finished.status and record is not None:
        with suppress(RecordError, OSError):
            ended = end_words(read_record(record).end)
            narrate(say("the command: {ended}; this program ends the same way", ended=ended))
    if state is None or state.crash.verdict != "oom":
        narrate(say("record: {folder} (rl-oom-advisor --record opens it)", folder=clean_line(str(record))))
        return finished
    if _has_terminal():
        return finished._replace(show=True, script=state.asked.script)
    with suppress(OSError):
        tell(short_report(state))
    narrate(say("record: {folder}", folder=clean_line(str(record))))
    return finished


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
