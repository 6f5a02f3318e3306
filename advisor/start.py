"""The start of the guided app, in the order that shows the verdict soonest.

A child glances at the logs while this process loads the screens; the session and everything below it is loaded only
when the first frame stands.
"""

from __future__ import annotations

import argparse
import gc
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from advisor.config import read_config
from advisor.glance import Looking, Sight
from advisor.imports import without

if TYPE_CHECKING:
    from collections.abc import Callable

    from advisor.recent import Recent
    from advisor.session import State
    from advisor.tui.driver import Driver, Early, Notice, Preview, Saved


class LateDriver(Struct):
    """A driver that is made when it is first asked for something."""

    make: Callable[[], Driver]
    _made: Driver | None = None

    @property
    def driver(self) -> Driver:
        """The driver itself."""
        if self._made is None:
            self._made = self.make()
        return self._made

    def open(self, notice: Notice, early: Early | None = None) -> State:
        """Read what was asked for and diagnose it."""
        return self.driver.open(notice, early)

    def carry_over(self, before: State, now: State) -> State:
        """`now` with what the user did in `before`."""
        return self.driver.carry_over(before, now)

    def answer(self, state: State, question: str, choice: str | None) -> State:
        """Answer one question."""
        return self.driver.answer(state, question, choice)

    def toggle(self, state: State, step_id: str) -> State:
        """Switch one step."""
        return self.driver.toggle(state, step_id)

    def preview(self, state: State) -> Preview:
        """The patch of the selected steps."""
        return self.driver.preview(state)

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        """Write script and report."""
        return self.driver.save(state, destination, force)


class LateGauges:
    """Gauges that are loaded with their first reading."""

    def __init__(self) -> None:
        self._gauges: Any = None

    def poll(self, now: float) -> Any:
        """The gauges at `now`."""
        if self._gauges is None:
            from advisor.machine.live import Gauges

            self._gauges = Gauges()
        return self._gauges.poll(now)


class LateCluster:
    """The nodes of a Ray cluster, loaded with the first look at them."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._gauges: Any = None

    def look(self) -> Any:
        """The nodes as last told."""
        if self._gauges is None:
            from advisor.machine.cluster.live import ClusterGauges

            self._gauges = ClusterGauges(self.address)
        return self._gauges.look()


def run(parsed: argparse.Namespace) -> int:
    """Open the app; the caller has made sure that there is a terminal. Raises Refusal for unusable arguments."""
    gc.disable()  # nothing made while loading is garbage; the app turns it on again
    config = read_config()
    resumed = _resumed(parsed)
    looking = Looking(_sight(parsed))
    with without("ssl"):  # asyncio would load OpenSSL
        from advisor.tui.door import Door, run_app

    door = Door(
        driver=LateDriver(partial(_driver, parsed, resumed)),
        gauges=LateGauges(),
        no_color=parsed.no_color or bool(os.environ.get("NO_COLOR")),
        plain_ascii=parsed.ascii or config.ascii,
        glancing=looking.result if looking.is_looking else None,
        demo=partial(_demo, parsed),
        files=partial(_files, parsed),
        recent=_recent,
        pasted=_pasted,
        keeper=_keeper(),
        resume=_place(resumed),
        cluster=_cluster(parsed, resumed),
    )
    return run_app(door, config)


def _cluster(parsed: argparse.Namespace, resumed: Any) -> LateCluster | None:
    """The Ray cluster that was named, also before the last sitting was left."""
    address = resumed.asked.ray if resumed is not None else parsed.ray
    return LateCluster(address) if address else None


def _sight(parsed: argparse.Namespace) -> Sight:
    """What to glance at: nothing where the logs stand elsewhere than on the command line."""
    if parsed.demo or parsed.resume is not None or parsed.record is not None:
        return Sight(())
    return Sight(
        tuple(Path(log) for log in parsed.log),
        tuple(Path(folder) for folder in parsed.knowledge),
        parsed.gpus,
        parsed.nodes,
        parsed.host_ram,
    )


def _driver(parsed: argparse.Namespace, resumed: Any) -> Driver:
    from advisor.commands.asking import asked_from
    from advisor.guided import SessionDriver

    if resumed is not None:
        return SessionDriver(resumed.asked, resumed.demo, resumed.switched)
    return SessionDriver(asked_from(parsed), parsed.demo)


def _demo(parsed: argparse.Namespace) -> Driver:
    return _driver(argparse.Namespace(**{**vars(parsed), "demo": True}), None)


def _files(parsed: argparse.Namespace, script: Path | None, logs: tuple[Path, ...]) -> Driver:
    chosen = {"script": script and str(script), "log": [str(log) for log in logs], "demo": False}
    return _driver(argparse.Namespace(**{**vars(parsed), **chosen}), None)


def _recent() -> Recent:
    from advisor.recent import recent_in

    return recent_in(Path.cwd())


def _pasted(text: str) -> Path:
    """Keep pasted text under the state folder, for the user alone. Raises OSError."""
    import time

    from advisor.script.write import write_file
    from advisor.session_store import state_folder

    path = state_folder() / f"pasted-{time.strftime('%Y%m%d-%H%M%S')}.log"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, text.encode("utf-8", "replace"), 0o600, force=True)
    return path


def _keeper() -> Callable[[State, Any, str, int], None]:
    """Keeps the sitting of this process in one file. The demo and a sitting without files are not worth keeping."""
    places: list[Path] = []

    def keep(state: State, switched: Any, stage: str, question: int) -> None:
        from advisor import session_store

        if (state.asked.script is None and not state.asked.logs) or any(str(log) == "-" for log in state.asked.logs):
            return
        if not places:
            places.append(session_store.new_file())
        saved = session_store.SavedSession(session_store.current_request(state), switched, stage, question)
        session_store.save(places[0], saved)

    return keep


def _resumed(parsed: argparse.Namespace) -> Any:
    if parsed.resume is None:
        return None
    from advisor.commands.asking import kept_sitting

    return kept_sitting(parsed.resume)


def _place(resumed: Any) -> tuple[Any, int] | None:
    return (resumed.stage, resumed.question) if resumed is not None and resumed.stage else None
