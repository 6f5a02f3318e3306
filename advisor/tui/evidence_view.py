"""The log around a proof: line numbers, and a letter in the gutter for every line that says something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widget import Widget
from textual.worker import get_current_worker

from advisor.crash.evidence import Crash, EvidenceRole
from advisor.crash.sources import PREVIEW, LogError, Source, open_sources, tail_source
from advisor.session import State
from advisor.tui.driver import EXPECTED_TROUBLE
from advisor.tui.facts import short_name
from advisor.tui.frame import BACK, Overlay
from advisor.tui.log_window import LogWindows, Window
from advisor.tui.page import Lines, Page
from advisor.tui.sitting import Sitting
from advisor.tui.ui_text import Row, Span, Tone, grouped, line, pad_left, paragraph, rows, span, spread

REACH = 300
SHIFT = 16
_LETTERS: dict[EvidenceRole, str] = {"telemetry": "M", "warning": "M", "progress": "P"}
LEGEND = "E error  M memory  P progress  C config"


def letter_of(role: EvidenceRole) -> str:
    """The gutter letter of a piece of evidence."""
    return _LETTERS.get(role, "E")


def gutter(state: State, file: str) -> dict[int, str]:
    """Line number → letter, for the evidence of one file; errors win over readings on the same line."""
    found: dict[int, str] = {}
    for evidence in state.crash.evidence:
        if evidence.file == file and found.get(evidence.line) != "E":
            found[evidence.line] = letter_of(evidence.role)
    return found


def window_rows(state: State, file: str, window: Window, width: int, shift: int = 0) -> list[Row]:
    """`  41 207 E text`, one row a line; `shift` columns of the text are out of sight on the left."""
    letters = gutter(state, file)
    keys = tuple(key + mark for key in state.crash.settings if len(key) >= 6 for mark in "=:'\"")
    number_width = len(grouped(window.first + len(window.lines)))
    out = []
    for at, text in enumerate(window.lines, start=window.first):
        letter = letters.get(at) or ("C" if any(key in text for key in keys) else " ")
        tone: Tone = "bad" if letter == "E" else "mark"
        number = Span(pad_left(grouped(at), number_width), "dim")
        out.append(Row(line(number, " ", Span(letter, tone), " ", span(text[shift:])), str(at)))
    return out


def source_of(state: State, file: str) -> Source:
    """The log that a piece of evidence names. Raises LogError where it cannot be read a second time."""
    if file == "standard input":
        raise LogError("it came from standard input and is gone; save it to a file to look around in it")
    for source in open_sources(state.asked.logs):
        if source.name == file:
            return (tail_source(source, PREVIEW) or source) if state.crash.preliminary else source
    raise LogError("it is not among the logs any more")


class EvidenceView(Overlay):
    """The log, standing at one piece of evidence."""

    TITLE_WORDS = "The log around a proof"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "hop(1)", "next mark", tooltip="the next line with a letter"),
        Binding("N,p", "hop(-1)", "previous", key_display="N", tooltip="the line with a letter before this one"),
        Binding("left,h", "shift(-1)", "shift", key_display="← →", tooltip="move long lines sideways"),
        Binding("right,l", "shift(1)", show=False),
        Binding("enter,o", "back", "back", show=False, tooltip="return to the verdict"),
        BACK,
    ]

    class Loaded(Message):
        """A worker read a window, or could not."""

        def __init__(self, window: Window | None, trouble: str) -> None:
            super().__init__()
            self.window, self.trouble = window, trouble

    def __init__(self, sitting: Sitting, evidence: int) -> None:
        super().__init__(sitting)
        chosen = self.state.crash.evidence[evidence]
        self._file, self._line = chosen.file, chosen.line
        self._windows: LogWindows | None = None
        self._window: Window | None = None
        self._trouble = ""
        self._shift = 0

    def renumber(self, before: Crash) -> None:
        """The same place, now that lines count from the beginning of the log; `before`: when they did not."""
        now = {(one.file, one.signature, one.text): one.line for one in self.state.crash.evidence}
        known = [one for one in before.evidence if one.file == self._file]
        moves = [now[key] - one.line for one in known if (key := (one.file, one.signature, one.text)) in now]
        if not moves:
            self._trouble = "the log was read to its beginning; go back, and open the line again"
            self.reload()
            return
        self._line += moves[0]
        self._windows = self._window = None
        self._load()

    def panes(self) -> Iterable[Widget]:
        """One page: the log."""
        yield self.page("log_rows", "main", str(self._line))

    def on_mount(self) -> None:
        """Begin to read."""
        super().on_mount()
        self._load()

    def log_rows(self, width: int) -> list[Row]:
        """The window, or what is being done about it."""
        if self._trouble:
            return paragraph(self._trouble, width)
        if self._window is None:
            return paragraph(f"reading {self._file} up to line {grouped(self._line)} …", width)
        return window_rows(self.state, self._file, self._window, width, self._shift)

    def _crumb(self, width: int) -> list[Row]:
        marked = sorted(gutter(self.state, self._file))
        where = f", mark {marked.index(self._line) + 1} of {len(marked)}" if self._line in marked else ""
        place = f"{short_name(self._file)}  line {grouped(self._line)}{where}"
        return rows(spread(line(span(place, "strong")), line(span(LEGEND, "dim")), width))

    def _load(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True, group="log")

    def _read(self) -> None:
        worker = get_current_worker()
        try:
            self._windows = self._windows or LogWindows(source_of(self.state, self._file))
            window, trouble = self._windows.around(self._line, REACH, lambda: worker.is_cancelled), ""
        except EXPECTED_TROUBLE as error:
            window, trouble = None, f"{self._file} cannot be shown: {getattr(error, 'strerror', None) or error}"
        if not worker.is_cancelled:
            self.post_message(self.Loaded(window, trouble))

    def on_evidence_view_loaded(self, message: Loaded) -> None:
        """Show the window and stand on the line."""
        self._window, self._trouble = message.window, message.trouble
        page = self.query_one("#main", Page)
        page.reload()
        page.move_to(str(self._line))
        page.middle()

    def on_page_moved(self, message: Page.Moved) -> None:
        """Follow the cursor; near an open end of the window, read on."""
        window = self._window
        if window is None or message.key is None or not message.key.isdigit():
            return
        self._line = int(message.key)
        self.query_one("#crumb", Lines).reload()
        at_top = self._line == window.first > 1
        at_end = self._line == window.first + len(window.lines) - 1 and not window.ends
        if at_top or at_end:
            self._load()

    def action_hop(self, by: int) -> None:
        """The neighbouring marked line of this file."""
        marked = sorted(gutter(self.state, self._file))
        further = [at for at in marked if (at > self._line if by > 0 else at < self._line)]
        if not further:
            return
        self._line = further[0 if by > 0 else -1]
        window = self._window
        if window and window.first <= self._line < window.first + len(window.lines):
            self.query_one("#main", Page).move_to(str(self._line))
        else:
            self._load()

    def action_shift(self, by: int) -> None:
        """Move the text sideways."""
        self._shift = max(0, self._shift + by * SHIFT)
        self.query_one("#main", Page).reload()
