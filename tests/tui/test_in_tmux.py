"""The installed program in a real terminal: one whole case at 80×24, under the names that terminals go by."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).parent / "rl-oom-advisor"
RUNS = Path(__file__).parent.parent / "runs"
pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
    pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed beside this Python"),
]
PATIENCE = 20.0


class Terminal:
    """A tmux server of its own with one pane of 80×24."""

    def __init__(self, folder: Path, term: str) -> None:
        self.folder, self.term = folder, term
        self.socket = str(folder / "tmux")

    def tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-S", self.socket, *words], capture_output=True, text=True, timeout=20)
        return done.stdout

    def start(self, command: str, **more: str) -> None:
        own = {
            "TERM": self.term,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder),
            **more,
        }
        words = " ".join(f"{name}='{value}'" for name, value in own.items())
        shell = f"cd '{self.folder}/case'; env -u NO_COLOR {words} {command}; echo ended $?; sleep 60"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", shell)

    def shown(self, escapes: bool = False) -> str:
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))

    def until(self, words: str) -> str:
        """The pane once `words` stand in it."""
        end = time.monotonic() + PATIENCE
        while words not in (text := self.shown()):
            assert time.monotonic() < end, f"{words!r} never came:\n{text}"
            time.sleep(0.05)
        return text

    def keys(self, *names: str) -> None:
        self.tmux("send-keys", *names)


@pytest.fixture
def terminal(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Terminal]:
    shutil.copytree(RUNS / "easyr1", tmp_path / "case", ignore=shutil.ignore_patterns("expected*"))
    one = Terminal(tmp_path, request.param)
    yield one
    one.tmux("kill-server")


VERDICT = "What the script decides"
COMMAND = f"'{PROGRAM}' qwen2_5_vl_7b.sh --log train.log --gpus 8xA100-40GB --host-ram 760GB"


@pytest.mark.parametrize("terminal", ["xterm-256color"], indirect=True)
def test_a_case_from_the_verdict_to_the_saved_script(terminal: Terminal) -> None:
    terminal.start(COMMAND)
    terminal.until(VERDICT)
    assert "Host RAM ran out during the actor update." in terminal.shown().splitlines()[1]
    terminal.keys("o")
    assert "n next mark" in terminal.until("E ray.exceptions.OutOfMemoryError")
    terminal.keys("Escape")
    terminal.until(VERDICT)
    terminal.keys("Enter")
    assert "[x] worker.actor.offload" in terminal.until("space toggle")
    terminal.keys("Enter")
    terminal.until("enter write")
    terminal.keys("Enter")
    terminal.until("Written.")
    terminal.keys("q")
    assert "next     bash" in terminal.until("ended 0")
    assert (terminal.folder / "case" / "qwen2_5_vl_7b.fits.sh").exists()


@pytest.mark.parametrize(
    ("terminal", "more", "codes"),
    [
        ("screen-256color", {}, "38;5;"),
        ("linux", {}, ""),
        ("xterm-256color", {"NO_COLOR": "1"}, ""),
    ],
    indirect=["terminal"],
)
def test_other_terminals_get_what_they_can_show(terminal: Terminal, more: dict[str, str], codes: str) -> None:
    terminal.start(COMMAND, **more)
    terminal.until(VERDICT)
    raw = terminal.shown(escapes=True)
    if terminal.term == "linux":
        assert terminal.shown().isascii()
        assert "38;5;" not in raw
    if "NO_COLOR" in more:
        assert not any(f"[{code}m" in raw or f";{code}m" in raw for code in range(30, 48) if code not in (39, 47))
        assert "38;" not in raw
    assert codes in raw
    terminal.keys("C-c")
    terminal.until("ended 0")


@pytest.mark.parametrize("terminal", ["xterm-256color"], indirect=True)
def test_resizing_and_taking_up_the_sitting_after_the_connection_dropped(terminal: Terminal) -> None:
    terminal.start(COMMAND, COLUMNS="80", LINES="24")  # as some shells export them
    terminal.until(VERDICT)
    terminal.keys("r")
    terminal.until("by the log, line")
    terminal.keys("Down")
    terminal.keys("Enter")
    terminal.until("Questions 2/5")
    terminal.tmux("resize-window", "-x", "50", "-y", "12")
    terminal.until("This terminal is 50×12")
    terminal.tmux("resize-window", "-x", "80", "-y", "24")
    terminal.until("Questions 2/5")
    terminal.tmux("kill-server")
    terminal.socket += "-again"  # the old server may still be ending
    terminal.start(f"'{PROGRAM}' --resume")
    terminal.until("Questions 2/5")
    terminal.keys("q")
    terminal.until("ended 0")


@pytest.mark.parametrize("terminal", ["dumb"], indirect=True)
def test_a_dumb_terminal_gets_the_report_as_text(terminal: Terminal) -> None:
    terminal.start(f"{COMMAND} | head -3")
    assert "Host RAM ran out during the actor update." in terminal.until("ended 0")
    assert os.fspath(terminal.folder / "state" / "rl-oom-advisor") not in terminal.shown()


@pytest.mark.parametrize("terminal", ["xterm-256color"], indirect=True)
def test_quitting_says_how_to_return(terminal: Terminal) -> None:
    terminal.start(COMMAND)
    terminal.until(VERDICT)
    terminal.keys("Enter")
    terminal.until("space toggle")
    terminal.keys("q")
    assert "left at Plan; rl-oom-advisor --resume returns there" in terminal.until("ended 0")
