"""Estimates the memory of a run in every phase, and whether it fits."""

from __future__ import annotations

import argparse
from pathlib import Path

from advisor.arguments import add_answers, add_format, add_input, add_machine
from advisor.exits import Exit, Refusal
from advisor.language import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A script or a run file, the machine, and how it is printed."""
    add_input(parser)
    parser.add_argument(
        "--run", metavar="FILE", help=say("use a run file (`settings --format yaml` writes one) instead of a script")
    )
    start = parser.add_argument_group(
        say("without a script"), say("how many cards a run needs, by a starting script that its framework documents")
    )
    start.add_argument("--framework", metavar="NAME", help=say("framework, e.g. verl; with --model and --gpus"))
    start.add_argument("--method", metavar="NAME", help=say("training method, e.g. grpo, dpo, sft"))
    add_machine(parser)
    add_answers(parser)
    add_format(parser, "text", "json")
    parser.add_argument("--strict", action="store_true", help=say("exit 3 also where the run may not fit"))


def run(parsed: argparse.Namespace) -> int:
    """Exit 3 where the run surely does not fit; with `--strict` also where it may not."""
    from advisor.commands.requests import asked_from
    from advisor.commands.sessions import open_state
    from advisor.commands.streams import emit, usable
    from advisor.report.json_report import encode, estimate_json
    from advisor.report.text_report import estimate_report
    from advisor.run_file import size_run_file, sizing_of

    if parsed.framework is not None or parsed.method is not None:
        return _without_script(parsed)
    if parsed.run is None:
        sizing = sizing_of(open_state(parsed, needs_script=True, planned=False))
    elif parsed.files or parsed.demo:
        raise Refusal(say("give a SCRIPT or --run FILE, not both"))
    else:
        sizing = usable(lambda: size_run_file(Path(parsed.run), asked_from(parsed)))
    emit(encode(estimate_json(sizing)) + "\n" if parsed.format == "json" else estimate_report(sizing), parsed.ascii)
    refused = ("does_not_fit", "may_not_fit") if parsed.strict else ("does_not_fit",)
    return Exit.DOES_NOT_FIT if sizing.fit.verdict in refused else Exit.DONE


def _without_script(parsed: argparse.Namespace) -> int:
    """Exit 3 where no layout that was tried holds the run."""
    from advisor.commands.requests import asked_from
    from advisor.commands.streams import emit, usable
    from advisor.layouts import find_layouts
    from advisor.report.json_report import encode
    from advisor.report.layouts_report import layouts_json, layouts_report

    if parsed.files or parsed.demo or parsed.run is not None:
        raise Refusal(say("--framework and --method are for a run without a script; give one or the other"))
    if parsed.framework is None:
        raise Refusal(say("name the framework, like --framework verl"))
    found = usable(lambda: find_layouts(parsed.framework, parsed.method, asked_from(parsed)))
    emit(encode(layouts_json(found)) + "\n" if parsed.format == "json" else layouts_report(found), parsed.ascii)
    return Exit.DONE if found.smallest is not None else Exit.DOES_NOT_FIT
