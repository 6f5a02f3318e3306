"""Connects the app to the session: the one module of `tui` that calls below it.

Everything below is imported in the methods: the app calls them from a worker thread, when its first frame stands.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.language import mark, say

if TYPE_CHECKING:
    from advisor.crash.evidence import Crash
    from advisor.given import GivenName
    from advisor.plan.own_number import Fitting
    from advisor.plan.patch import Patch
    from advisor.saving import NewFiles
    from advisor.session import ChosenSet, SessionRequest, State


_OF_THE_DEMO = mark(
    "This was the demo: its data and configuration are not here, so what it wrote is to be read, not run. "
    "For a run of your own: {command}"
)


def expected_trouble() -> tuple[type[Exception], ...]:
    """What a driver may raise: one sentence for the user. Anything else is a bug and ends the app with a traceback."""
    from advisor.crash.sources import LogError
    from advisor.knowledge.load import KnowledgeError
    from advisor.script.document import EditRefused, ScriptError

    return (ScriptError, LogError, KnowledgeError, EditRefused, ValueError, OSError)


class Preview(Struct, frozen=True):
    """What saving would write. `diff` is a unified diff; empty: no step of the plan edits a file."""

    diff: str
    proof: tuple[str, ...] = ()
    """What was verified: "read back equal to the plan", "bash -n clean"."""
    destination: Path | None = None
    """Where it would be written; None: there is no script to write."""
    refused: str = ""
    """One sentence where the edit cannot be made exactly; `diff` is then empty."""
    by_hand: tuple[str, ...] = ()
    """Selected steps that no file edit carries out (versions, machines): one sentence each."""
    source: str = ""
    """The name of the file that changes."""
    launch: Path | None = None
    """The launch script that would be written too, because it has to name the new file."""
    launch_diff: str = ""
    """Its own unified diff."""
    report: Path | None = None
    """Where the report alone could be written when no file changes; None: it cannot."""


class Saved(Struct, frozen=True):
    """What was written, and the one command that comes next."""

    path: Path
    """The report itself, where nothing else was written."""
    report: Path
    next_command: str
    """"" where there is none to name."""
    by_hand: tuple[str, ...] = ()
    """What must be done by hand before it: one sentence each."""
    notes: tuple[str, ...] = ()
    """What is worth a word about the file: a link that was followed, attributes that were not copied."""
    launch: Path | None = None
    """The launch script that was written too, because it has to name the new file."""


def ends_of(logs: Sequence[Path], own: Sequence[Path], length: int = 0) -> Crash | None:
    """What the last `length` bytes of the logs prove (0: as many as are shown first). Loads only what reads logs.

    `own`: folders with the user's own knowledge. None where a log cannot be read twice.
    """
    from advisor.crash.read import read_ends
    from advisor.knowledge import open_knowledge

    knowledge = open_knowledge(own)
    return read_ends(logs, knowledge.signatures, *knowledge.phase_marks(), length=length)


def _planned(state: State) -> State:
    """The same, its plan made: in the thread that may take its time, not while a screen is drawn."""
    _ = state.plan
    return state


class SessionDriver(Struct, frozen=True):
    """A session on what was asked for. Each call gives a new State with its plan and may take seconds.

    Raises what `expected_trouble` names, one sentence for the user.
    """

    asked: SessionRequest
    is_demo: bool = False
    """The bundled crash lies in the program's own folder: its patch is written into a folder of the user's state."""
    switched: Mapping[str, bool] = field(default_factory=dict)
    """Steps to be switched once the plan is made: a session that is resumed."""
    numbers: Mapping[str, str] = field(default_factory=dict)
    """Step → the number that the user wrote for it."""

    @property
    def _of_demo(self) -> Path:
        from advisor.folders import state_folder

        return state_folder() / "demo"

    def ends(self) -> Crash | None:
        """What the ends of the logs prove; None without a log that can be read twice."""
        return ends_of(self.asked.logs, self.asked.knowledge) if self.asked.logs else None

    def open(
        self,
        notice: Callable[[str], None],
        early: Callable[[State], None] | None = None,
        ends: Crash | None = None,
    ) -> State:
        """Read and diagnose, telling `notice` what is being read; `early` gets a first State of what `ends` proves."""
        from advisor import session, session_store

        first = None if early is None else lambda state: early(_planned(state))
        state = session.open_session(self.asked, notice, first, ends)
        return _planned(session_store.with_switches(state, self.switched, self.numbers))

    def carry_over(self, before: State, now: State) -> State:
        """`now` with the answers and switches that the user made in `before`."""
        from advisor import session

        return _planned(session.carry_over(before, now))

    def answer(self, state: State, question: str, choice: str | None) -> State:
        from advisor import session

        return _planned(session.answer(state, question, choice))

    def toggle(self, state: State, step_id: str) -> State:
        from advisor import session

        return session.toggle(state, step_id)

    def say_otherwise(self, state: State, name: GivenName, text: str) -> State:
        """The session with one thing of run or machine said otherwise; "": it is not said any more."""
        from advisor import session
        from advisor.given import with_text

        framework = next((one for one in state.knowledge.frameworks if one.framework == state.run.framework), None)
        now = replace(state.asked, answers=dict(state.answers))
        asked = with_text(now, name, text, framework.package if framework is not None else "")
        return _planned(session.asked_otherwise(state, asked))

    def give_number(self, state: State, step_id: str, text: str) -> State:
        from advisor import session

        return session.give_number(state, step_id, text)

    def numbers_of(self, state: State, step_id: str) -> Fitting:
        from advisor import session

        return session.numbers_of(state, step_id)

    def chosen_set(self, state: State) -> ChosenSet:
        from advisor import session

        return session.chosen_set(state)

    def proposed_set(self, state: State) -> ChosenSet:
        """What the program itself would switch on."""
        from advisor import session

        return session.proposed_set(state)

    def with_set(self, state: State, chosen: ChosenSet) -> State:
        """The session with exactly these steps on, at these numbers."""
        from advisor import session

        return session.with_set(state, chosen)

    def page(self, state: State) -> str:
        from advisor.report.page_report import page_report

        return page_report(state, self.preview(state).diff)

    def preview(self, state: State) -> Preview:
        from advisor import session
        from advisor.plan.patch import fits_name, report_name
        from advisor.report.diff_report import diff_report

        patch, script = session.patch(state), state.asked.script
        if patch.refused or not patch.rewrites:
            beside = report_name(fits_name(script)) if script and patch.by_hand and not patch.refused else None
            alone = self._of_demo / beside.name if beside and self.is_demo else beside
            return Preview("", refused=patch.refused, by_hand=patch.by_hand, report=alone)
        made = self._new_files(state, patch)
        new = dict(made.files)
        launch = made.launch if made.launch != made.first else None
        launch_diff = diff_report((new.pop(launch),), [str(launch)]) if launch is not None else ""
        return Preview(
            diff_report([*new.values()], [*map(str, new)]),
            tuple(dict.fromkeys((*patch.proof, *made.proof))),
            made.first,
            by_hand=(*patch.by_hand, *([made.by_hand] if made.by_hand else [])),
            source=clean_line(patch.rewrites[0].document.path.name),
            launch=launch,
            launch_diff=launch_diff,
        )

    def _new_files(self, state: State, patch: Patch, output: str | None = None) -> NewFiles:
        from advisor.saving import named_for, new_files

        named = named_for(patch, state.asked.script, output, self._of_demo if self.is_demo else None)
        return new_files(state.asked.script, state.script, state.launch_index, patch.rewrites, named)

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        """Write script and report (`Preview.report` as the destination: the report alone).

        Raises FileExistsError where the destination exists and `force` is False.
        """
        from advisor import session
        from advisor.saved_fix import remember_fix
        from advisor.saving import next_command, save, save_report

        patch = session.patch(state)
        if self.is_demo and destination.parent == self._of_demo:
            destination.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            force = True  # an earlier demo's
        if not patch.rewrites:
            command = "" if patch.by_hand else next_command(state.asked.script)
            return Saved(destination, save_report(state, destination, force), command)
        made = self._new_files(state, patch, str(destination))
        report, notes = save(state, made, force)
        if self.is_demo:
            told = say(_OF_THE_DEMO, command="rl-oom-advisor run.sh --log train.log")
            read_it = f"cat {shlex.quote(str(report))}"
            return Saved(destination, report, read_it, notes=(*notes, told))
        launch = made.launch if made.launch != destination else None
        remember_fix(state, launch or destination)
        return Saved(destination, report, made.command, notes=notes, launch=launch)
