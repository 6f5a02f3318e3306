"""diagnose, estimate, fix: the commands that hold a whole sitting."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from advisor import session
from advisor.commands.asking import asked_from, kept_sitting
from advisor.commands.streams import emit, emit_file, tell, usable
from advisor.exits import Exit, Refusal
from advisor.hostile import clean_line
from advisor.kept import again
from advisor.language import listed, say
from advisor.plan.patch import Patch
from advisor.report.diff_report import diff_report
from advisor.report.json_report import diagnose_json, encode, estimate_json, fits
from advisor.report.markdown_report import markdown_report
from advisor.report.phrases import change_line, nothing_told
from advisor.report.text_report import estimate_report, text_report
from advisor.run_file import Sizing, size_run_file, sizing_of
from advisor.saving import destination_of, only_rewrite, save
from advisor.session import Asked, State

DIAGNOSES: Mapping[str, Callable[[State], str]] = {
    "text": text_report,
    "markdown": markdown_report,
    "json": lambda state: encode(diagnose_json(state)) + "\n",
}
ESTIMATES: Mapping[str, Callable[[Sizing], str]] = {
    "text": estimate_report,
    "json": lambda sizing: encode(estimate_json(sizing)) + "\n",
}


def diagnose(parsed: argparse.Namespace) -> int:
    """Exit 4 where nothing was given or the logs prove nothing; what is known is printed all the same."""
    state = _replayed(parsed.replay) if parsed.replay is not None else _open(asked_from(parsed))
    emit(DIAGNOSES[parsed.format](state), parsed.ascii)
    return _whether_found(state)


def estimate(parsed: argparse.Namespace) -> int:
    """Exit 3 where the run does not fit."""
    if parsed.run is None:
        sizing = sizing_of(_open(_with_script(parsed)))
    elif parsed.script or parsed.demo:
        raise Refusal(say("give a SCRIPT or --run FILE, not both"))
    else:
        sizing = usable(lambda: size_run_file(Path(parsed.run), asked_from(parsed)))
    emit(ESTIMATES[parsed.format](sizing), parsed.ascii)
    return Exit.DOES_NOT_FIT if fits(sizing.ledger, sizing.margin) is False else Exit.DONE


def fix(parsed: argparse.Namespace) -> int:
    """Write the patched script and its report, or print the diff and write nothing."""
    state = _replayed(parsed.replay) if parsed.replay is not None else _open(_with_script(parsed))
    if state.crash.verdict == "not_oom":
        told = say("this was not a shortage of memory: nothing to fix (diagnose says more)")
        raise Refusal(told, Exit.NOTHING_FOUND)
    patch = session.patch(state)
    if patch.refused:
        raise Refusal(f"{clean_line(str(state.asked.script))}: {patch.refused}")
    for sentence in patch.by_hand:
        tell(say("by hand: {change}", change=sentence))
    if not patch.rewrites:
        return _nothing_to_write(state, parsed)
    if parsed.output == "-" and not parsed.diff:
        emit_file(only_rewrite(patch.rewrites).new)
        for change in _changes(state):
            tell(change)
        return Exit.DONE
    destination = destination_of(patch, parsed.output, here=parsed.demo)
    if parsed.diff:
        emit(diff_report(patch.rewrites, [str(destination)]), parsed.ascii)
        return Exit.DONE
    written = usable(lambda: save(state, patch, destination, parsed.force))
    _say_what_changed(state, patch, destination, written.report, parsed.ascii)
    for note in written.notes:
        tell(note)
    return Exit.DONE


def _nothing_to_write(state: State, parsed: argparse.Namespace) -> int:
    """The selected changes, where there are any, are not the script's to make."""
    if not parsed.diff:
        _say_changes(state, parsed.ascii)
    tell(say("no selected change edits the script: nothing was written"))
    return _whether_found(state)


def _say_changes(state: State, ascii_only: bool) -> None:
    for change in _changes(state):
        emit(f"{change}\n", ascii_only)


def _changes(state: State) -> list[str]:
    return [change_line(change) for step in state.plan.selected() for change in step.changes]


def _say_what_changed(state: State, patch: Patch, destination: Path, report: Path, ascii_only: bool) -> None:
    _say_changes(state, ascii_only)
    file = clean_line(str(destination))
    proof = listed(patch.proof)
    tell(say("written {file} ({proof})", file=file, proof=proof) if proof else say("written {file}", file=file))
    tell(say("report  {file}", file=clean_line(str(report))))
    if state.plan.fits is False:
        tell(say("it does not fit with these changes alone: {shortfall}", shortfall=state.plan.shortfall))


def _replayed(name: str) -> State:
    """A sitting of the app, with the answers that were given there and the steps that were switched."""
    sitting = kept_sitting(name)
    return usable(lambda: again(session.open_session(sitting.asked), sitting.switched))


def _open(asked: Asked) -> State:
    return usable(lambda: session.open_session(asked))


def _with_script(parsed: argparse.Namespace) -> Asked:
    asked = asked_from(parsed)
    if asked.script is None:
        raise Refusal(say("give the SCRIPT that starts the run, or --demo (diagnose takes a log alone)"))
    return asked


def _whether_found(state: State) -> int:
    asked, crash = state.asked, state.crash
    if crash.signature or asked.record is not None or (asked.script is not None and not asked.logs):
        return Exit.DONE
    if not asked.logs:
        told = say("nothing to diagnose: give a SCRIPT, a --log, or --demo for the bundled crash")
        tell(f"rl-oom-advisor: {told}")
        return Exit.NOTHING_FOUND
    names = listed(clean_line(str(log), 200) for log in asked.logs)
    tell(f"rl-oom-advisor: {names}: {nothing_told(crash)}")
    return Exit.NOTHING_FOUND
