"""Runs a command and records it, and diagnoses it where it died of memory."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from advisor.arguments import add_knowledge
from advisor.exits import Refusal
from advisor.hostile import clean_line
from advisor.language import say
from advisor.words import os_words

if TYPE_CHECKING:
    from advisor.session import State
    from advisor.watch.launcher import WatchResult
    from advisor.watch.request import WatchRequest

PROGRAM = "rl-oom-advisor watch"
_RETRIES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command or the process, the record's folder, what to warn of, and whether to start it again."""
    parser.usage = f"{PROGRAM} [-o DIR] [--alert 95%%] [--retry [N]] (-- COMMAND ... | --attach PID)"
    parser.add_argument(
        "-o", "--output", metavar="DIR", help=say("directory of the record (default: watch-TIME, here)")
    )
    parser.add_argument("--attach", type=int, metavar="PID", help=say("watch a process that is running already"))
    parser.add_argument(
        "--alert", type=_percent, metavar="95%", help=say("warn on stderr when a GPU or the host is that full")
    )
    again = parser.add_argument_group(
        say("starting it again where it dies of memory"),
        say("from its last checkpoint, with a script beside yours\nthat has the changes which keep training results"),
    )
    again.add_argument(
        "--retry", nargs="?", type=_attempts, const=_RETRIES, metavar="N", help=say("so often at most (default: 3)")
    )
    again.add_argument(
        "--accept",
        metavar="recommended|same-results|ID,ID",
        help=say("which changes it may make, as in `fix` (default: same-results)"),
    )
    again.add_argument(
        "--from-scratch", action="store_true", help=say("start again also where nothing would resume from a checkpoint")
    )
    parser.add_argument(
        "--notify",
        metavar="COMMAND",
        default="",
        help=say("run this for every event (start, death, diagnosis, retry, end), with it as JSON on standard input"),
    )
    add_knowledge(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help=say("command to run, behind --"))


def _attempts(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(say("{text} is not a number of attempts from 1 on", text=repr(text)))
    return int(text)


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") or float(text) > 1 else 1)
    except ValueError:
        raise argparse.ArgumentTypeError(say("{text} is not a share like 95%", text=repr(text))) from None
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(say("{text} is not a share like 95%", text=text))
    return value


class Finished(NamedTuple):
    """How to leave: like the command, after the app was shown where that is wanted."""

    status: int | None
    """As waitpid gives it."""
    code: int | None = None
    """Where there is no command to leave like."""
    record: Path | None = None
    show: bool = False
    """It died of memory, and there is a terminal."""
    script: Path | None = None


def run(parsed: argparse.Namespace) -> Finished:
    """Run the command, or join one that runs. Raises Refusal."""
    from advisor.watch.request import WatchRequest

    argv = list(parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command)
    folder = Path(parsed.output) if parsed.output else None
    if bool(argv) == (parsed.attach is not None):
        raise Refusal(say("give a COMMAND behind --, or --attach PID"))
    knowledge = tuple(Path(own) for own in parsed.knowledge)
    if parsed.retry is None and (parsed.accept or parsed.from_scratch):
        raise Refusal(say("--accept and --from-scratch go with --retry"))
    if parsed.attach is not None:
        if parsed.retry is not None or parsed.notify:
            raise Refusal(say("--retry and --notify go with a COMMAND, not with --attach"))
        return _attached(parsed.attach, folder, parsed.alert, knowledge)
    asked = WatchRequest(tuple(argv), folder, parsed.alert, knowledge)
    if parsed.retry is not None or parsed.notify:
        ended, script = _retried(asked, parsed)
    else:
        from advisor.watch.launcher import watch

        ended, script = watch(asked, _say), None
    if ended.folder is None or ended.not_started:
        _say(clean_line(ended.not_started))
        return Finished(None, code=ended.code)
    folder = ended.folder
    script = script or script_of(argv, folder)
    if ended.status == 0 or ended.was_sent_away:
        _say(say("record: {folder}", folder=clean_line(str(folder))))
        return Finished(ended.status)
    return _diagnosed(Finished(ended.status, record=folder, script=script), knowledge)


def _retried(asked: WatchRequest, parsed: argparse.Namespace) -> tuple[WatchResult, Path | None]:
    """How the last attempt went, and its script. Without --retry there is one only, and its events are told."""
    from advisor.retry.attempt import RetryRequest
    from advisor.retry.loop import run_with_retries
    from advisor.watch.notify import EventCommand

    try:
        events = EventCommand(parsed.notify, _say)
    except ValueError as error:
        raise Refusal(say("--notify: {why}", why=clean_line(str(error)))) from error
    how = RetryRequest(parsed.retry or 0, parsed.accept or "same-results", parsed.from_scratch)
    ended = run_with_retries(asked, how, events, _say)
    return ended.result, ended.script


def _attached(pid: int, wanted: Path | None, alert: float | None, knowledge: tuple[Path, ...]) -> Finished:
    from advisor.watch.recorder import attach

    try:
        folder = attach(pid, wanted, alert, knowledge, _say)
    except ProcessLookupError as error:
        raise Refusal(say("--attach {pid}: there is no such process", pid=pid)) from error
    except OSError as error:
        told = {"folder": clean_line(str(wanted or Path.cwd())), "error": os_words(error)}
        raise Refusal(say("{folder}: no record can be written ({error})", **told)) from error
    return _diagnosed(Finished(None, code=0, record=folder), knowledge)


def _diagnosed(finished: Finished, knowledge: tuple[Path, ...]) -> Finished:
    """Whether it died of memory; where no app can be opened, the report goes to standard error."""
    from advisor.commands.streams import tell
    from advisor.report.short_report import short_report

    record = finished.record
    state = _opened(finished, knowledge)
    if state is None or state.crash.verdict != "oom":
        _say(say("record: {folder} (rl-oom-advisor --record opens it)", folder=clean_line(str(record))))
        return finished
    if _has_terminal():
        return finished._replace(show=True, script=state.asked.script)
    with suppress(OSError):
        tell(short_report(state))
    _say(say("record: {folder}", folder=clean_line(str(record))))
    return finished


def _opened(finished: Finished, knowledge: tuple[Path, ...]) -> State | None:
    from msgspec.structs import replace

    from advisor.commands.streams import usable
    from advisor.session import SessionRequest, open_session
    from advisor.watch.recording import logs_in

    assert finished.record is not None
    logs = logs_in(finished.record)
    asked = SessionRequest(script=finished.script, logs=logs, record=finished.record, knowledge=knowledge)
    if finished.script is not None:
        with suppress(Refusal):  # a command that is no launch script: its log must do
            state = usable(lambda: open_session(asked))
            if state.launch is not None:
                return state
    try:
        return usable(lambda: open_session(replace(asked, script=None)))
    except Refusal as refusal:
        _say(str(refusal))
        return None


def script_of(argv: list[str], folder: Path) -> Path | None:
    """The launch script among the words of a command; else the command itself, as the record keeps it."""
    from advisor.watch.launch_word import script_place

    place = script_place(argv)
    if place is not None:
        return Path(argv[place])
    from advisor.watch.record_files import COMMAND

    return folder / COMMAND if (folder / COMMAND).is_file() else None


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _say(sentence: str) -> None:
    """A terminal that was closed meanwhile costs the words, not the command's own end."""
    encoding = sys.stderr.encoding or "ascii"
    with suppress(OSError):
        print(f"{PROGRAM}: {sentence}".encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)
