"""Opens the guided app on what the command line asks for, and leaves the terminal as it was.

What the first frame shows is read and written before the app is imported; the session is loaded by the thread that
opens it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.commands.inputs import sort_files
from advisor.config import Config, read_config
from advisor.demo import demo_files, is_bundled
from advisor.hostile import clean_line
from advisor.language import say
from advisor.tui.breadcrumb import STAGE_TITLES
from advisor.tui.driver import SessionDriver, ends_of
from advisor.tui.first_frame import first_frame
from advisor.tui.terminal import draws_signs, takes_mouse, theme_of

if TYPE_CHECKING:
    from advisor.crash.evidence import Crash
    from advisor.recent import Recent
    from advisor.saved_fix import SavedFix
    from advisor.state import State
    from advisor.tui.app import AdvisorApp
    from advisor.tui.ui_state import SessionKeeper, UiState


LOOKED_AT = 1 << 20
"""Bytes of each log's end by which the list of runs tells how it ended."""
MOST_AT_ONCE = 4
"""Logs of which the ends are read before the app is imported; of more, and of folders, the app itself reads them."""


def run(parsed: argparse.Namespace) -> int:
    """Run the app until the user leaves. Returns 0, or 2 where the input could not be read (said on stderr). The caller
    has made sure that there is a terminal. After saving, the next command is printed where it can be copied. Raises
    Refusal for unusable arguments, and what was a bug of ours after the terminal is as it was."""
    config = read_config()
    if parsed.no_color:
        os.environ["NO_COLOR"] = "1"  # Textual decides while the app is built
    for name in ("COLUMNS", "LINES"):  # what a shell exported once must not hold against the terminal's own size
        os.environ.pop(name, None)
    app = _loaded(parsed, config)
    app.run(mouse=takes_mouse(config.mouse))
    if app.fault is not None:
        raise app.fault
    for sentence in (*config.problems, *([app.trouble] if app.trouble else [])):
        print(f"rl-oom-advisor: {sentence}", file=sys.stderr)
    saved = app.ui.saved
    if saved is not None:
        from advisor.tui.save_view import last_words

        print(last_words(saved))
    elif app.kept and not app.return_code:
        print(say("left at {stage}; rl-oom-advisor --resume returns there", stage=STAGE_TITLES[app.ui.stage]))
    return app.return_code or 0


def _loaded(parsed: argparse.Namespace, config: Config) -> AdvisorApp:
    """The app, behind a frame that shows how the logs end. Raises Refusal for unusable arguments."""
    sort_files(parsed)
    logs = _named_logs(parsed)
    with first_frame(_plain_ascii(parsed, config)) as draw:
        draw(say("reading {file}", file=clean_line(logs[0].name)) if logs else say("reading …"), None)
        ends = None
        if logs:
            with suppress(Exception):  # the app meets it again, and says it
                ends = ends_of(logs, _own(parsed))
        if ends is not None:
            draw(say("reading …"), ends)
        return app_for(parsed, config, ends)


def _named_logs(parsed: argparse.Namespace) -> tuple[Path, ...]:
    """The logs that can be read at once: a few plain files, and no others beside them."""
    logs = (demo_files().log,) if parsed.demo else tuple(map(Path, parsed.log))
    known = parsed.resume is None and not parsed.record and len(logs) <= MOST_AT_ONCE
    return logs if known and all(log.is_file() for log in logs) else ()


def _own(parsed: argparse.Namespace) -> tuple[Path, ...]:
    return tuple(map(Path, parsed.knowledge))


def _plain_ascii(parsed: argparse.Namespace, config: Config) -> bool:
    return bool(parsed.ascii) or config.ascii or not draws_signs()


def app_for(parsed: argparse.Namespace, config: Config, ends: Crash | None = None) -> AdvisorApp:
    """The app, as arguments and configuration ask for it. `ends`: what the ends of the logs prove, once read. Raises
    Refusal for unusable arguments."""
    from advisor.machine.live import Gauges
    from advisor.tui.app import AdvisorApp
    from advisor.tui.ui_state import Offers

    resumed = _resumed(parsed)
    sort_files(parsed)
    app = AdvisorApp(
        partial(_driver, parsed, resumed),
        Gauges(),
        no_color=bool(os.environ.get("NO_COLOR")),
        plain_ascii=_plain_ascii(parsed, config),
        offers=Offers(
            partial(_demo, parsed),
            partial(_files, parsed),
            partial(_recent, parsed.folder),
            lambda log: ends_of((log,), _own(parsed), LOOKED_AT),
            _pasted,
            None if parsed.demo or parsed.record else _written,
        ),
        keymap=config.keys,
        keeper=_keeper(),
        theme=theme_of(config.theme),
        refresh=config.refresh,
        resume=(resumed.stage, resumed.question) if resumed is not None else None,
    )
    app.ui.ends = ends
    if resumed is not None:
        app.ui.sets, app.ui.cursors = dict(resumed.sets), dict(resumed.cursors)
        app.ui.resumed = say("taken up: {run}", run=clean_line(resumed.run))
    if address := resumed.asked.ray if resumed is not None else parsed.ray:
        from advisor.machine.cluster.live import ClusterGauges

        app.ui.cluster = ClusterGauges(address)
    return app


def _driver(parsed: argparse.Namespace, resumed: Any) -> SessionDriver:
    from advisor.commands.requests import asked_from

    if resumed is not None:
        return SessionDriver(resumed.asked, is_bundled(resumed.asked.script), resumed.switched, resumed.numbers)
    return SessionDriver(asked_from(parsed), parsed.demo)


def _demo(parsed: argparse.Namespace) -> SessionDriver:
    return _driver(argparse.Namespace(**{**vars(parsed), "demo": True}), None)


def _files(parsed: argparse.Namespace, script: Path | None, logs: tuple[Path, ...]) -> SessionDriver:
    chosen = {"script": script and str(script), "log": [str(log) for log in logs], "demo": False}
    return _driver(argparse.Namespace(**{**vars(parsed), **chosen}), None)


def _recent(folder: str | None) -> Recent:
    from advisor.recent import recent_in

    return recent_in(Path(folder) if folder else Path.cwd())


def _pasted(text: str) -> Path:
    """Keep pasted text under the state folder, for the user alone. Raises OSError."""
    from advisor.session_store import keep_private

    return keep_private(f"pasted-{time.strftime('%Y%m%d-%H%M%S')}.log", text)


def _written(state: State) -> SavedFix | None:
    """The fix that was written in the run's own folder: another folder's, or one that is newer than its log, says
    nothing of this run."""
    from advisor.session_store import fixes_folder

    if not fixes_folder().is_dir():
        return None
    from advisor.saved_fix import waiting_fix
    from advisor.watch.record_files import OUTPUT

    script, record = state.asked.script, state.asked.record
    logs = state.asked.logs if record is None else (*state.asked.logs, record / OUTPUT)
    return waiting_fix({script.parent} if script is not None else {log.parent for log in logs}, logs)


def _keeper() -> SessionKeeper:
    """Keeps the session of this process in one file; one without files is not worth keeping."""
    places: list[Path] = []
    folder = str(Path.cwd())

    def keep(state: State, ui: UiState) -> bool:
        from advisor import session_store
        from advisor.session import chosen_set
        from advisor.tui.ui_state import nothing_given

        if nothing_given(state) or any(str(log) == "-" for log in state.asked.logs):
            return False
        if not places:
            places.append(session_store.new_file())
        request, numbers = session_store.current_request(state), chosen_set(state).numbers
        saved = session_store.SavedSession(
            request, ui.switched, ui.stage, ui.question, numbers, ui.sets, ui.cursors, folder
        )
        session_store.save(places[0], saved)
        return True

    return keep


def _resumed(parsed: argparse.Namespace) -> Any:
    if parsed.resume is None:
        return None
    from advisor.commands.sessions import kept_session

    return kept_session(parsed.resume)
