"""Estimates the memory of a run in every phase, and whether it fits; of many launch files one by one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from advisor.arguments import add_answers, add_input, add_machine
from advisor.exits import Exit, Refusal
from advisor.language import say

FORMATS = ("text", "lines", "json", "github", "markdown")


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help=say("of several files text is a line each; github: annotations; markdown: a table for a pull request"),
    )
    parser.add_argument(
        "--strict", action="store_true", help=say("exit 3 also where the run may not fit, 5 where it cannot be said")
    )


def run(parsed: argparse.Namespace) -> int:
    """Exit 3 where a run surely does not fit; with `--strict` also where it may not, and 5 where nobody knows."""
    from advisor.commands.inputs import is_log
    from advisor.commands.requests import asked_from
    from advisor.commands.sessions import open_state
    from advisor.commands.streams import emit, usable
    from advisor.report.estimates_report import exit_of
    from advisor.report.json_report import encode, estimate_json
    from advisor.report.text_report import estimate_report
    from advisor.run_file import size_run_file, sizing_of

    if parsed.framework is not None or parsed.method is not None:
        return _without_script(parsed)
    if parsed.run is not None and (parsed.files or parsed.demo):
        raise Refusal(say("give a SCRIPT or --run FILE, not both"))
    if parsed.run is not None and parsed.format not in ("text", "json"):
        raise Refusal(say("--format {format} is of launch files, not of a run file", format=parsed.format))
    scripts = [name for name in parsed.files if not Path(name).is_dir() and not is_log(Path(name), not parsed.log)]
    if len(scripts) > 1 or parsed.format not in ("text", "json"):
        return _each(parsed, scripts)
    if parsed.run is not None:
        sizing = usable(lambda: size_run_file(Path(parsed.run), asked_from(parsed)))
    else:
        sizing = sizing_of(open_state(parsed, needs_script=True, planned=False))
    emit(encode(estimate_json(sizing)) + "\n" if parsed.format == "json" else estimate_report(sizing), parsed.ascii)
    return exit_of([sizing.fit.verdict], parsed.strict)


def _without_script(parsed: argparse.Namespace) -> int:
    """Exit 3 where no layout that was tried holds the run."""
    from advisor.commands.requests import asked_from
    from advisor.commands.streams import emit, usable
    from advisor.layouts import find_layouts
    from advisor.report.estimates_report import layouts_json, layouts_report
    from advisor.report.json_report import encode

    if parsed.files or parsed.demo or parsed.run is not None:
        raise Refusal(say("--framework and --method are for a run without a script; give one or the other"))
    if parsed.framework is None:
        raise Refusal(say("name the framework, like --framework verl"))
    found = usable(lambda: find_layouts(parsed.framework, parsed.method, asked_from(parsed)))
    emit(encode(layouts_json(found)) + "\n" if parsed.format == "json" else layouts_report(found), parsed.ascii)
    return Exit.DONE if found.smallest is not None else Exit.DOES_NOT_FIT


def _each(parsed: argparse.Namespace, scripts: Sequence[str]) -> int:
    """Every launch file by itself; what cannot be read is told in its line, and the others are counted."""
    from advisor.commands.sessions import open_state
    from advisor.commands.streams import emit
    from advisor.report import estimates_report as report
    from advisor.report.json_report import encode
    from advisor.run_file import sizing_of

    if not scripts:
        raise Refusal(say("give the SCRIPT that starts the run, or --demo (diagnose takes a log alone)"))
    others = [name for name in parsed.files if name not in scripts]
    found, searched = [], None if parsed.format == "json" else report.OVER  # else a search of seconds that nobody reads
    for script in scripts:
        alone = argparse.Namespace(**{**vars(parsed), "files": [script, *others], "log": list(parsed.log)})
        try:
            state = open_state(alone, needs_script=True, planned=False)
        except Refusal as refusal:
            found.append(report.Estimated(script, trouble=str(refusal)))
        else:
            found.append(report.Estimated(script, sizing_of(state, searched), state.launch))
    match parsed.format:
        case "json":
            text = encode(report.estimates_json(found)) + "\n"
        case "github":
            text = report.estimate_annotations(found)
        case "markdown":
            text = report.estimate_table(found)
        case _:
            text = report.estimate_lines(found)
    emit(text, parsed.ascii)
    return report.exit_of([one.ending for one in found], parsed.strict)
