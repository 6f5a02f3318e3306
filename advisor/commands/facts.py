"""scan, machine, explain: what the logs, this box and the knowledge say, without a diagnosis."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.commands.knowing import knowledge_of
from advisor.commands.streams import emit, tell, usable
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.knowledge.load import forget_knowledge
from advisor.language import listed, say
from advisor.machine.inventory import Machine
from advisor.report.json_report import encode, machine_file, scan_json
from advisor.report.phrases import nothing_told
from advisor.report.text_report import scan_report

if TYPE_CHECKING:
    from advisor.report.explain_report import UnknownIdError


def scan(parsed: argparse.Namespace) -> int:
    """The crash as the logs alone prove it; exit 4 where they prove nothing."""
    from advisor.crash.read import read_logs

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
    names = listed(clean_line(log, 200) for log in parsed.logs)
    tell(f"rl-oom-advisor: {names}: {nothing_told(crash)}")
    return Exit.NOTHING_FOUND


def machine(parsed: argparse.Namespace) -> int:
    """This box, measured; or the nodes that were measured before, or that a Ray cluster tells of."""
    from advisor.machine.measure import measure
    from advisor.report.machine_report import machine_report

    asked = parsed.machine or parsed.ray is not None
    found = usable(lambda: _nodes(parsed)) if asked else measure()
    emit(encode(machine_file(found)) + "\n" if parsed.format == "json" else machine_report(found), parsed.ascii)
    return Exit.DONE


def _nodes(parsed: argparse.Namespace) -> Machine:
    from advisor.machine.cluster import ClusterAnswers, ask_cluster
    from advisor.machine.describe import described

    answers = ask_cluster(parsed.ray) if parsed.ray is not None else ClusterAnswers(())
    if answers.nodes:
        told = {"count": len(answers.nodes), "seconds": answers.seconds}
        tell(say("{count} nodes answered in {seconds:.1f} s", **told))
    files = [Path(file) for file in parsed.machine]
    return described((), machine_files=files, asked=answers.nodes, problems=answers.problems)


def explain(parsed: argparse.Namespace) -> int:
    """What the knowledge says of one id."""
    from advisor.report.explain_report import UnknownIdError, explain_report

    knowledge = knowledge_of(parsed)
    try:
        emit(explain_report(knowledge, parsed.id), parsed.ascii)
    except UnknownIdError as error:
        raise Refusal(_not_known(error)) from error
    return Exit.DONE


def _not_known(error: UnknownIdError) -> str:
    name = clean_line(error.wanted, 120)
    if not error.close:
        return say("nothing is known by the name {name}", name=name)
    return say("nothing is known by the name {name}; close to it: {close}", name=name, close=listed(error.close))
