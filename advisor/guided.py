"""The guided app's driver: the six verbs of `advisor.tui.driver` over the session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from advisor import session, session_store
from advisor.commands.saving import destination_of, refuse_existing, save
from advisor.crash.sources import LogError
from advisor.exits import Refusal
from advisor.plan.patch import fits_name, report_name
from advisor.report.diff_report import diff_report
from advisor.report.markdown_report import markdown_report
from advisor.script.document import EditRefused
from advisor.script.write import write_file
from advisor.session import SessionRequest, State
from advisor.tui.driver import Early, Notice, Preview, Saved


class SessionDriver(Struct, frozen=True):
    """One sitting on what was asked for. Raises ScriptError, EditRefused, ValueError or OSError, as the app expects."""

    asked: SessionRequest
    is_demo: bool = False
    """The bundled crash lies in the program's own folder: its patch is written where the user is."""
    switched: Mapping[str, bool] = field(default_factory=dict)
    """Steps to be switched once the plan is made: a sitting that is taken up again."""

    def open(self, notice: Notice, early: Early | None = None) -> State:
        """Read and diagnose; the ends of long logs first."""
        try:
            return session_store.with_switches(session.open_session(self.asked, notice, early), self.switched)
        except LogError as error:
            raise ValueError(str(error)) from error

    def carry_over(self, before: State, now: State) -> State:
        """What the user did in `before`, done in `now`."""
        return session.carry_over(before, now)

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
            alone = report_alone(state, here=self.is_demo) if patch.by_hand and not patch.refused else None
            return Preview("", refused=patch.refused, by_hand=patch.by_hand, report=alone)
        try:
            destination = destination_of(patch, None, here=self.is_demo)
        except Refusal as refusal:
            return Preview("", refused=str(refusal), by_hand=patch.by_hand)
        return Preview(diff_report(patch.rewrites, [str(destination)]), patch.proof, destination, by_hand=patch.by_hand)

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        """Write script and report, or the report alone; FileExistsError where one is there and `force` is False."""
        patch = session.patch(state)
        try:
            if not patch.rewrites:
                return Saved(destination, save_report(state, destination, force), _start(state.asked.script))
            written = save(state, patch, destination, force)
        except Refusal as refusal:
            raise EditRefused(str(refusal)) from refusal
        return Saved(destination, written.report, _start(destination), notes=written.notes)


def report_alone(state: State, here: bool) -> Path | None:
    """Where the report goes when no file changes: beside the script, under the name it would have with one."""
    if state.asked.script is None:
        return None
    beside = report_name(fits_name(state.asked.script))
    return Path(beside.name) if here else beside


def save_report(state: State, destination: Path, force: bool) -> Path:
    """Write the Markdown report and nothing else; returns its path. Raises FileExistsError as `save` does."""
    refuse_existing(destination, force)
    name = state.asked.script.name if state.asked.script is not None else destination.name
    write_file(destination, markdown_report(state, name).encode(), 0o644, force=force)
    return destination


def _start(script: Path | None) -> str:
    """The command that starts a run; "" where there is no script."""
    if script is None:
        return ""
    runner = {".sh": "bash", ".bash": "bash", ".slurm": "sbatch", ".sbatch": "sbatch"}.get(script.suffix, "")
    return f"{runner} {script}".strip()
