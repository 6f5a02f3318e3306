"""Prints the evidence in logs: the crash as they alone prove it."""

from __future__ import annotations

import argparse
from pathlib import Path

from advisor.arguments import add_ascii, add_format, add_knowledge
from advisor.exits import Exit
from advisor.hostile import clean_line
from advisor.language import listed, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs", nargs="+", metavar="LOG", help=say("log file, .gz, .zst or folder; - is standard input")
    )
    add_knowledge(parser)
    add_ascii(parser)
    add_format(parser, "text", "json")


def run(parsed: argparse.Namespace) -> int:
    """Exit 4 where the logs prove nothing."""
    from advisor.commands.streams import emit, knowledge_of, tell, usable
    from advisor.crash.read import read_logs
    from advisor.knowledge.load import forget_knowledge
    from advisor.report.json_report import encode, scan_json
    from advisor.report.phrases import nothing_told
    from advisor.report.text_report import scan_report

    knowledge = knowledge_of(parsed)
    frames = [rule for framework in knowledge.frameworks for rule in framework.frames]
    progress = [mark for framework in knowledge.frameworks for mark in framework.progress]
    signatures = knowledge.signatures
    del knowledge  # cases, models and dialects are not wanted while the logs are read
    forget_knowledge()
    logs = [Path(log) for log in parsed.logs]
    crash = usable(lambda: read_logs(logs, signatures, frames, progress))
    emit(encode(scan_json(crash)) + "\n" if parsed.format == "json" else scan_report(crash), parsed.ascii)
    if crash.signature:
        return Exit.DONE
    tell(f"rl-oom-advisor: {listed(clean_line(log, 200) for log in parsed.logs)}: {nothing_told(crash)}")
    return Exit.NOTHING_FOUND
