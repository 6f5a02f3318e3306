"""Describes this machine; or nodes that were measured before, or that a Ray cluster tells of."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.arguments import add_ascii, add_format, add_list, add_ray
from advisor.exits import Exit
from advisor.language import say

if TYPE_CHECKING:
    from advisor.machine.inventory import Machine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_list(parser, "--machine", "FILE", say("show nodes that were measured before; repeatable"))
    add_ray(parser)
    add_ascii(parser)
    add_format(parser, "text", "json")


def run(parsed: argparse.Namespace) -> int:
    from advisor.commands.streams import emit, usable
    from advisor.machine.measure import measure
    from advisor.report.json_report import encode, machine_file
    from advisor.report.machine_report import machine_report

    asked = parsed.machine or parsed.ray is not None
    found = usable(lambda: _nodes(parsed)) if asked else measure()
    emit(encode(machine_file(found)) + "\n" if parsed.format == "json" else machine_report(found), parsed.ascii)
    return Exit.DONE


def _nodes(parsed: argparse.Namespace) -> Machine:
    from advisor.commands.streams import tell
    from advisor.machine.cluster import ClusterAnswers, ask_cluster
    from advisor.machine.describe import described

    answers = ask_cluster(parsed.ray) if parsed.ray is not None else ClusterAnswers(())
    if answers.nodes:
        told = {"count": len(answers.nodes), "seconds": answers.seconds}
        tell(say("{count} nodes answered in {seconds:.1f} s", **told))
    files = [Path(file) for file in parsed.machine]
    return described((), machine_files=files, asked=answers.nodes, problems=answers.problems)
