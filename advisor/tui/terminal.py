"""What the terminal can show."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

THEMES = {"dark": "textual-dark", "light": "textual-light", "terminal": "ansi-dark"}
"""Our names → Textual's."""
_LIGHT_BACKGROUNDS = {"7", "15"}
_SIXTEEN = ("linux", "screen", "ansi", "vt", "cons", "xterm-color", "xterm-16color")


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
