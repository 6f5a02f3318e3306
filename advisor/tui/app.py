"""The app: its colours, and the keys that every screen has."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.worker import WorkerFailed

from advisor.language import say
from advisor.tui import ui_text as words
from advisor.tui.copying import copied, in_clipboard
from advisor.tui.frame import Frame, Overlay
from advisor.tui.keys import named
from advisor.tui.messages import GaugeSource, Glancing
from advisor.tui.moving import Moving
from advisor.tui.sitting import Copied, Keeper, Offers, Sitting
from advisor.tui.terminal import THEMES, has_terminal

if TYPE_CHECKING:
    from advisor.tui.driver import Driver


class AdvisorApp(Moving):
    """One sitting in the terminal."""

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
    BINDINGS: ClassVar[list[BindingType]] = named(
        Binding("w", "why_not", "why not", tooltip="causes that were ruled out, remedies that are not proposed"),
        Binding("y", "ticket", "ticket", tooltip="a short summary to send: written to a file and copied"),
        Binding("g", "gauges", "gauges", tooltip="all GPUs, the host, and who sits on them"),
        Binding("m", "memory", "memory", tooltip="who holds how much in every phase, before and after"),
        Binding("t", "record", "over time", tooltip="what `watch` recorded of the run, over time"),
        Binding("v", "plain", "plain view", tooltip="this screen as plain text in the terminal's own scrollback"),
        Binding("colon,ctrl+p", "palette", "all commands", key_display=":", tooltip="find a command by its name"),
        Binding("question_mark", "help", "help", tooltip="the keys of this screen"),
        Binding("q", "leave_by_letter", "quit", tooltip="quit; nothing is written unless you saved", id="quit"),
        Binding("ctrl+c", "leave", show=False, priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", "to the shell", show=False, tooltip="stop the app; fg brings it back"),
    )

    def __init__(
        self,
        driver: Driver,
        gauges: GaugeSource | None,
        *,
        no_color: bool,
        plain_ascii: bool,
        offers: Offers | None = None,
        keymap: Mapping[str, str] | None = None,
        keeper: Keeper | None = None,
        theme: str = "",
        refresh: float = 1.0,
        glancing: Glancing | None = None,
    ) -> None:
        sitting = Sitting(driver, plain_ascii, offers=offers or Offers(), keymap=keymap or {}, keeper=keeper)
        super().__init__(sitting, gauges, no_color=no_color, refresh=refresh, glancing=glancing)
        self.fault: Exception | None = None
        """A bug of ours: raised again after the app has gone, where the door records it."""
        if theme and not no_color:
            self.theme = THEMES.get(theme, theme)
        self.set_keymap(dict(sitting.keymap))

    def on_load(self) -> None:
        """Where the system or a terminal that closes ends us, leave in order: the terminal is put back."""
        loop = asyncio.get_running_loop()
        with suppress(ValueError, RuntimeError):  # not in the main thread
            for number in (signal.SIGTERM, signal.SIGINT):
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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Overlays do not stack on themselves, and before the session is open there is nothing to look at."""
        types = isinstance(self.screen, Frame) and (self.screen.TYPES or self.screen.typing)
        if action in ("leave_by_letter", "plain", "palette", "help", "gauges"):
            return not types and not self._is_open(action)
        if action == "record" and (self.sitting.state is None or self.sitting.state.measured is None):
            return False
        if action in ("why_not", "memory", "ticket", "record"):
            return not types and self.sitting.state is not None and not self._is_open(action)
        return True

    def _is_open(self, action: str) -> bool:
        return any(isinstance(screen, Frame) and action == screen.OPENED_BY for screen in self.screen_stack)

    def _handle_exception(self, error: Exception) -> None:
        if self.fault is None:  # what follows follows from it
            inner = error.error if isinstance(error, WorkerFailed) else None
            self.fault = inner if isinstance(inner, Exception) else error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """End. Textual would print the stack with every variable over the user's terminal first."""
        self._close_messages_no_wait()

    def _look_at(self, overlay: Overlay) -> None:
        self.sitting.note = ""
        self.push_screen(overlay)

    def action_why_not(self) -> None:
        """Causes that were ruled out and remedies that are not proposed."""
        from advisor.tui.explain import WhyNot

        self._look_at(WhyNot(self.sitting))

    def action_gauges(self) -> None:
        """All gauges."""
        from advisor.tui.gauges_view import GaugesView

        self._look_at(GaugesView(self.sitting))

    def action_memory(self) -> None:
        """Every phase's memory."""
        from advisor.tui.memory_view import MemoryView

        self._look_at(MemoryView(self.sitting))

    def action_record(self) -> None:
        """The record of the run, over time."""
        from advisor.tui.record_view import RecordView

        self._look_at(RecordView(self.sitting))

    def action_help(self) -> None:
        """Keys of the present screen."""
        from advisor.tui.help_view import HelpView

        if isinstance(self.screen, Frame):
            self._look_at(HelpView(self.sitting, self.screen))

    def action_palette(self) -> None:
        """All commands, found by their words."""
        from advisor.tui.palette import Palette

        if isinstance(self.screen, Frame):
            self._look_at(Palette(self.sitting, self.screen))

    def action_ticket(self) -> None:
        """Write the ticket and copy it."""
        from advisor.report.ticket import ticket

        self.sitting.note = copied(self.to_clipboard, ticket(self.sitting.known), words.TICKET, "oom-report")
        self._reload()

    @on(Copied)
    def _copy(self, message: Copied) -> None:
        self.sitting.note = copied(self.to_clipboard, message.text, message.what, "")
        self._reload()

    def to_clipboard(self, text: str) -> None:
        """Ask the terminal to take `text` into its clipboard; it cannot say whether it did."""
        if self._driver is not None:
            self._driver.write(in_clipboard(text))

    def action_plain(self) -> None:
        """The screen's words in the scrollback, where the terminal's own selection works; Enter returns."""
        if not isinstance(self.screen, Frame):
            return
        text = self.screen.plain_words(self.sitting.plain_ascii)
        with suppress(SuspendNotSupported), self.suspend():
            print(f"{text}\n{say(words.PLAIN_RETURN)}", end=" ", flush=True)
            with suppress(EOFError, KeyboardInterrupt):
                input()

    def action_theme(self, name: str) -> None:
        """Another set of colours, for this sitting."""
        self.theme = THEMES.get(name, name)

    def action_leave_by_letter(self) -> None:
        """Quit, where letters are keys."""
        self.action_leave()

    def action_leave(self) -> None:
        """Quit."""
        self.exit(0, return_code=0)
