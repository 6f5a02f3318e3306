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
    from advisor.state import State
    from advisor.watch.events import Notifier
    from advisor.watch.launcher import WatchResult
    from advisor.watch.request import WatchRequest

PROGRAM = "rl-oom-advisor watch"
_MOST_RETRIES = 100
_SHELLS = ("bash", "sh", "zsh", "dash")
_SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command or the process, the record's folder, and what to warn of."""
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
    if parsed.attach is not None:
        if parsed.retry is not None:
            raise Refusal(say("--retry needs a COMMAND behind --: what runs already cannot be started again"))
        if parsed.notify is not None:
            raise Refusal(say("--notify needs a COMMAND behind --"))
        return _attached(parsed.attach, folder, parsed.alert, knowledge)
    asked = WatchRequest(tuple(argv), folder, parsed.alert, knowledge)
    if parsed.retry is not None:
        return _retried(asked, parsed)
    from advisor.watch.launcher import watch

    if parsed.notify is not None:
        return _notified(asked, parsed.notify)
    if parsed.alert is not None:
        from advisor.commands.live_events import LiveEvents
        from advisor.watch.events import Notifier

        live = LiveEvents(Notifier(None), _say, lambda: longest_answer(asked))
        asked = asked._replace(on_steps=live.look)
    return _finished(asked, watch(asked, _say))


def _finished(asked: WatchRequest, ended: WatchResult, notifier: Notifier | None = None) -> Finished:
    """What is said of a run that ended; `notifier` is told of its death first."""
    argv, knowledge = [*asked.argv], asked.knowledge
    if ended.folder is None or ended.not_started:
        _say(clean_line(ended.not_started))
        return Finished(None, code=ended.code)
    folder = ended.folder
    if ended.status == 0 or ended.was_sent_away:
        _say(say("record: {folder}", folder=clean_line(str(folder))))
        return Finished(ended.status)
    try:
        return _diagnosed(Finished(ended.status, record=folder, script=script_of(argv, folder)), knowledge, notifier)
    except Exception as fault:  # noqa: BLE001 - the command's own end counts
        error = clean_line(f"{type(fault).__name__}: {fault}", 200)
        _say(say("what it died of cannot be told ({error})", error=error))
        return Finished(ended.status)


def _notified(asked: WatchRequest, command: str) -> Finished:
    """Run the command once, and hand its events to another."""
    from advisor.commands.live_events import LiveEvents
    from advisor.watch.launcher import watch

    notifier = _notifier(command)
    live = LiveEvents(notifier, _say, lambda: longest_answer(asked))
    notifier.send("start", changes=())
    ended = watch(asked._replace(on_alert=live.alert, on_steps=live.look), _say)
    finished = _finished(asked, ended, notifier)
    notifier.send("end", record=str(ended.folder), status=ended.status, why="")
    notifier.finish()
    if notifier.failed:
        _say(say("--notify: {error}", error=clean_line(notifier.failed)))
    return finished


def _notifier(command: str | None) -> Notifier:
    """Raises Refusal where the command cannot be split into words."""
    from advisor.watch.events import Notifier

    try:
        return Notifier(command)
    except ValueError as error:
        raise Refusal(say("--notify {command}: {error}", command=clean_line(command or ""), error=error)) from error


def longest_answer(asked: WatchRequest) -> int | None:
    """The most tokens that an answer may have, by the launch script; None where it does not say so, or is not there."""
    script = script_of([*asked.argv], Path.cwd())
    if script is None:
        return None
    from advisor.session import SessionRequest, open_session

    try:
        state = open_session(SessionRequest(script=script, knowledge=asked.knowledge))
    except Exception:  # noqa: BLE001 - the run is watched all the same
        return None
    tokens = None if state.situation is None else state.situation.predictor.built().run.number("data.response_tokens")
    return None if tokens is None else int(tokens)


def _retried(asked: WatchRequest, parsed: argparse.Namespace) -> Finished:
    from advisor.commands.retry import run_with_retries
    from advisor.commands.retry_choice import RetryRules

    rules = RetryRules(parsed.retry, parsed.accept, parsed.from_scratch)
    return run_with_retries(asked, rules, _notifier(parsed.notify), _say)


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


def _diagnosed(finished: Finished, knowledge: tuple[Path, ...], notifier: Notifier | None = None) -> Finished:
    """Whether it died of memory; where no app can be opened, the report goes to standard error."""
    from advisor.commands.streams import tell
    from advisor.report.short_report import short_report
    from advisor.watch.listing import add_told

    record = finished.record
    state = opened(finished, knowledge)
    if state is not None and record is not None:
        add_told(record, verdict=state.crash.verdict, memory=state.diagnosis.memory, phase=state.diagnosis.phase)
    if notifier is not None:
        tell_death(notifier, finished)
        if state is not None:
            tell_diagnosis(notifier, state, died_at(state))
    if state is None or state.crash.verdict != "oom":
        _say(say("record: {folder} (rl-oom-advisor --record opens it)", folder=clean_line(str(record))))
        return finished
    if _has_terminal():
        return finished._replace(show=True, script=state.asked.script)
    with suppress(OSError):
        tell(short_report(state))
    _say(say("record: {folder}", folder=clean_line(str(record))))
    return finished


def opened(finished: Finished, knowledge: tuple[Path, ...]) -> State | None:
    """The session of a record, with the script where it is one; None, once it is said why, where it cannot be read."""
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
    if len(argv) == 2 and os.path.basename(argv[0]) in _SHELLS and Path(argv[1]).is_file():
        return Path(argv[1])
    if len(argv) == 1 and Path(argv[0]).suffix in _SCRIPTS and Path(argv[0]).is_file():
        return Path(argv[0])
    from advisor.watch.record_files import COMMAND

    return folder / COMMAND if (folder / COMMAND).is_file() else None


def tell_death(notifier: Notifier, finished: Finished) -> None:
    """Hand over that the command died, and how, as its record says; {}: the record does not."""
    from advisor.watch.recording import RecordError, read_record

    assert finished.record is not None
    end: dict[str, object] = {}
    with suppress(RecordError, OSError):
        end = read_record(finished.record).end or {}
    notifier.send("death", record=str(finished.record), end=end)


def tell_diagnosis(notifier: Notifier, state: State, step: int) -> None:
    """Hand over what it died of."""
    found, verdict = state.diagnosis, state.crash.verdict
    notifier.send("diagnosis", phase=found.phase, step=step, verdict=verdict, cause=found.cause, title=found.title)


def died_at(state: State, from_step: int = 0) -> int:
    """The last step that record or log show of a run that began at `from_step`."""
    last = state.measured.last_step if state.measured is not None else None
    return max(state.crash.steps_done or 0, from_step) if last is None else last


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


def _say(sentence: str) -> None:
    """A terminal that was closed meanwhile costs the words, not the command's own end."""
    encoding = sys.stderr.encoding or "ascii"
    with suppress(OSError):
        print(f"{PROGRAM}: {sentence}".encode(encoding, "replace").decode(encoding), file=sys.stderr, flush=True)
