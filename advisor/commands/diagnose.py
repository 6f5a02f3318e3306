"""Diagnoses why a run died of memory, without a screen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from advisor.arguments import add_format, add_session
from advisor.exits import Exit
from advisor.hostile import clean_line
from advisor.language import listed, say

if TYPE_CHECKING:
    from advisor.session import State


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A session, and how it is printed."""
    add_session(parser)
    add_format(parser, "text", "markdown", "json")


def run(parsed: argparse.Namespace) -> int:
    """Exit 4 where nothing was given or the logs prove nothing; what is known is printed all the same."""
    from advisor.commands.sessions import open_state
    from advisor.commands.streams import emit
    from advisor.report.json_report import diagnose_json, encode
    from advisor.report.markdown_report import markdown_report
    from advisor.report.text_report import text_report

    state = open_state(parsed)
    if parsed.format == "json":
        emit(encode(diagnose_json(state)) + "\n", parsed.ascii)
    else:
        emit(markdown_report(state) if parsed.format == "markdown" else text_report(state), parsed.ascii)
    return found_code(state)


def found_code(state: State) -> int:
    """Exit 4, and why, where there is nothing to diagnose."""
    from advisor.commands.streams import tell
    from advisor.report.phrases import nothing_told

    asked, crash = state.asked, state.crash
    if crash.signature or asked.record is not None or (asked.script is not None and not asked.logs):
        return Exit.DONE
    if asked.logs:
        told = f"{listed(clean_line(str(log), 200) for log in asked.logs)}: {nothing_told(crash)}"
    else:
        told = say("nothing to diagnose: give a SCRIPT, a --log, or --demo for the bundled crash")
    tell(f"rl-oom-advisor: {told}")
    return Exit.NOTHING_FOUND
