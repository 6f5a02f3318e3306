"""The screen as plain text, golden files of it, and a way to open the app in a test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.events import Key
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from advisor.state import State
from advisor.tui.app import AdvisorApp
from advisor.tui.driver import SessionDriver

from .made_state import MadeDriver, MadeGauges

GOLDEN = Path(__file__).parent / "golden"


def screen_text(app: AdvisorApp) -> str:
    """What a person sees, without colours. The one place that knows Textual's compositor."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def same_as_golden(name: str, text: str) -> None:
    """Compare with the committed picture; UPDATE_GOLDEN=1 writes it anew, to be reviewed as a diff."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} looks different; UPDATE_GOLDEN=1 accepts it"


async def settle(pilot: Pilot[int]) -> None:
    """Wait until nothing is left to run but clocks: no message on its way, no worker at work. Nothing sleeps."""
    loop, quiet = asyncio.get_running_loop(), 0
    while quiet < 2:  # what a thread hands over is seen in the next round
        await asyncio.sleep(0)
        quiet = 0 if loop._ready else quiet + 1  # type: ignore[attr-defined]
        if quiet and len(pilot.app.workers):
            with suppress(WorkerCancelled):  # another key was quicker
                await pilot.app.workers.wait_for_complete()
            quiet = 0


async def hit(pilot: Pilot[int], key: str) -> None:
    """One key, and all that follows from it. (Pilot.press sleeps to find out that nothing is going on.)"""
    name = _character_to_key(key) if len(key) == 1 and not key.isalnum() else key
    character = key if len(key) == 1 else {"space": " ", "question_mark": "?", "slash": "/", "colon": ":"}.get(key)
    pilot.app.post_message(Key(name, character))
    await settle(pilot)


async def press(pilot: Pilot[int], *keys: str) -> None:
    """Press keys one after the other, waiting for what each of them starts; then for the last layout."""
    for key in keys:
        await hit(pilot, key)
    await laid_out(pilot)


async def laid_out(pilot: Pilot[int]) -> None:
    """The layout that a clock would make sixty times a second, now."""
    await settle(pilot)
    pilot.app.screen._on_timer_update()
    await settle(pilot)


_render_update = Compositor.render_update


def asked_for(compositor: Compositor, full: bool = False, **more: Any) -> Any:
    """A frame for a screenshot, and none for the terminal that a test has not: `screen_text` draws what it looks at."""
    return _render_update(compositor, full, **more) if full else None


@asynccontextmanager
async def opened(
    state: State | None = None,
    size: tuple[int, int] = (80, 24),
    *,
    driver: SessionDriver | MadeDriver | None = None,
    gauges: MadeGauges | None = None,
    plain_ascii: bool = False,
    no_color: bool = False,
    **more: Any,
) -> AsyncIterator[Pilot[int]]:
    """The app with its first screen up."""
    made = driver or (MadeDriver(state) if state is not None else MadeDriver())
    app = AdvisorApp(lambda: made, gauges or MadeGauges(), no_color=no_color, plain_ascii=plain_ascii, **more)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compositor, "render_update", asked_for)
        async with app.run_test(size=size, notifications=True) as pilot:
            await laid_out(pilot)
            yield pilot
