"""A bug of ours, wherever it strikes: the terminal is as it was, what happened is kept, the rest still works."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from advisor import __version__
from advisor.bug_report import without_home, write_bug_report
from advisor.cli import main
from advisor.demo import demo_files
from tests.heavy import sampled

from .pseudo_terminal import PseudoTerminal

ROOT = Path(__file__).parents[2]
SECRET = "hf_abcdefghijklmnopqrstuvwx"
FILES = [str(demo_files().script), "--log", str(demo_files().log)]
RAISES = f"raise RuntimeError('a bug, HF_TOKEN={SECRET}, \\x1b]52;c;AAAA\\x07')"
BROKEN = """
import sys
{imports}
def bug(*given, **named):
    {raises}
async def late_bug(*given, **named):
    {raises}
{place} = {which}
from advisor.cli import main
sys.exit(main(sys.argv[1:]))
"""
PLACES = {
    "while a screen is laid out": ("from advisor.tui import verdict", "verdict.VerdictScreen.panes", ""),
    "at a key": ("from advisor.tui import app", "app.AdvisorApp.action_look", "?"),
    "in the thread that opens": ("from advisor.tui import driver", "driver.SessionDriver.open", ""),
    "in the gauges": ("from advisor.machine import live", "live.Gauges.poll", ""),
    "when a question is answered": ("from advisor.tui import driver", "driver.SessionDriver.answer", "r\r12"),
    "before the app": ("from advisor.tui import app", "app.AdvisorApp", ""),
    "while the app is taken down": ("from advisor.tui import app", "app.AdvisorApp.on_unmount", "q"),
    "after the app": ("from advisor import start; run = start.run", "start.run", "q"),
}
"""Where the bug strikes → (what to import, what is broken, the keys that lead there)."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., PseudoTerminal]]:
    opened = []

    def begin(code: str, *words: str, **more: str) -> PseudoTerminal:
        kept = {"TMPDIR": tmp_path / "kept", "XDG_STATE_HOME": tmp_path, "XDG_CONFIG_HOME": tmp_path}
        (tmp_path / "kept").mkdir()
        environ = {**os.environ, **{name: str(path) for name, path in kept.items()}, "TERM": "xterm-256color"}
        environ.pop("NO_COLOR", None)
        command = ["sh", "-c", 'ulimit -v 524288; exec "$0" "$@"', sys.executable, "-c", code, *words]
        opened.append(PseudoTerminal(command, tmp_path, {**environ, "PYTHONPATH": str(ROOT), **more}))
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()


def broken(place: str) -> str:
    imports, name, _ = PLACES[place]
    raises = f"run(*given); {RAISES}" if place == "after the app" else RAISES
    which = "late_bug" if name.endswith("on_unmount") else "bug"
    return BROKEN.format(imports=imports, place=name, raises=raises, which=which)


@pytest.mark.parametrize("place", sampled(PLACES, (0, 2, 5)))
def test_a_bug_restores_the_terminal_and_is_kept(place, start, tmp_path):
    terminal = start(broken(place), *FILES)
    keys = PLACES[place][2]
    if keys:
        terminal.until("What the script decides")
    for key in keys:
        if key == "1":
            terminal.until("1-9 ")
        terminal.keys(key.encode())
    assert terminal.ended() == 1
    assert terminal.left_changed() == []
    last = terminal.text.rstrip().splitlines()[-2:]
    assert "this is a fault of the program, not of your files (RuntimeError: a bug" in last[0]
    assert "tells the same without the app" in last[1]
    assert SECRET not in terminal.text
    (file,) = (tmp_path / "kept").glob("rl-oom-advisor-*.txt")
    assert str(file) in last[0]
    told = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "RuntimeError: a bug" in told
    assert SECRET not in told
    assert "\x1b" not in told


def test_the_kept_file_says_what_a_maintainer_asks_for(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", "/home/ana")
    sentence = write_bug_report(KeyError("x" * 9000), ["/home/ana/run.sh", "--answer", f"token={SECRET}"])
    (file,) = tmp_path.glob("*.txt")
    told = file.read_text()
    for words in (f"rl-oom-advisor: {__version__}", "Python: ", "system: Linux", "textual 8", "msgspec ", "terminal: "):
        assert words in told
    assert "called with: ~/run.sh --answer token=***" in told
    assert str(file) in sentence
    assert len(sentence) < 600


def test_a_folder_for_what_is_kept_that_is_full_changes_nothing_else(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    assert write_bug_report(KeyError("x"), []) == "this is a fault of the program, not of your files (KeyError: 'x')"


def test_only_the_home_folder_itself_is_shortened(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ana")
    assert without_home("/home/ana/x /home/anastasia/x /home/ana") == "~/x /home/anastasia/x ~"
    monkeypatch.setenv("HOME", "/")
    assert without_home("/x/y") == "/x/y"


def test_the_headless_command_works_while_the_app_does_not(tmp_path):
    code = "import sys; sys.modules['textual'] = sys.modules['rich'] = None\nfrom advisor.cli import main\n"
    code += "sys.exit(main(['diagnose', '--demo']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0
    assert "Host RAM ran out" in done.stdout


def test_a_bug_of_a_command_ends_with_one_and_a_sentence(monkeypatch, capsys, tmp_path):
    def bug(*_: object) -> None:
        raise ZeroDivisionError(f"a bug, token={SECRET}")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("advisor.machine.measure.measure", bug)
    assert main(["machine"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"rl-oom-advisor: this is a fault of the program.*\n", err)
    assert SECRET not in err


def test_too_little_memory_is_no_fault_of_the_program(monkeypatch, capsys):
    def bug(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("advisor.machine.measure.measure", bug)
    assert main(["machine"]) == 1
    assert "too little memory here" in capsys.readouterr().err


NOTHING = {"HOME": "/proc/nowhere", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}


@pytest.mark.parametrize("locale", sampled(["zh_CN.GBK", "C"], 1))
def test_the_app_opens_without_home_and_locale_in_half_a_gigabyte(locale, start):
    plain = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}
    terminal = start(WHOLE, *FILES, **NOTHING, **plain)
    terminal.until("What the script decides")
    terminal.keys(b"g")
    terminal.until("Host")
    terminal.keys(b"q")
    assert terminal.ended() == 0
    assert terminal.left_changed() == []
    assert terminal.text.isascii()


WHOLE = "import sys\nfrom advisor.cli import main\nsys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize(
    "name",
    sampled(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU"], 1),
)
def test_an_end_from_outside_restores_the_terminal(name, start):
    terminal = start(WHOLE)
    terminal.until("Which run died?")
    os.kill(terminal.process.pid, getattr(signal, name))
    code = terminal.ended()
    assert terminal.left_changed() == []
    assert code == 128 + getattr(signal, name)
    nothing_stays_on(terminal)


def nothing_stays_on(terminal: PseudoTerminal) -> None:
    """What was drawn last on the only page of a terminal without a second one is an empty screen."""
    drawn = terminal.written[: terminal.written.rindex(b"\x1b[?1049l")]
    assert re.sub(rb"\x1b\[[\x20-\x3f]*[\x40-\x7e]", b"", drawn[drawn.rindex(b"\x1b[2J") :]) == b""


def test_a_terminal_that_is_closed_ends_the_app(start):
    terminal = start(WHOLE)
    terminal.until("Which run died?")
    terminal.hang_up()
    assert terminal.process.wait(30) == 128 + signal.SIGHUP


def test_a_driver_that_hangs_does_not_keep_the_user_and_nothing_of_the_app_stays_on_the_terminal(start):
    code = "from advisor.machine import live\ndef bug(*given):\n    import time\n    time.sleep(60)\n"
    terminal = start(f"{code}live.Gauges.poll = bug\n{WHOLE}")
    terminal.until("Which run died?")
    begun = time.monotonic()
    terminal.keys(b"q")
    assert terminal.ended() == 0
    assert time.monotonic() - begun < 10
    assert terminal.left_changed() == []
    nothing_stays_on(terminal)
