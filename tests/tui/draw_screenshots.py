"""Draw the screens as SVG for the README: `python -m tests.tui.draw_screenshots [FOLDER]` in the repository's root."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from unittest.mock import patch

from textual.pilot import Pilot

from advisor.demo import demo_files
from advisor.language import CHINESE, ENGLISH, speak
from advisor.session import SessionRequest
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import DiffScreen
from advisor.tui.screen import BaseScreen
from advisor.tui.verdict import VerdictScreen

from .screen_text import opened, press

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
SIZE = (100, 28)
Shot = tuple[type[BaseScreen], list[str]]
SHOTS: dict[str, Shot] = {
    "verdict": (VerdictScreen, []),
    "question": (VerdictScreen, ["r", "enter"]),
    "plan": (PlanScreen, []),
    "memory": (PlanScreen, ["m"]),
    "arithmetic": (PlanScreen, ["a"]),
    "diff": (DiffScreen, []),
    "gauges": (VerdictScreen, ["g"]),
    "why-not": (VerdictScreen, ["w"]),
}
"""Name → Enter until this screen, then these keys."""
IN_CHINESE: dict[str, Shot] = {"verdict": (VerdictScreen, []), "plan": (PlanScreen, [])}
"""The same, drawn as NAME.zh.svg."""


def demo() -> SessionDriver:
    """The real session on the bundled crash."""
    files = demo_files()
    return SessionDriver(SessionRequest(files.script, (files.log,), machine_files=(files.machine,)), is_demo=True)


async def draw(folder: Path) -> list[Path]:
    """One SVG a shot; only the gauges are made up, so that they show GPUs wherever it runs."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for language, shots in ((ENGLISH, SHOTS), (CHINESE, IN_CHINESE)):
        speak(language)
        ending = "svg" if language == ENGLISH else f"{language}.svg"
        drawn += [await _drawn(folder / f"{name}.{ending}", *shot) for name, shot in shots.items()]
    speak(ENGLISH)
    return drawn


async def _drawn(path: Path, screen: type[BaseScreen], keys: list[str]) -> Path:
    async with opened(driver=demo(), size=SIZE) as pilot:
        while not isinstance(pilot.app.screen, screen):
            await press(pilot, "enter")
        with patch("advisor.tui.gauges_view.time", lambda: 1000.0):  # the made-up process is young
            await press(pilot, *keys)
        path.write_text(drawing_of(pilot), encoding="utf-8")
        return path


def drawing_of(pilot: Pilot[int]) -> str:
    """The screen as it stands, as SVG."""
    drawing = pilot.app.export_screenshot(title="rl-oom-advisor", simplify=False)
    return drawing.replace("<svg ", '<svg xml:space="preserve" ', 1)  # some viewers swallow leading spaces


def main() -> None:
    """Into the folder given, else `screenshots`."""
    for path in asyncio.run(draw(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))):
        print(path)


if __name__ == "__main__":
    main()
