"""Draw the screens as SVG for the README: `python -m tests.tui.draw_screenshots [FOLDER]` in the repository's root.

`--every FOLDER` draws every screen at four sizes, in both languages, dark, light and of high contrast, as SVG and text,
to be looked at.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

from textual.pilot import Pilot

from advisor.demo import demo_files
from advisor.language import CHINESE, ENGLISH, speak
from advisor.machine.amd import AmdReader
from advisor.machine.cards import CardReader
from advisor.machine.live import GaugeSnapshot, GpuGauge
from advisor.machine.tool import ToolAnswer
from advisor.session import SessionRequest
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import DiffScreen
from advisor.tui.screen import BaseScreen
from advisor.tui.verdict import VerdictScreen

from ..machine import fake_amdsmi
from ..machine.test_other_vendors import npus, table
from ..replacing import replace
from .made_state import MadeGauges, snapshot
from .screen_text import opened, press, screen_text

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
EVERY: dict[str, tuple[list[str], list[str]]] = {
    "verdict": ([], []),
    "log": (["o"], ["escape"]),
    "case": (["d"], ["escape"]),
    "answers": (["r"], []),
    "question": (["enter"], ["escape"]),
    "why-not": (["w"], ["escape"]),
    "facts": (["i"], []),
    "fact": (["enter"], ["escape", "escape"]),
    "ticket": (["y"], ["escape"]),
    "gauges": (["g"], ["escape"]),
    "help": (["question_mark"], ["escape"]),
    "palette": ([":"], ["escape"]),
    "run": (["escape"], []),
    "machine": (["escape"], ["enter", "enter"]),
    "plan": (["enter"], []),
    "number": (["down", "down", "="], ["escape"]),
    "explained": (["e"], ["escape"]),
    "arithmetic": (["a"], ["escape"]),
    "memory": (["m"], ["escape"]),
    "named": (["s", "n", "a"], []),
    "sets": (["enter", "up"], ["escape"]),
    "diff": (["enter"], []),
    "elsewhere": (["s"], []),
    "saved": (["enter"], []),
}
"""Name → the keys that lead there from the screen before, and those that leave it."""
SIZES = ((60, 15), (80, 24), (120, 40), (200, 50))
LOOKS = ("dark", "light", "contrast")


def of_vendors() -> dict[str, MadeGauges]:
    """Picture → the gauges of a box with cards of another vendor, read from a stub of its tool."""
    holder = "| 1       0                 | 4242          | python3    | 57000      |\n"
    npu = npus(ToolAnswer(table(3372, 61000, processes=holder)))
    cards = [fake_amdsmi.Card(used=used << 30, processes=[(4242, used << 30)]) for used in (171, 3)]
    amd = AmdReader(fake_amdsmi.FakeAmdsmi(*cards), run=lambda _: ToolAnswer(missing=True))
    return {f"gauges-{name}": VendorGauges(reader) for name, reader in (("ascend", npu), ("amd", amd))}


class VendorGauges(MadeGauges):
    """The cards that a reader reads, at every poll."""

    def __init__(self, reader: CardReader) -> None:
        super().__init__()
        reader.open()
        self.cards = [GpuGauge(gpu, 1.0, peak_bytes=gpu.used_bytes) for gpu in reader.snapshot()]

    def poll(self, now: float) -> GaugeSnapshot:
        """As of now."""
        return replace(snapshot(0, now), gpus=tuple(replace(card, read_at=now) for card in self.cards))


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
    for name, gauges in of_vendors().items():
        drawn.append(await _drawn(folder / f"{name}.svg", *SHOTS["gauges"], gauges))
    return drawn


async def draw_every(folder: Path) -> None:
    """One walk through the app for each size, language and theme."""
    for language in (ENGLISH, CHINESE):
        for size in SIZES:
            for theme in LOOKS:
                speak(language)
                into = folder / f"{size[0]}x{size[1]}-{language}-{theme}"
                into.mkdir(parents=True, exist_ok=True)
                async with opened(driver=demo(), size=size, theme=theme) as pilot:
                    for name, (there, back) in EVERY.items():
                        await press(pilot, *there)
                        (into / f"{name}.svg").write_text(drawing_of(pilot), encoding="utf-8")
                        (into / f"{name}.txt").write_text(screen_text(pilot.app), encoding="utf-8")
                        await press(pilot, *back)
    speak(ENGLISH)


async def _drawn(path: Path, screen: type[BaseScreen], keys: list[str], gauges: MadeGauges | None = None) -> Path:
    kept = patch("advisor.folders.state_folder", lambda *_: Path("~/.local/state/rl-oom-advisor"))
    with kept:
        return await _shown(path, screen, keys, gauges)


async def _shown(path: Path, screen: type[BaseScreen], keys: list[str], gauges: MadeGauges | None) -> Path:
    async with opened(driver=demo(), size=SIZE, gauges=gauges) as pilot:
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
    if "--every" in sys.argv:
        with tempfile.TemporaryDirectory() as here:  # what is saved on the way
            folder = Path(sys.argv[sys.argv.index("--every") + 1]).absolute()
            os.chdir(here)
            asyncio.run(draw_every(folder))
        return
    for path in asyncio.run(draw(Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"))):
        print(path)


if __name__ == "__main__":
    main()
