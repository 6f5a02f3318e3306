"""How many keys lead from the start to the saved script, pressing Enter alone: for all stories and for folders given.

    python -m tests.benchmarks.keys_needed [FOLDER]...

A folder has one launch (.sh, .yaml or .py) and one log; it is counted as on a machine that `--gpus 8xH100-80GB` and
`--host-ram 1800GB` describe. What is written goes to a temporary copy. Told of each: the keys, the questions among
them, and where it ended: saved, a report alone, or nothing that could be written.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

from advisor.commands import app_parser
from advisor.commands.requests import asked_from
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen
from advisor.tui.question import QuestionScreen
from advisor.tui.save_view import DiffScreen, SavedScreen
from tests.stories.told import RUNS, STORIES
from tests.tui.screen_text import hit, opened

MOST = 20
MACHINE = ["--gpus", "8xH100-80GB", "--host-ram", "1800GB"]


async def keys_of(words: list[str]) -> tuple[int, int, str]:
    """(keys, of them on questions, where they led)."""
    async with opened(driver=SessionDriver(asked_from(app_parser().parse_args(words)))) as pilot:
        asked = 0
        for pressed in range(MOST):
            screen = pilot.app.screen
            if isinstance(screen, SavedScreen):
                saved = screen.ui.saved
                return pressed, asked, "saved" if saved and saved.path != saved.report else "report"
            if isinstance(screen, PlanScreen | DiffScreen) and not screen.check_action("go_on", ()):
                return pressed, asked, "nothing to write"
            asked += isinstance(screen, QuestionScreen)
            await hit(pilot, "enter")
        return MOST, asked, f"still on {type(pilot.app.screen).__name__}"


def in_copy(folder: Path, words: list[str]) -> tuple[int, int, str]:
    """Counted in a copy of the folder, which is gone afterwards."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as kept:
        os.chdir(shutil.copytree(folder, Path(kept, folder.name)))
        try:
            return asyncio.run(keys_of(words))
        finally:
            os.chdir(before)


def launch_and_log(folder: Path) -> list[str]:
    """The words of a command line about this folder."""
    log = next(folder.glob("*.log"))
    launch = next(one for ending in ("sh", "yaml", "py") for one in sorted(folder.glob(f"*.{ending}")))
    return [launch.name, "--log", log.name, *MACHINE]


def main() -> None:
    """One line each."""
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    for name, story in STORIES.items():
        keys, asked, end = in_copy(RUNS / story.folder, [story.script, "--log", story.log, *story.machine])
        print(f"{name:40} {keys:3} keys, {asked} on questions: {end}", flush=True)
    for given in sys.argv[1:]:
        keys, asked, end = in_copy(Path(given), launch_and_log(Path(given)))
        print(f"{Path(given).name:40} {keys:3} keys, {asked} on questions: {end}", flush=True)


if __name__ == "__main__":
    main()
