"""Runs the app: the keys that every screen has, signals, and the way out."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingsMap, BindingType
from textual.theme import Theme
from textual.worker import WorkerFailed

from advisor.config import THEMES
from advisor.language import mark, say
from advisor.tui.breadcrumb import STAGES
from advisor.tui.keys import hints
from advisor.tui.screen import SCREENS, BaseScreen, StageScreen, keys_of_every_screen
from advisor.tui.stages import StagesApp
from advisor.tui.terminal import ENDING_SIGNALS, copied, has_terminal, in_clipboard
from advisor.tui.ui_state import MakeDriver, Offers, SessionKeeper, UiState

if TYPE_CHECKING:
    from textual.driver import Driver

    from advisor.machine.live import Gauges


HIGH_CONTRAST = Theme(
    name=THEMES["contrast"],
    primary="#00e5ff",
    accent="#ffff00",
    warning="#ffd500",
    error="#ff7070",
    success="#50ff50",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#2a2a2a",
)
"""Every colour of text at least nine times as bright as black (WCAG asks seven), and nothing dim."""


_NOTHING = mark("there is nothing of that here")


class AdvisorApp(StagesApp):
    """One session in the terminal."""

    CSS_PATH = "app.tcss"
    TITLE = "rl-oom-advisor"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [
        (0, "-tiny"),
        (60, "-narrow"),
        (100, "-wide"),
        (140, "-huge"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (15, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "leave", show=False, priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
    ]

    def __init__(
        self,
        driver: MakeDriver,
        gauges: Gauges | None,
        *,
        no_color: bool,
        plain_ascii: bool,
        offers: Offers | None = None,
        keymap: Mapping[str, str] | None = None,
        keeper: SessionKeeper | None = None,
        theme: str = "",
        refresh: float = 1.0,
        resume: tuple[str, int] | None = None,
    ) -> None:
        ui = UiState(cache(driver), plain_ascii, offers=offers or Offers(), keymap=keymap or {}, keeper=keeper)
        super().__init__(ui, gauges, no_color=no_color, refresh=refresh)
        self.bind_screens()
        if resume is not None:
            stage, question = resume
            self.resume = next(((known, question) for known in STAGES if known == stage), None)
        self.fault: Exception | None = None
        """A bug of ours: raised again after the app has gone, where the door records it."""
        self.register_theme(HIGH_CONTRAST)
        if theme and not no_color:
            self.theme = THEMES.get(theme, theme)
        self.set_keymap(dict(ui.keymap))

    def get_driver_class(self) -> type[Driver]:
        """Textual's, which also clears what it drew: screen, as it comes, and old consoles have no second page."""
        base: Any = super().get_driver_class()

        def stop(driver: Any) -> None:
            driver.write("\x1b[2J\x1b[H")
            base.stop_application_mode(driver)

        made: type[Driver] = type("ClearingDriver", (base,), {"stop_application_mode": stop})
        return made

    def on_load(self) -> None:
        """Where the system or a terminal that closes ends us, leave in order: the terminal is put back."""
        loop = asyncio.get_running_loop()
        with suppress(ValueError, RuntimeError):  # not in the main thread
            for number in ENDING_SIGNALS:
                loop.add_signal_handler(number, self._end, 128 + number)
            if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
                signal.signal(signal.SIGHUP, partial(self._hung_up, loop))

    def _end(self, code: int) -> None:
        self.exit(code, return_code=code)

    def _hung_up(self, loop: asyncio.AbstractEventLoop, number: int, _: object) -> None:
        """The loop itself may be waiting for a terminal that is gone: then nothing is left to put back."""
        if not has_terminal():
            os._exit(128 + number)
        with suppress(RuntimeError):  # the loop has gone
            loop.call_soon_threadsafe(self._end, 128 + number)

    # --- keys of every screen --------------------------------------------------------------------------------------

    def bind_screens(self) -> None:
        """Bind the keys by which the loaded screens are opened."""
        self._bindings = BindingsMap([*self.BINDINGS, *keys_of_every_screen()])
        self._reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters are no keys where they are typed; a screen opens where it has something to show, and once."""
        types = isinstance(self.screen, BaseScreen) and (self.screen.TYPES or self.screen.typing)
        if action == "look":
            screen = SCREENS[str(parameters[0])]
            is_open = any(type(one) is screen for one in self.screen_stack)
            return not types and not is_open and screen.can_show(self.ui)
        if action == "neighbour" and not isinstance(self.screen, StageScreen):
            return False
        return not types or action not in ("leave_by_letter", "plain", "neighbour")

    def on_key(self, event: events.Key) -> None:
        """Say that a key has nothing to act on here, where it is one of the screen's or of every screen's."""
        screen = self.screen
        if not isinstance(screen, BaseScreen) or screen.TYPES or screen.typing or event.key in self.active_bindings:
            return
        own = [one for one in type(screen).BINDINGS if isinstance(one, Binding)]
        known = [*own, *(one for one in keys_of_every_screen() if isinstance(one, Binding))]
        keys = ((one, self.ui.keymap.get(one.id or "", one.key).split(",")) for one in known if one.description)
        refused = next((one for one, of in keys if event.key in of), None)
        if refused is not None and screen.can_show(self.ui):
            (hint,) = hints([refused], self.ui.keymap)
            why = say(screen.REFUSED.get(refused.action, _NOTHING))
            self.ui.note = say("{key} ({what}): {why}", key=hint.keys, what=hint.words, why=why)
            screen.reload()

    def action_look(self, name: str) -> None:
        if isinstance(self.screen, BaseScreen):
            self.push_screen(SCREENS[name].over(self.screen))

    def _handle_exception(self, error: Exception) -> None:
        if self.fault is None:  # what follows follows from it
            inner = error.error if isinstance(error, WorkerFailed) else None
            self.fault = inner if isinstance(inner, Exception) else error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """End. Textual would print the stack with every variable over the user's terminal first."""
        self._close_messages_no_wait()

    def copy(self, text: str, what: str, name: str = "", suffix: str = ".txt") -> None:
        """Put `text` into the clipboard and a file, as `copied` does; `what` names it in the note that says so."""
        self.ui.note = copied(self.to_clipboard, text, what, name, suffix)
        self._reload()

    def to_clipboard(self, text: str) -> None:
        """Ask the terminal to take `text` into its clipboard; it cannot say whether it did."""
        if self._driver is not None:
            self._driver.write(in_clipboard(text))

    def action_plain(self) -> None:
        """The screen's words in the scrollback, where the terminal's own selection works; Enter returns."""
        if not isinstance(self.screen, BaseScreen):
            return
        text = self.screen.plain_words(self.ui.plain_ascii)
        with suppress(SuspendNotSupported), self.suspend():
            print(f"{text}\n{say('-- Enter returns to rl-oom-advisor --')}", end=" ", flush=True)
            with suppress(EOFError, KeyboardInterrupt):
                input()

    def action_theme(self, name: str) -> None:
        self.theme = THEMES.get(name, name)

    def action_leave_by_letter(self) -> None:
        self.action_leave()

    def action_leave(self) -> None:
        if self.ui.keeper is not None and self.ui.state is not None and self.kept:
            with self._keeping, suppress(OSError):  # where the cursors stand by now
                self.ui.keeper(self.ui.state, self.ui)
        self.exit(0, return_code=0)
