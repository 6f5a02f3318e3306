"""Explains a knob, setting, cause, remedy, crash line or case from the knowledge."""

from __future__ import annotations

import argparse

from advisor.arguments import add_ascii, add_knowledge
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "id", metavar="ID", help=say("as the reports name it: a knob, setting, cause, remedy, crash line, case")
    )
    add_knowledge(parser)
    add_ascii(parser)


def run(parsed: argparse.Namespace) -> int:
    """Refuses an unknown id, and names those that are close to it."""
    from advisor.commands.streams import emit, knowledge_of
    from advisor.report.explain_report import UnknownIdError, explain_report

    knowledge = knowledge_of(parsed)
    try:
        emit(explain_report(knowledge, parsed.id), parsed.ascii)
    except UnknownIdError as error:
        name = clean_line(error.wanted, 120)
        if not error.close:
            raise Refusal(say("nothing is known by the name {name}", name=name)) from error
        close = listed(error.close)
        raise Refusal(
            say("nothing is known by the name {name}; close to it: {close}", name=name, close=close)
        ) from error
    return Exit.DONE
