"""Draws lines: a bar of one line, and a page with a cursor. Their words are a function of the width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from advisor.language import say
from advisor.tui.ui_text import MARGIN, TONES, Row, Toned, TonedLine, ascii_only, crop, keys_of, line, without_secrets

RowSource = Callable[[int], Sequence[Row]]
"""Columns → rows. Called again on every resize and whenever the state changed."""
POINTER = 2
"""Columns before a row the cursor can stand on: "▸ "."""


class TonedApp(App[int]):
    """Holds the style of each tone once: on every screen they would be computed anew whenever one opens."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in (*TONES, "cursor")}

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._tones: dict[str, Style] = {}

    def refresh_css(self, animate: bool = True) -> None:
        """Take the tones of another theme."""
        self._tones.clear()
        super().refresh_css(animate)

    def tone_style(self, tone: str) -> Style:
        """What a tone adds to the style of its line."""
        if tone not in self._tones:
            styles = self.get_component_styles(f"tone--{tone}")
            style, own = styles.partial_rich_style, styles.color
            names = ("panel", "foreground")  # of the grounds the one nearest to what is written
            ground, plain = (Color.parse(self.theme_variables[name]) for name in names)
            if style.color is not None and own.ansi is None:
                style += Style.from_color(readable(own, ground).rich_color)
            elif style.dim and ground.ansi is None and times_as_bright(plain, ground) < TO_BE_DIM:
                style += Style(dim=False)
            self._tones[tone] = style
        return self._tones[tone]


LEGIBLE, TO_BE_DIM = 4.5, 7.0
"""How much brighter than the other text or ground has to be, as WCAG 2 reckons (level AA); and be, to be shown dim."""


def readable(color: Color, ground: Color) -> Color:
    """The colour itself, or as much nearer to black or white as makes it legible."""
    end = ground.get_contrast_text(1)
    mixed = (color.blend(end, step / 10) for step in range(10))
    return next((one for one in mixed if times_as_bright(one, ground) >= LEGIBLE), end)


def times_as_bright(one: Color, other: Color) -> float:
    """The contrast ratio of WCAG."""
    shares = ((v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in c.normalized) for c in (one, other))
    dark, bright = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05 for red, green, blue in shares)
    return bright / dark


class Lines(Widget):
    """Draws what `source` returns for its width. Nothing is parsed as markup on the way."""

    DEFAULT_CSS = """
    Lines { height: 1; width: 1fr; color: $foreground; }
    """
    top: reactive[int] = reactive(0)
    """Index of the first row in sight."""

    def __init__(self, source: RowSource, *, plain_ascii: bool = False, id: str | None = None) -> None:
        super().__init__(id=id)
        self._source = source
        self._plain_ascii = plain_ascii
        self._rows: list[Row] = []
        self._built_for = -1

    @property
    def rows(self) -> list[Row]:
        """What is shown at the present width."""
        self._build(self.size.width)
        return self._rows

    def reload(self) -> None:
        """Ask the source again; draws only when something changed."""
        before = self._rows
        self._built_for = -1
        self._build(self.size.width)
        if before != self._rows:
            self.refresh(layout=len(before) != len(self._rows) and self.styles.height is not None)
            self.rows_changed()

    def rows_changed(self) -> None:
        """Told after the rows changed."""

    def _build(self, width: int) -> None:
        if width > 0 and width != self._built_for:
            self._rows = list(self._source(width - 2 * MARGIN))
            self._built_for = width

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Rows, for panes whose height follows their content."""
        self._build(width)
        return len(self._rows)

    def render_line(self, y: int) -> Strip:
        rows = self.rows
        at = self.top + y
        row = rows[at] if at < len(rows) else Row(())
        return self._strip(row.line, self._base(row))

    class Pointed(Message):
        """A bar of one line was clicked in this column of its words."""

        def __init__(self, lines: Lines, column: int) -> None:
            super().__init__()
            self.lines, self.column = lines, column

    def on_click(self, event: events.Click) -> None:
        self.post_message(self.Pointed(self, event.x - MARGIN))

    def _base(self, row: Row) -> Style:
        return self.rich_style

    def _strip(self, of: TonedLine, base: Style, pointer: str = "") -> Strip:
        width = self.size.width
        segments = [Segment(" " * MARGIN + self._said(pointer), base)]
        room = width - 2 * MARGIN - len(pointer)
        segments += [
            Segment(self._said(part.text), base + self._tone(part)) for part in crop(without_secrets(of), room)
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def _said(self, text: str) -> str:
        return ascii_only(text) if self._plain_ascii else text

    def _tone(self, part: Toned) -> Style:
        return Style.null() if part.tone == "plain" else self._look(part.tone)

    def _look(self, name: str) -> Style:
        app = self.app
        assert isinstance(app, TonedApp)
        return app.tone_style(name)


_FEW = 4
"""Rows of the first thing that are in sight before what stands above it may be scrolled away."""


class Page(Lines, can_focus=True):
    """Rows that scroll, with a cursor on those that have a key. Without keys, the arrows scroll."""

    DEFAULT_CSS = """
    Page { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "up", show=False, tooltip="the thing above; without a cursor, scroll up"),
        Binding("down,j", "step(1)", "down", show=False, tooltip="the thing below; without a cursor, scroll down"),
        Binding("pageup", "leaf(-1)", "a page up", show=False),
        Binding("pagedown", "leaf(1)", "a page down", show=False),
        Binding("home", "ends(-1)", "to the top", show=False),
        Binding("end", "ends(1)", "to the end", show=False),
    ]

    class Moved(Message):
        """The cursor stands on another key."""

        def __init__(self, page: Page, key: str | None) -> None:
            super().__init__()
            self.page, self.key = page, key

    class Clicked(Message):
        """The row of the cursor was clicked, `again` or for the first time: on which line, in which column of words."""

        def __init__(self, page: Page, again: bool, line: int, column: int) -> None:
            super().__init__()
            self.page, self.again, self.line, self.column = page, again, line, column

    def __init__(
        self, source: RowSource, *, plain_ascii: bool = False, id: str | None = None, cursor: str | None = None
    ) -> None:
        super().__init__(source, plain_ascii=plain_ascii, id=id)
        self.wanted = cursor

    @property
    def cursor(self) -> str | None:
        """Key of the row the cursor stands on; the first one where that row is gone; None where there is none."""
        keys = keys_of(self.rows)
        return self.wanted if self.wanted in keys else next(iter(keys), None)

    def move_to(self, key: str | None) -> None:
        """Put the cursor on `key` and scroll there."""
        self.wanted = key
        self.show_cursor()
        self.refresh()
        self.post_message(self.Moved(self, key))

    def middle(self) -> None:
        """Scroll so that the cursor stands in the middle."""
        at = next((index for index, row in enumerate(self.rows) if row.key == self.cursor), 0)
        self.top = max(0, min(at - self.size.height // 2, self._deepest()))
        self.refresh()

    def rows_changed(self) -> None:
        """Keep the view inside the rows."""
        self.top = max(0, min(self.top, self._deepest()))

    def on_resize(self, event: events.Resize) -> None:
        self.rows_changed()
        self.show_cursor()

    def render_line(self, y: int) -> Strip:
        """A row, its pointer where the cursor stands, and "more" in the last one where rows are hidden below."""
        rows = self.rows
        at = self.top + y
        row = rows[at] if at < len(rows) else Row(())
        if y == self.size.height - 1 and at < len(rows) - 1 and y > 0:
            more = say("↓ {count} more lines", count=len(rows) - at)
            return self._strip(line(Toned(more, "dim")), self.rich_style)
        if row.key is None:
            return self._strip(row.line, self.rich_style)
        here = row.key == self.cursor
        first = at == 0 or rows[at - 1].key != row.key
        return self._strip(row.line, self._base(row), "▸ " if here and first else "  ")

    def _base(self, row: Row) -> Style:
        if row.key is None or row.key != self.cursor or not self.has_focus:
            return self.rich_style
        return self.rich_style + self._look("cursor")

    def on_click(self, event: events.Click) -> None:
        """The row that was clicked, where the mouse is ours; a second time, what is done with it."""
        at = self.top + event.y
        rows = self.rows
        key = rows[at].key if at < len(rows) else None
        if key is None:
            return
        again, first = key == self.cursor, next(index for index, row in enumerate(rows) if row.key == key)
        if not again:
            self.move_to(key)
        self.post_message(self.Clicked(self, again, at - first, event.x - MARGIN - POINTER))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-3)

    def _deepest(self) -> int:
        return max(0, len(self.rows) - max(1, self.size.height))

    def show_cursor(self) -> None:
        """Scroll to where the cursor stands."""
        at = [index for index, row in enumerate(self.rows) if row.key is not None and row.key == self.cursor]
        if not at or self.size.height < 1:
            return
        room = self.size.height - (1 if self._deepest() else 0)  # the last line may say "more"
        if self.cursor == keys_of(self.rows)[0] and at[:_FEW][-1] < room:  # what stands above it is read first
            self.top = 0
        elif at[0] < self.top:
            self.top = at[0]
        elif at[-1] >= self.top + room:
            self.top = min(at[-1] - room + 1, at[0], self._deepest())

    def _scroll(self, by: int) -> None:
        self.top = max(0, min(self.top + by, self._deepest()))

    def action_step(self, by: int) -> None:
        """The neighbouring key; past the last one, or without keys, scroll."""
        keys = keys_of(self.rows)
        at = keys.index(self.cursor) + by if self.cursor in keys else -1
        if 0 <= at < len(keys):
            self.move_to(keys[at])
        else:
            self._scroll(by)

    def action_leaf(self, by: int) -> None:
        """A screenful; the cursor comes along, so that what a key does is done to what is in sight."""
        self._scroll(by * max(1, self.size.height - 2))
        seen = keys_of(self.rows[self.top : self.top + max(1, self.size.height - 1)])
        if seen and self.cursor not in seen:
            self.wanted = seen[0 if by > 0 else -1]
            self.refresh()
            self.post_message(self.Moved(self, self.wanted))

    def action_ends(self, by: int) -> None:
        keys = keys_of(self.rows)
        if keys:
            self.move_to(keys[0 if by < 0 else -1])
        self._scroll(by * len(self.rows))
