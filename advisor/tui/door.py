"""The way into the app and out of it again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from advisor.tui.app import AdvisorApp
from advisor.tui.driver import Driver
from advisor.tui.messages import GaugeSource
from advisor.tui.save_view import last_words
from advisor.tui.terminal import draws_signs


def run_app(
    driver: Driver,
    gauges: GaugeSource | None,
    no_color: bool,
    ascii_only: bool,
    demo: Callable[[], Driver] | None = None,
) -> int:
    """Run the app until the user leaves. Returns 0, or 2 where the input could not be read (said on stderr).

    Raises what was a bug of ours, after the terminal is as it was.

    The caller has made sure that there is a terminal. After saving, the next command is printed where it can be copied.
    `demo` gives the driver of the bundled crash; None: the app does not offer it.
    """
    if no_color:
        os.environ["NO_COLOR"] = "1"  # Textual decides while the app is built
    app = AdvisorApp(driver, gauges, no_color=no_color, plain_ascii=ascii_only or not draws_signs(), demo=demo)
    app.run(mouse=False)
    if app.fault is not None:
        raise app.fault
    if app.trouble:
        print(f"rl-oom-advisor: {app.trouble}", file=sys.stderr)
    saved = app.sitting.saved
    if saved is not None:
        print(last_words(saved))
    return app.return_code or 0
