"""Draws a whole session on the bundled crash as one moving SVG: `python -m tests.tui.draw_session --write`.

Each picture is the real app's screen after the keys that its caption names; nothing is made up but the gauges.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from unittest.mock import patch
from xml.sax.saxutils import escape

from advisor.language import ENGLISH, speak

from .draw_screenshots import SIZE, demo, drawing_of
from .screen_text import opened, press, screen_text

os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
FILE = Path(__file__).resolve().parents[2] / "screenshots" / "session.svg"


@dataclass(frozen=True)
class Scene:
    """What is pressed, in words below the picture, and for how long the screen then stands."""

    caption: str
    keys: tuple[str, ...]
    seconds: float


SCENES = (
    Scene("rl-oom-advisor --demo", (), 5),
    Scene("Enter: the plan", ("enter",), 5),
    Scene("= writes a number of one's own; the bars follow", ("down", "down", "=", "backspace", "backspace", "3"), 4),
    Scene("s keeps sets of changes, and compares two", ("enter", "s"), 4),
    Scene("u takes it back; m: who holds what, phase by phase", ("escape", "u", "m"), 4),
    Scene("Enter: the exact change, read back and checked", ("escape", "enter"), 4),
    Scene("Enter: written, beside the script, which stays as it is", ("enter",), 4),
)
_HEAD = re.compile(r'<svg xml:space="preserve" class="rich-terminal" viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')
_FONTS = re.compile(r"@font-face \{.*?\n    \}\n", re.DOTALL)
_CAPTION = 52
"""Height of the line below the picture."""


async def played() -> list[tuple[str, str]]:
    """(SVG, words) of every scene."""
    speak(ENGLISH)
    before, found = Path.cwd(), []
    kept = patch("advisor.folders.state_folder", lambda *_: Path("~/.local/state/rl-oom-advisor"))
    with tempfile.TemporaryDirectory() as folder, patch("advisor.tui.gauges_view.time", lambda: 1000.0), kept:
        os.chdir(folder)  # the script is really written
        try:
            async with opened(driver=demo(), size=SIZE) as pilot:
                for scene in SCENES:
                    await press(pilot, *scene.keys)
                    found.append((drawing_of(pilot), screen_text(pilot.app)))
        finally:
            os.chdir(before)
    return found


def moving(drawings: list[str]) -> str:
    """One SVG that shows the drawings one after the other, and again; the first alone to whom motion disturbs."""
    total, begun, style, body = sum(scene.seconds for scene in SCENES), 0.0, [], []
    width, height = (float(size) for size in _HEAD.search(drawings[0]).groups())  # type: ignore[union-attr]
    for number, (scene, drawing) in enumerate(zip(SCENES, drawings, strict=True)):
        shown, hidden = 100 * begun / total, 100 * (begun + scene.seconds) / total
        begun += scene.seconds
        style.append(
            f"@keyframes s{number} {{ 0% {{ visibility: hidden }} {shown:.3f}% {{ visibility: visible }} "
            f"{hidden:.3f}% {{ visibility: {'visible' if hidden >= 100 else 'hidden'} }} }} "
            f".s{number} {{ animation: s{number} {total:g}s step-end infinite }}"
        )
        frame = _FONTS.sub("", _HEAD.sub(f'<svg width="{width:g}" height="{height:g}">', drawing))
        caption = f'<text class="caption" x="{width / 2:g}" y="{height + 34:g}">{escape(scene.caption)}</text>'
        body.append(f'<g class="scene s{number}">{frame}{caption}</g>')
    style += [
        ".scene { visibility: hidden }",
        ".caption { font: bold 24px sans-serif; fill: #d0d0d0; text-anchor: middle }",
        "@media (prefers-reduced-motion: reduce) { .scene { animation: none } .s0 { visibility: visible } }",
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:g} {height + _CAPTION:g}">\n'
        f"<style>{' '.join(style)}</style>\n"
        f'<rect width="100%" height="100%" rx="12" fill="#1c1c1c"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


def words_in(drawing: str) -> str:
    """The words that a drawing shows, in its order, without what stands between them."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    return re.sub(r"\s+", "", unescape("".join(found)))


def main() -> None:
    """Write it, or say whether it is as it would be written."""
    drawn = moving([drawing for drawing, _ in asyncio.run(played())])
    if "--write" in sys.argv:
        FILE.write_text(drawn, encoding="utf-8")
    same = words_in(FILE.read_text(encoding="utf-8")) == words_in(drawn)
    print(
        f"{FILE.name}: {len(drawn) // 1000} kB, {'as the app draws it' if same else 'the app draws it otherwise now'}"
    )
    sys.exit(not same)


if __name__ == "__main__":
    main()
