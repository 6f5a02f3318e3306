"""Diagnoses why a run died of memory, without a screen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from advisor.arguments import add_format, add_session
from advisor.exits import Exit
from advisor.hostile import clean_line
from advisor.language import listed, say

if TYPE_CHECKING:
    from advisor.state import State


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    parser.add_argument(
        "--all",
        action="store_true",
        help=say("the whole text report: every question, step, phase, case and source (other formats have all)"),
    )
    add_format(parser, "text", "markdown", "html", "json")


def run(parsed: argparse.Namespace) -> int:
    """Exit 4 where nothing was given or the logs prove nothing; what is known is printed all the same."""
    from advisor.commands.sessions import open_state
    from advisor.commands.streams import emit
    from advisor.report.json_report import diagnose_json, encode
    from advisor.report.markdown_report import markdown_report
    from advisor.report.short_report import short_report
    from advisor.report.text_report import text_report

    state = open_state(parsed)
    if parsed.format == "json":
        emit(encode(diagnose_json(state)) + "\n", parsed.ascii)
    elif parsed.format == "markdown":
        emit(markdown_report(state), parsed.ascii)
    elif parsed.format == "html":
        from advisor import session
        from advisor.report.diff_report import diff_report
        from advisor.report.page_report import page_report

        changed = session.patch(state).rewrites if state.crash.verdict != "not_oom" else ()
        emit(page_report(state, diff_report(changed, [one.document.path.name for one in changed])), parsed.ascii)
    else:
        emit(text_report(state) if parsed.all else short_report(state), parsed.ascii)
    return found_code(state)


def found_code(state: State) -> int:
    """Exit 4, and why, where there is nothing to diagnose: nothing was given, found in the logs or said by the user."""
    from advisor.commands.streams import tell
    from advisor.report.phrases import nothing_told, told_of_memory

    asked, crash = state.asked, state.crash
    if crash.signature or asked.record is not None or (asked.script is not None and not asked.logs):
        return Exit.DONE
    if crash.verdict == "unclear" and told_of_memory(state):
        return Exit.DONE
    if asked.logs:
        told = f"{listed(clean_line(str(log), 200) for log in asked.logs)}: {nothing_told(crash)}"
    else:
        told = say("nothing to diagnose: give a SCRIPT, a --log, or --demo for the bundled crash")
    tell(f"rl-oom-advisor: {told}")
    return Exit.NOTHING_FOUND
