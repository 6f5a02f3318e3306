"""Shows the log around a proof: line numbers, and a letter in the gutter for every line that says something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import get_current_worker

from advisor.crash.sources import LogError, LogSource, open_sources, tail_source
from advisor.hostile import cells
from advisor.language import mark, say
from advisor.tui.driver import expected_trouble
from advisor.tui.facts import short_name
from advisor.tui.field_view import FieldView, text_field
from advisor.tui.log_window import LogWindow, LogWindows, hit_before, next_hit
from advisor.tui.page import Lines, Page
from advisor.tui.proof import LEGEND, letter_of
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import Row, Tone, Toned, grouped, line, pad_left, paragraph, rows, span, spread

if TYPE_CHECKING:
    from advisor.state import State

REACH = 300
SHIFT = 16


def gutter(state: State, file: str) -> dict[int, str]:
    """Line number → letter, for the evidence of one file; errors win over readings on the same line."""
    found: dict[int, str] = {}
    for evidence in state.crash.evidence:
        if evidence.file == file and found.get(evidence.line) != "E":
            found[evidence.line] = letter_of(evidence.role)
    return found


def window_rows(state: State, file: str, window: LogWindow, width: int, shift: int = 0) -> list[Row]:
    """`  41 207 E text`, one row a line; `shift` columns of the text are out of sight on the left."""
    letters = gutter(state, file)
    keys = tuple(key + mark for key in state.crash.settings if len(key) >= 6 for mark in "=:'\"")
    number_width = len(grouped(window.first + len(window.lines)))
    out = []
    for at, text in enumerate(window.lines, start=window.first):
        letter = letters.get(at) or ("C" if any(key in text for key in keys) else " ")
        tone: Tone = "bad" if letter == "E" else "mark"
        number = Toned(pad_left(grouped(at), number_width), "dim")
        out.append(Row(line(number, " ", Toned(letter, tone), " ", span(text[shift:])), str(at)))
    return out


def source_of(state: State, file: str) -> LogSource:
    """The log that a piece of evidence names. Raises LogError where it cannot be read a second time."""
    for source in open_sources(state.asked.logs):
        if source.name == file:
            if source.path is None:
                raise LogError(say("it came from standard input and is gone; save it to a file to look around in it"))
            return tail_source(source, state.crash.preliminary) or source if state.crash.preliminary else source
    raise LogError(say("it is not among the logs any more"))


def opened_at(state: State, file: str, number: int) -> LogWindows:
    """The log, with what its reading remembers of the way to line `number`: to count all lines before it would take
    seconds in a log of many gigabytes. Raises LogError or OSError.
    """
    windows = LogWindows(source_of(state, file))
    crash = state.crash
    texts = [one.text for one in crash.evidence if one.file == file and one.line == number]
    if texts and not crash.preliminary:
        words = texts[0].split()[:6]
        windows.trust(crash.line_index.get(file, ()), number, lambda text: all(word in text for word in words))
    return windows


class EvidenceView(FieldView):
    """The log, standing at one piece of evidence."""

    TITLE_WORDS = mark("The log around a proof")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "hop(1)", "next mark", tooltip="the next line with a letter, or that holds what was searched for"),
        Binding("N,p", "hop(-1)", "previous", key_display="N", tooltip="the one before this line"),
        Binding("slash", "search", "search", tooltip="find words in the whole log; n and N then go through the hits"),
        Binding("left,h", "shift(-1)", "shift", key_display="← →", tooltip="move long lines sideways"),
        Binding("right,l", "shift(1)", show=False),
        Binding("c", "copy", "copy line", show=False, tooltip="copy the line the cursor stands on"),
        Binding("enter,o", "back", "back", show=False, tooltip="return to the verdict"),
    ]

    def __init__(self, ui: UiState, evidence: int) -> None:
        super().__init__(ui)
        chosen = self.state.crash.evidence[evidence]
        self._file, self._line = chosen.file, chosen.line
        self._windows: LogWindows | None = None
        self._window: LogWindow | None = None
        self._trouble = self._wanted = self._told = ""
        self._shift = 0

    def read_on(self, before: State) -> None:
        """The same place, now that lines count from the beginning of the log."""
        now = {(one.file, one.signature, one.text): one.line for one in self.state.crash.evidence}
        known = [one for one in before.crash.evidence if one.file == self._file]
        moves = [now[key] - one.line for one in known if (key := (one.file, one.signature, one.text)) in now]
        if not moves:
            self._trouble = say("the log was read to its beginning; go back, and open the line again")
            self.reload()
            return
        self._line += moves[0]
        self._windows = self._window = None
        self._load()

    def panes(self) -> Iterable[Widget]:
        yield self.page(self.log_rows, "main", str(self._line))
        yield text_field("find", closed=True)

    def on_mount(self) -> None:
        super().on_mount()
        self._load()

    def log_rows(self, width: int) -> list[Row]:
        if self._trouble:
            return paragraph(self._trouble, width)
        if self._window is None:
            return paragraph(
                say("reading {file} up to line {line} …", file=self._file, line=grouped(self._line)), width
            )
        return window_rows(self.state, self._file, self._window, width, self._shift)

    def _crumb(self, width: int) -> list[Row]:
        marked = sorted(gutter(self.state, self._file))
        place, number = short_name(self._file), grouped(self._line)
        if self._line in marked:
            at = marked.index(self._line) + 1
            told = say("{file}  line {line}, mark {at} of {count}", file=place, line=number, at=at, count=len(marked))
        else:
            told = say("{file}  line {line}", file=place, line=number)
        right = self._told or (say("n N: {wanted}  (esc: marks)", wanted=self._wanted) if self._wanted else say(LEGEND))
        if right == say(LEGEND) and cells(told) + cells(right) >= width:  # help has it, too
            right = ""
        return rows(spread(line(span(told, "strong")), line(span(right, "dim")), width))

    def _load(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True, group="log")

    def _read(self) -> None:
        worker = get_current_worker()
        try:
            windows = self._windows = self._windows or opened_at(self.state, self._file, self._line)
            window, trouble = windows.around(self._line, REACH, lambda: worker.is_cancelled), ""
        except expected_trouble() as error:
            why = getattr(error, "strerror", None) or error
            window, trouble = None, say("{file} cannot be shown: {why}", file=self._file, why=why)
        if not worker.is_cancelled:
            self.call_later(self._loaded, window, trouble)

    def _loaded(self, window: LogWindow | None, trouble: str) -> None:
        self._window, self._trouble = window, trouble
        page = self.query_one("#main", Page)
        page.reload()
        page.move_to(str(self._line))
        page.middle()

    def on_page_moved(self, message: Page.Moved) -> None:
        window = self._window
        if window is None or message.key is None or not message.key.isdigit():
            return
        self._line = int(message.key)
        self.query_one("#crumb", Lines).reload()
        at_top = self._line == window.first > 1
        at_end = self._line == window.first + len(window.lines) - 1 and not window.ends
        if at_top or at_end:
            self._load()

    # --- going about in it -------------------------------------------------------------------------------------------

    def action_hop(self, by: int) -> None:
        """The neighbouring hit of the search, else the neighbouring marked line."""
        if self._wanted:
            self._told = say("searching …")
            self.query_one("#crumb", Lines).reload()
            self.run_worker(lambda: self._seek(by), thread=True, exclusive=True, group="seek")
            return
        marked = sorted(gutter(self.state, self._file))
        further = [at for at in marked if (at > self._line if by > 0 else at < self._line)]
        if further:
            self._go_to(further[0 if by > 0 else -1])

    def _go_to(self, number: int) -> None:
        self._line = number
        window = self._window
        if window and window.first <= number < window.first + len(window.lines):
            self.query_one("#main", Page).move_to(str(number))
        else:
            self._load()

    def _seek(self, by: int) -> None:
        worker = get_current_worker()
        if self._windows is None:
            return
        look = next_hit if by > 0 else hit_before
        try:
            found = look(self._windows, self._wanted, self._line, lambda: worker.is_cancelled)
        except expected_trouble():
            found = None
        if not worker.is_cancelled:
            self.call_later(self._hit, found)

    def _hit(self, line: int | None) -> None:
        self._told = "" if line is not None else say("no further hit")
        if line is not None:
            self._go_to(line)
        self.query_one("#crumb", Lines).reload()

    def action_search(self) -> None:
        self.open_field("", say("search the log for …"))

    @on(Input.Submitted)
    def _search(self, event: Input.Submitted) -> None:
        event.stop()
        self.close_field()
        self._wanted, self._told = event.value, ""
        if self._wanted:
            self.action_hop(1)
        self.reload()

    def action_back(self) -> None:
        """Close the field, then forget the search, then return."""
        if self.typing:
            self.close_field()
        elif self._wanted:
            self._wanted = self._told = ""
            self.reload()
        else:
            self.dismiss()

    def action_copy(self) -> None:
        """The line the cursor stands on, without what would control a terminal."""
        window = self._window
        if window is not None and window.first <= self._line < window.first + len(window.lines):
            text = window.lines[self._line - window.first]
            self.advisor.copy(f"{self._file}:{self._line}: {text}\n", mark("the line"))

    def action_shift(self, by: int) -> None:
        self._shift = max(0, self._shift + by * SHIFT)
        self.query_one("#main", Page).reload()
