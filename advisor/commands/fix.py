"""Writes the launch script that fits and its report, or prints the diff and writes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.arguments import add_output, add_session
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.language import listed, say

if TYPE_CHECKING:
    from advisor.state import State

SHOWN = 6
"""Steps of which is said why they are not written, as many as the diagnosis shows in order."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    parser.add_argument(
        "--accept",
        default="recommended",
        metavar="recommended|same-results|ID,ID",
        help=say("which changes to make: the recommended ones, only those that leave training results alone, or these"),
    )
    parser.add_argument("--diff", action="store_true", help=say("print a unified diff and write nothing"))
    add_output(parser)


def run(parsed: argparse.Namespace) -> int:
    """Refuses where the crash was no shortage of memory, or where an edit cannot be made exactly."""
    from advisor import session
    from advisor.commands.diagnose import found_code
    from advisor.commands.sessions import open_state
    from advisor.commands.streams import emit, emit_file, tell, usable
    from advisor.plan.patch import unwritten
    from advisor.report.diff_report import diff_report
    from advisor.report.phrases import change_line, fits_words
    from advisor.saved_fix import remember_fix
    from advisor.saving import named_for, new_files, save

    state = open_state(parsed, needs_script=True)
    if state.crash.verdict == "not_oom":
        told = say("this was not a shortage of memory: nothing to fix (diagnose says more)")
        raise Refusal(told, Exit.NOTHING_FOUND)
    patch = session.patch(state)
    if patch.refused:
        raise Refusal(f"{clean_line(str(state.asked.script))}: {patch.refused}")
    if state.launch is not None and state.launch.never_run:
        tell(state.launch.never_run)
    for sentence in (*patch.by_hand, *_left(state, parsed.accept, bool(patch.rewrites))):
        tell(say("by hand: {change}", change=sentence))
    changes = [change_line(change) for step in state.plan.selected() for change in step.changes]
    if not patch.rewrites:  # the selected changes, where there are any, are not the script's to make
        emit("".join(f"{change}\n" for change in changes if not parsed.diff), parsed.ascii)
        tell(say("no selected change edits the script: nothing was written"))
        ready = [step.id for step in state.plan.steps if not step.selected and step.changes and not unwritten(step)]
        if ready:
            tell(say("can be written, with --accept: {steps}", steps=listed(ready[:SHOWN])))
        return found_code(state) or Exit.DOES_NOT_FIT
    if state.plan.fit.verdict == "does_not_fit":
        tell(say("it does not fit with these changes alone: {shortfall}", shortfall=state.plan.shortfall))
    if state.plan.fit.verdict == "may_not_fit":
        tell(say("it may not fit with these changes alone (diagnose says why)"))
    if state.plan.fit.verdict == "cannot_be_said" and state.plan.fit.fits_beside is None:
        tell(fits_words(state.plan))
    if parsed.output == "-" and not parsed.diff:
        if len(patch.rewrites) > 1:
            names = listed(clean_line(str(one.document.path), 200) for one in patch.rewrites)
            raise Refusal(
                say("the changes are decided in several files ({files}); only one can be written", files=names)
            )
        emit_file(patch.rewrites[0].new)
        for change in changes:
            tell(change)
        return Exit.DONE
    named = named_for(patch, state.asked.script, parsed.output, Path() if parsed.demo else None)
    made = new_files(state.asked.script, state.script, state.launch_index, patch.rewrites, named)
    if made.by_hand:
        tell(say("by hand: {change}", change=made.by_hand))
    if parsed.diff:
        emit(diff_report([*made.files.values()], [*map(str, made.files)]), parsed.ascii)
        return Exit.DONE
    report, notes = usable(lambda: save(state, made, parsed.force))
    if not parsed.demo:
        remember_fix(state, made.launch or made.first)
    emit("".join(f"{change}\n" for change in changes), parsed.ascii)
    file, proof = clean_line(str(made.first)), listed(patch.proof)
    tell(say("written {file} ({proof})", file=file, proof=proof) if proof else say("written {file}", file=file))
    for more in [*made.files][1:]:
        tell(say("written {file}", file=clean_line(str(more))))
    if patch.along:
        tell(say("what follows from it: {keys}", keys=listed(map(clean_line, patch.along))))
    tell(say("report  {file}", file=clean_line(str(report))))
    command = "" if parsed.demo else made.command
    if command:
        tell(say("next    {command}", command=clean_line(command)))
    for note in notes:
        tell(note)
    return Exit.DONE


def _left(state: State, accepted: str, written: bool) -> list[str]:
    """Of what was asked for, or of the first steps where nothing is written: why no file carries it."""
    from advisor.plan.patch import unwritten

    named = {name.strip() for name in accepted.split(",")}
    asked = [step for step in state.plan.steps if step.id in named]
    first = [step for step in state.plan.steps if not step.only_if][:SHOWN] if not written and not asked else []
    return [
        why
        for step in (asked or first)
        if not step.selected or any(one.left_to_user for one in step.changes)
        if (why := unwritten(step))
    ]
