"""The guided app's driver: the five verbs of `advisor.tui.driver` over the session, and the start of the app."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from advisor import session
from advisor.commands.asking import asked_from
from advisor.commands.saving import destination_of, save
from advisor.crash.sources import LogError
from advisor.exits import Refusal
from advisor.machine.live import Gauges
from advisor.report.diff_report import diff_report
from advisor.script.document import EditRefused
from advisor.session import Asked, State
from advisor.tui.app import run_app
from advisor.tui.driver import Notice, Preview, Saved


@dataclass(frozen=True, slots=True)
class SessionDriver:
    """One sitting on what was asked for. Raises ScriptError, EditRefused, ValueError or OSError, as the app expects."""

    asked: Asked
    is_demo: bool = False
    """The bundled crash lies in the program's own folder: its patch is written where the user is."""

    def open(self, notice: Notice) -> State:
        """Read and diagnose."""
        try:
            return session.open_session(self.asked, notice)
        except LogError as error:
            raise ValueError(str(error)) from error

    def answer(self, state: State, question: str, choice: str | None) -> State:
        """Answer one question; None takes the answer back."""
        return session.answer(state, question, choice)

    def toggle(self, state: State, step_id: str) -> State:
        """Switch one step of the plan."""
        return session.toggle(state, step_id)

    def preview(self, state: State) -> Preview:
        """The patch of the selected steps."""
        patch = session.patch(state)
        if patch.refused or not patch.rewrites:
            return Preview("", refused=patch.refused, by_hand=patch.by_hand)
        try:
            destination = destination_of(patch, None, here=self.is_demo)
        except Refusal as refusal:
            return Preview("", refused=str(refusal), by_hand=patch.by_hand)
        return Preview(diff_report(patch.rewrites, [str(destination)]), patch.proof, destination, by_hand=patch.by_hand)

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        """Write script and report; FileExistsError where one is there and `force` is False."""
        try:
            report = save(state, session.patch(state), destination, force)
        except Refusal as refusal:
            raise EditRefused(str(refusal)) from refusal
        runner = {".sh": "bash", ".bash": "bash", ".slurm": "sbatch", ".sbatch": "sbatch"}.get(destination.suffix, "")
        return Saved(destination, report, f"{runner} {destination}".strip())


def run(parsed: argparse.Namespace) -> int:
    """Open the app; the caller has made sure that there is a terminal."""
    no_color = parsed.no_color or bool(os.environ.get("NO_COLOR"))
    return run_app(SessionDriver(asked_from(parsed), parsed.demo), Gauges(), no_color, parsed.ascii)
