"""Knows what the terminal can show, and copies text to its clipboard (OSC 52) and to a file, since it cannot answer."""

from __future__ import annotations

import base64
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from advisor.language import mark, say

_LIGHT_BACKGROUNDS = {"7", "15"}
_SIXTEEN = ("linux", "screen", "ansi", "vt", "cons", "xterm-color", "xterm-16color")

ENDING_SIGNALS = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU),  # what Slurm's --signal and limits send
)
"""Signals that end a program that does not handle them, but for that of a terminal that goes."""


def draws_signs() -> bool:
    """Whether the terminal has more than ASCII: the Linux console's font lacks most signs, other encodings all."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return encoding == "utf8" and os.environ.get("TERM") != "linux"


def has_terminal() -> bool:
    """Whether the terminal still answers: a window that was closed does not."""
    try:
        os.get_terminal_size(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
    except OSError:
        return False
    return True


def theme_of(chosen: str, environ: Mapping[str, str] | None = None) -> str:
    """The theme to start with: as chosen; else the terminal's own colours where it has sixteen, light where it says so.

    "" leaves it to Textual (and to TEXTUAL_THEME).
    """
    environ = os.environ if environ is None else environ
    if chosen != "auto":
        return chosen
    if environ.get("TEXTUAL_THEME"):
        return ""
    term = environ.get("TERM", "")
    if "256" not in term and not environ.get("COLORTERM") and term.startswith(_SIXTEEN):
        return "terminal"
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return "light" if background in _LIGHT_BACKGROUNDS else "dark"


def takes_mouse(chosen: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether the mouse is ours: not over SSH unless asked for, where its every move would be sent."""
    environ = os.environ if environ is None else environ
    if chosen != "auto":
        return chosen == "on"
    return not (environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"))


_IN_FILE = mark("{what} is in {path}, and in the clipboard where the terminal allows it (OSC 52).")
_SENT_ONLY = mark("{what} was sent to the clipboard (OSC 52); no file could be written: {why}")
_IN_FILE_ALONE = mark("{what} is in {path}.")
_NOWHERE = mark("{what} could not be written: {why}")
MOST = 48_000
"""Bytes: terminals take no longer text by OSC 52."""
_PIECE = 200
"""Bytes of one DCS of GNU screen."""


def in_clipboard(text: str, environ: Mapping[str, str] | None = None) -> str:
    """The control sequence that asks the terminal to take `text`, wrapped for GNU screen where that stands between."""
    environ = os.environ if environ is None else environ
    coded = base64.b64encode(text.encode()[:MOST]).decode()
    sequence = f"\x1b]52;c;{coded}\x07"
    if environ.get("STY") and not environ.get("TMUX"):
        pieces = [sequence[at : at + _PIECE] for at in range(0, len(sequence), _PIECE)]
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


def copied(to_clipboard: Callable[[str], None], text: str, what: str, name: str, suffix: str = ".txt") -> str:
    """Copy `text`, write it to a file too; returns the sentence that says so. `name` "": under the state folder.

    What is no plain text by its `suffix` goes to the file alone.
    """
    is_plain = suffix == ".txt"
    if is_plain:
        to_clipboard(text)
    what = say(what)
    what = what[:1].upper() + what[1:]
    try:
        return say(_IN_FILE if is_plain else _IN_FILE_ALONE, what=what, path=_written(text, name, suffix))
    except OSError as error:
        return say(_SENT_ONLY if is_plain else _NOWHERE, what=what, why=error.strerror or str(error))


def _written(text: str, name: str, suffix: str) -> Path:
    """In the present folder where it is a file to send, else (and where that cannot be written) in the state folder."""
    from advisor.script.write import write_file

    here = Path(f"{name}-{time.strftime('%Y%m%d-%H%M%S')}{suffix}") if name else None
    if here is not None:
        try:
            write_file(here, text.encode("utf-8", "replace"), force=False)
        except OSError:
            pass
        else:
            return here
    from advisor.session_store import keep_private

    return keep_private(here.name if here is not None else "copied.txt", text)
