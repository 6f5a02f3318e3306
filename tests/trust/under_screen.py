"""Runs the app and a watched command inside GNU screen and tmux, and sees that both show, answer and leave as bare.

    python -m tests.trust.under_screen

Needs screen or tmux, whichever is there. Prints for each what did not hold.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

ADVISOR = f"{sys.executable} -m advisor"
PATIENCE_S = 20.0


class Multiplexer(Protocol):
    """A terminal inside another: text is typed into it, and its picture is taken."""

    def begin(self, folder: Path) -> None: ...
    def type(self, text: str) -> None: ...
    def picture(self) -> str: ...
    def end(self) -> None: ...


class Screen:
    """GNU screen as it comes: without a second page."""

    def begin(self, folder: Path) -> None:
        self.folder = folder
        os.environ["SCREENDIR"] = str(folder / "sockets")
        (folder / "sockets").mkdir(mode=0o700)
        subprocess.run(["screen", "-U", "-dmS", "advisor", "bash", "--norc"], cwd=folder, check=True)

    def _tell(self, *words: str) -> None:
        subprocess.run(["screen", "-S", "advisor", "-X", *words], check=True)

    def type(self, text: str) -> None:
        self._tell("stuff", text.replace("$", r"\$"))  # which it would replace

    def picture(self) -> str:
        self._tell("hardcopy", str(self.folder / "picture"))
        time.sleep(0.1)
        return (self.folder / "picture").read_text(errors="replace")

    def end(self) -> None:
        self._tell("quit")


class Tmux:
    """tmux, with a server of its own."""

    def begin(self, folder: Path) -> None:
        self.server = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        subprocess.run(
            [*self.server, "-u", "new-session", "-d", "-x", "80", "-y", "24", "bash --norc"], cwd=folder, check=True
        )

    def type(self, text: str) -> None:
        subprocess.run([*self.server, "send-keys", "-l", text], check=True)

    def picture(self) -> str:
        return subprocess.run([*self.server, "capture-pane", "-p"], check=True, capture_output=True, text=True).stdout

    def end(self) -> None:
        subprocess.run([*self.server, "kill-server"], check=True)


def shows(inside: Multiplexer, words: str, whether: bool = True) -> list[str]:
    """Wait until a picture has these words, or has them no more; what did not hold."""
    until, picture = time.monotonic() + PATIENCE_S, ""
    while time.monotonic() < until:
        picture = inside.picture()
        if (words in picture) is whether:
            return []
        time.sleep(0.2)
    return [f"{words!r} {'never came' if whether else 'stays'}:\n{picture}"]


def problems(inside: Multiplexer, folder: Path) -> list[str]:
    """What does not hold inside of it."""
    found: list[str] = []
    for typed, shown in (
        ('PS1="READY"; stty -a > before; clear\n', "READY"),
        (f"{ADVISOR} --demo\n", "What the script decides"),
        ("?", "Keys everywhere"),
        ("\x1b", "What the script decides"),
        ("\x1a", "Stopped"),  # the shell gets its terminal back, and the app goes on as it was
        ("fg\n", "What the script decides"),
    ):
        inside.type(typed)
        found += shows(inside, shown)
    inside.type("q")
    found += shows(inside, "What the script decides", whether=False) + shows(inside, "READY")
    inside.type("stty -a > after; clear\n")
    inside.type(f"{ADVISOR} watch -o record -- bash -c 'read -p name: x; echo got-$x; exit 3'; echo code-$?\n")
    found += shows(inside, "name:")
    inside.type("abc\n")
    found += shows(inside, "got-abc") + shows(inside, "code-3")
    inside.type("stty -a > last; clear\n")
    found += shows(inside, "READY")
    time.sleep(0.5)
    modes = {name: (folder / name).read_text() for name in ("before", "after", "last")}
    return found + [f"stty is another {name} it" for name in ("after", "last") if modes[name] != modes["before"]]


def main() -> int:
    """Both, as far as they are here; the number of problems."""
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    os.environ |= {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    count = 0
    for name, made in {"screen": Screen(), "tmux": Tmux()}.items():
        if shutil.which(name) is None:
            print(f"{name}: not here")
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.environ |= {"XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}
            made.begin(Path(folder))
            try:
                found = problems(made, Path(folder))
            finally:
                made.end()
        count += len(found)
        print(f"{name}: {len(found)} did not hold", *found, sep="\n  ")
    return count


if __name__ == "__main__":
    sys.exit(main() > 0)
