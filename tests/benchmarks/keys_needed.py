"""How many keys lead from the start to the saved script, pressing Enter alone: for all stories and for folders given.

    python -m tests.benchmarks.keys_needed [FOLDER]...

A folder has one launch (.sh, .yaml or .py) and one log, and may have a file `words` with what the command line says of
the run (`--gpus 4xA10 --model llama-7b`). The first key chooses the run in the list that the program starts with. What
is written goes to a temporary copy. Told of each: the keys, the questions among them, and where it ended: saved, a
report alone (what is on is done by hand), or nothing that could be written; at the end how many need how many. Exits 1
where one needs more than `MOST`.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from advisor.commands import app_parser
from advisor.commands.requests import asked_from
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen
from advisor.tui.question import QuestionScreen
from advisor.tui.save_view import DiffScreen, SavedScreen
from tests.stories.told import RUNS, STORIES
from tests.tui.screen_text import hit, opened

MOST, TRIED = 7, 20
CHOSEN = 1
"""The key that chooses the run."""


async def keys_of(words: list[str]) -> tuple[int, int, str]:
    """(keys, of them on questions, where they led)."""
    async with opened(driver=SessionDriver(asked_from(app_parser().parse_args(words)))) as pilot:
        asked = 0
        for pressed in range(CHOSEN, TRIED):
            screen = pilot.app.screen
            if isinstance(screen, SavedScreen):
                saved = screen.ui.saved
                return pressed, asked, "saved" if saved and saved.path != saved.report else "report"
            if isinstance(screen, PlanScreen | DiffScreen) and not screen.check_action("go_on", ()):
                return pressed, asked, "nothing to write"
            asked += isinstance(screen, QuestionScreen)
            await hit(pilot, "enter")
        return TRIED, asked, f"still on {type(pilot.app.screen).__name__}"


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
    words = folder / "words"
    return [launch.name, "--log", log.name, *shlex.split(words.read_text() if words.is_file() else "")]


def main() -> None:
    """One line each, and how many there are of each number."""
    os.environ["TEXTUAL_ANIMATIONS"] = "none"
    runs = {name: (RUNS / one.folder, one.words("")[1:]) for name, one in STORIES.items()}
    runs |= {one.name: (one, launch_and_log(one)) for one in map(Path, sys.argv[1:])}
    needed: Counter[int] = Counter()
    for name, (folder, words) in runs.items():
        keys, asked, end = in_copy(folder, words)
        needed[keys] += 1
        print(f"{name:40} {keys:3} keys, {asked} on questions: {end}", flush=True)
    print(", ".join(f"{keys} keys: {count}" for keys, count in sorted(needed.items())))
    sys.exit(max(needed) > MOST)


if __name__ == "__main__":
    main()
