"""A file that the user picked in the app becomes the script or the log of what is opened next."""

from __future__ import annotations

from pathlib import Path

from advisor.language import say
from advisor.recent import SCRIPTS
from advisor.tui import ui_text as words
from advisor.tui.sitting import Sitting


def take(sitting: Sitting, path: Path) -> str:
    """Choose a file: a script by its name's end, anything else as a log; returns the sentence that says so."""
    if path.suffix.lower() in (*SCRIPTS, ".yaml", ".yml", ".json"):
        sitting.chosen_script = path
        return say(words.CHOSEN_SCRIPT, name=path.name)
    sitting.chosen_logs = (path,)
    return say(words.CHOSEN_LOG, name=path.name)
