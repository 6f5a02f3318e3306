"""Shows what a record or the last session would tell others as a case, whole, and writes it where that is wanted."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.arguments import add_knowledge
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.language import say

if TYPE_CHECKING:
    from advisor.knowledge.schema import Case

_YES = ("y", "yes", "是", "好")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "record",
        nargs="?",
        metavar="RECORD|SESSION",
        help=say("record of `watch`, or a session (default: the last one)"),
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help=say("file to write, once it was shown (default: only show it)")
    )
    add_knowledge(parser)


def run(parsed: argparse.Namespace) -> int:
    """Print the whole case; with -o ask where there is a terminal, then write. Nothing is sent anywhere."""
    from advisor.commands.streams import emit, tell, usable
    from advisor.report.local_case import case_yaml
    from advisor.script.write import write_file

    case = _case_of(Path(parsed.record)) if parsed.record and Path(parsed.record).is_dir() else _of_session(parsed)
    text = case_yaml(case)
    emit(text)
    if parsed.output is None:
        tell(say("nothing was written; -o FILE writes it. Read it before you send it"))
        return Exit.DONE
    path = Path(parsed.output)
    if path.exists() or path.is_symlink():
        raise Refusal(say("{file}: it is there already; give another name", file=clean_line(parsed.output)))
    if sys.stdin.isatty() and sys.stdout.isatty():
        asks = say("write this to {file}? [y/N]", file=clean_line(str(path)))
        print(asks, end=" ", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in _YES:
            tell(say("nothing was written"))
            return Exit.DONE
    usable(lambda: write_file(path, text.encode(), force=False))
    tell(say("written {file}", file=clean_line(parsed.output)))
    return Exit.DONE


def _case_of(record: Path) -> Case:
    """The case that a retry made of its chain, read as strictly as any; else one of the record alone."""
    from advisor.commands.streams import usable
    from advisor.commands.watched_run import Finished, opened, script_of
    from advisor.knowledge.schema import Case
    from advisor.knowledge.yaml_file import BadFile, read_yaml, typed
    from advisor.report.local_case import local_case, without_names
    from advisor.watch.listing import attempts_of
    from advisor.watch.record_files import CASE
    from advisor.watch.recording import read_record

    folders = [one.record.folder for one in usable(lambda: attempts_of(record))] or [record]
    for folder in reversed(folders):
        if (folder / CASE).is_file():
            try:
                return without_names(typed(read_yaml(folder / CASE), Case))
            except BadFile as error:
                raise Refusal(f"{clean_line(str(folder / CASE))}:{error.line}: {error.says}") from error
    argv = list(usable(lambda: read_record(folders[0])).command)
    state = opened(Finished(None, record=folders[0], script=script_of(argv, folders[0])), ())
    if state is None or state.crash.verdict != "oom":
        raise Refusal(
            say("{record}: no shortage of memory is seen in it", record=clean_line(str(record))), Exit.NOTHING_FOUND
        )
    return local_case(state, [], None)


def _of_session(parsed: argparse.Namespace) -> Case:
    """Of a kept session: what died, and the steps that are switched on; whether they helped nobody has shown."""
    from advisor import session
    from advisor.commands.sessions import kept_session
    from advisor.commands.streams import usable
    from advisor.report.local_case import local_case
    from advisor.session_store import with_switches

    kept = kept_session(parsed.record or "")
    state = usable(lambda: with_switches(session.open_session(kept.asked), kept.switched, kept.numbers))
    if state.crash.verdict != "oom":
        raise Refusal(say("no shortage of memory is seen in the last session"), Exit.NOTHING_FOUND)
    return local_case(state, state.plan.selected(), None)
