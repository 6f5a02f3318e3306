"""The start of the app: the first frame waits for nothing that it does not show."""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from advisor import collector, start
from advisor.cli import main
from advisor.commands import app_parser
from advisor.config import read_config
from advisor.demo import demo_files
from advisor.session import ChosenSet
from advisor.session_store import kept
from advisor.tui import first_frame, terminal
from advisor.tui.driver import SessionDriver
from tests.benchmarks import app_speed

DEMO = demo_files()
LATE = {
    "textual",
    "rich",
    "advisor.session",
    "advisor.plan",
    "advisor.memory",
    "advisor.diagnosis",
    "tree_sitter",
    "yaml",
}


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def parsed(*words: str) -> argparse.Namespace:
    return app_parser().parse_args(list(words))


def test_the_first_frame_loads_nothing_of_the_session_nor_what_draws_screens() -> None:
    code = "import advisor.start, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(json.loads(done.stdout)) & LATE == set()


def test_the_verdict_is_written_before_the_app_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(first_frame, "_write", written.append)
    monkeypatch.setattr(first_frame.os, "get_terminal_size", lambda *_: os.terminal_size((80, 24)))
    monkeypatch.setattr(start, "app_for", lambda *given: (len(written), given[-1]))
    before, ends = start._loaded(parsed("--demo"), read_config())  # type: ignore[misc]
    assert ends.signature == "ray-memory-kill"
    assert len(written) == before, "the app takes over from it: nothing is put back in between"
    assert "reading train.log" in written[1]
    assert "Host RAM ran out during the actor update." in written[-1]
    assert all(len(line) <= 80 for line in re.sub(r"\x1b\[[\d?]*[a-zA-Z]", "", written[-1]).split("\r\n"))


def test_the_first_frame_puts_the_terminal_back_where_no_app_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(first_frame, "_write", written.append)
    handlers = {number: signal.getsignal(number) for number in terminal.ENDING_SIGNALS}
    try:
        for end in (lambda: signal.raise_signal(signal.SIGTERM), lambda: sys.exit(143)):
            with pytest.raises(SystemExit) as left, first_frame.first_frame(plain_ascii=False):
                end()
            assert left.value.code == 143
            assert "\x1b[?1049l" in written[-1]
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def test_the_start_leaves_no_trace_in_the_process() -> None:
    """No module is hidden from others, and the collector works as Python set it up."""
    code = (
        "import gc, sys; before = gc.get_threshold()\n"
        "from advisor.commands import app_parser; from advisor.config import read_config; from advisor import start\n"
        "start.app_for(app_parser().parse_args(['--demo']), read_config())\n"
        "import argparse, asyncio.sslproto, gettext\n"
        "assert asyncio.sslproto.ssl is not None and argparse._ is gettext.gettext\n"
        "assert gc.isenabled() and gc.get_freeze_count() == 0 and gc.get_threshold() == before\n"
        "assert [name for name, module in sys.modules.items() if module is None] == []"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_session_on_real_files_is_kept_and_one_without_is_not() -> None:
    state = start._driver(parsed(str(DEMO.script), "--log", str(DEMO.log)), None).open(lambda _: None)
    keep = start._keeper()
    ui = start.app_for(parsed(), read_config()).ui
    ui.switched, ui.stage, ui.question, ui.cursors = {"a-step": True}, "plan", 3, {"plan": "a-step"}
    keep(state, ui)
    ui.switched, ui.stage, ui.question = {"a-step": False}, "save", 0
    ui.sets = {"no offload": ChosenSet(("a-step",), {"a-step": "4"})}
    keep(state, ui)
    path, saved = next(kept())
    assert (saved.asked.script, saved.switched, saved.stage) == (DEMO.script, {"a-step": False}, "save")
    assert saved.sets == {"no offload": ChosenSet(("a-step",), {"a-step": "4"})}
    ui = start.app_for(parsed("--resume="), read_config()).ui
    assert (ui.sets, ui.resumed, ui.cursors) == (saved.sets, f"taken up: {DEMO.script}", {"plan": "a-step"})
    path.unlink()
    nothing = start._driver(parsed(), None).open(lambda _: None)
    start._keeper()(nothing, ui)
    assert not [*kept()]


def test_a_command_called_from_python_leaves_the_collector_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.get_threshold(), gc.isenabled()
    assert main(["explain", "rollout.memory_share"]) == 0
    assert (gc.get_threshold(), gc.isenabled()) == before


def test_pasted_text_is_kept_for_the_user_alone() -> None:
    path = start._pasted("CUDA out of memory\n")
    assert path.read_text() == "CUDA out of memory\n"
    assert path.stat().st_mode & 0o077 == 0


def test_chosen_files_and_the_machine_as_it_was_described_go_together() -> None:
    driver = start._files(parsed("--gpus", "8xA100-40GB"), DEMO.script, (DEMO.log,))
    assert isinstance(driver, SessionDriver)
    assert (driver.asked.script, driver.asked.logs, driver.asked.gpus) == (DEMO.script, (DEMO.log,), "8xA100-40GB")


def test_the_start_is_far_from_slow() -> None:
    """Within ten times its budget, for a machine that tests is loaded (`tests.benchmarks.app_speed --budget`)."""
    taken = app_speed.budget(app_speed.environment_of_a_terminal(), 1)
    assert {name for name, seconds in taken.items() if seconds > 10 * app_speed.BUDGETS[name]} == set()


async def test_the_collector_is_put_off_until_the_session_is_open() -> None:
    before = gc.get_threshold()
    collector.put_off()
    try:
        assert gc.get_threshold() > before
        app = start.app_for(parsed("--demo"), read_config())
        async with app.run_test() as pilot:
            while app.ui.state is None:
                await pilot.pause(0.02)
            await pilot.pause()
            assert gc.get_threshold() == before
        assert gc.get_freeze_count() > 0
        collector.as_usual()
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
