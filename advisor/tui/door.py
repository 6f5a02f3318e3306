"""The way into the app and out of it again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from advisor.config import Config
from advisor.tui.app import AdvisorApp
from advisor.tui.breadcrumb import STAGES
from advisor.tui.driver import Driver
from advisor.tui.messages import ClusterSource, GaugeSource, Glancing
from advisor.tui.sitting import Keeper, Offers
from advisor.tui.terminal import draws_signs, takes_mouse, theme_of

if TYPE_CHECKING:
    from advisor.recent import Recent


class Door(Struct, frozen=True):
    """All that the app is given from outside."""

    driver: Driver
    gauges: GaugeSource | None
    no_color: bool = False
    plain_ascii: bool = False
    glancing: Glancing | None = None
    demo: Callable[[], Driver] | None = None
    files: Callable[[Path | None, tuple[Path, ...]], Driver] | None = None
    recent: Callable[[], Recent] | None = None
    pasted: Callable[[str], Path] | None = None
    keeper: Keeper | None = None
    resume: tuple[str, int] | None = None
    """Stage and question of a sitting that is taken up again."""
    cluster: ClusterSource | None = None


def run_app(door: Door, config: Config) -> int:
    """Run the app until the user leaves. Returns 0, or 2 where the input could not be read (said on stderr).

    Raises what was a bug of ours, after the terminal is as it was.

    The caller has made sure that there is a terminal. After saving, the next command is printed where it can be copied.
    """
    if door.no_color:
        os.environ["NO_COLOR"] = "1"  # Textual decides while the app is built
    for name in ("COLUMNS", "LINES"):  # what a shell exported once must not hold against the terminal's own size
        os.environ.pop(name, None)
    app = app_of(door, config)
    app.run(mouse=takes_mouse(config.mouse))
    if app.fault is not None:
        raise app.fault
    for sentence in (*config.problems, *([app.trouble] if app.trouble else [])):
        print(f"rl-oom-advisor: {sentence}", file=sys.stderr)
    saved = app.sitting.saved
    if saved is not None:
        from advisor.tui.save_view import last_words

        print(last_words(saved))
    return app.return_code or 0


def app_of(door: Door, config: Config) -> AdvisorApp:
    """The app, as door and config ask for it."""
    app = AdvisorApp(
        door.driver,
        door.gauges,
        no_color=door.no_color,
        plain_ascii=door.plain_ascii or not draws_signs(),
        offers=Offers(door.demo, door.files, door.recent, door.pasted),
        keymap=config.keys,
        keeper=door.keeper,
        theme=theme_of(config.theme),
        refresh=config.refresh,
        glancing=door.glancing,
    )
    app.sitting.cluster = door.cluster
    if door.resume is not None:
        stage, question = door.resume
        app.resume = next(((known, question) for known in STAGES if known == stage), None)
    return app
