"""Draw the screens as SVG for the README: `python -m tests.tui.draw_screenshots [FOLDER]` in the repository's root."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from .made_state import MadeDriver, host_crash
from .screen_text import opened, press

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
SIZE = (100, 28)
SHOTS: dict[str, list[str]] = {
    "verdict": [],
    "question": ["enter"],
    "plan": ["enter"] * 4,
    "arithmetic": [*["enter"] * 4, "a"],
    "diff": ["enter"] * 5,
    "gauges": ["g"],
    "why-not": ["w"],
}


async def draw(folder: Path, driver: MadeDriver | None = None) -> list[Path]:
    """One SVG a shot. Another driver draws another sitting."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, keys in SHOTS.items():
        async with opened(driver=driver or MadeDriver(host_crash()), size=SIZE) as pilot:
            await press(pilot, *keys)
            path = folder / f"{name}.svg"
            path.write_text(pilot.app.export_screenshot(title="rl-oom-advisor", simplify=True), encoding="utf-8")
            drawn.append(path)
    return drawn


def main() -> None:
    """Into the folder given, else `screenshots`."""
    for path in asyncio.run(draw(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))):
        print(path)


if __name__ == "__main__":
    main()
