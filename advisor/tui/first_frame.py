"""Writes the first frame by itself: what the ends of the logs prove stands while the app is still being loaded."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from advisor.crash.evidence import Crash
from advisor.tui.breadcrumb import breadcrumb
from advisor.tui.proof import loading_rows
from advisor.tui.terminal import ENDING_SIGNALS
from advisor.tui.ui_text import MARGIN, Row, Tone, ascii_only, crop, rows, without_secrets

_ENTER, _ANEW, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[H\x1b[2J", "\x1b[2J\x1b[H\x1b[?25h\x1b[?1049l"
_STYLES: dict[Tone, str] = {"strong": "\x1b[1m", "mark": "\x1b[1m", "dim": "\x1b[2m"}

Draw = Callable[[str, Crash | None], None]
"""Draws the frame: what is being read, and what the ends of the logs prove as far as that is known."""


@contextmanager
def first_frame(plain_ascii: bool) -> Iterator[Draw]:
    """Take the terminal for the frame. The app takes over from it; without one, the terminal is put back.

    What is typed meanwhile waits for the app, and a signal that ends the process puts the terminal back first.
    """

    def draw(reading: str, ends: Crash | None) -> None:
        width, height = os.get_terminal_size(sys.stdout.fileno())
        inner = max(0, width - 2 * MARGIN)  # a terminal of no size has said none
        shown = [*rows(breadcrumb(None, "machine", 0, inner)), *loading_rows(reading, ends, inner)]
        _write(_ANEW + "\r\n".join(_drawn(shown[: height - 1], inner, plain_ascii)))

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = _without_echo()
    for number in ENDING_SIGNALS:
        if number != signal.SIGINT and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)  # until the app handles it
    _write(_ENTER)
    try:
        yield draw
    except BaseException:
        _write(_LEAVE)
        raise
    finally:
        if before is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)


def _drawn(shown: Sequence[Row], width: int, plain_ascii: bool) -> Iterator[str]:
    for row in shown:
        parts = []
        for part in crop(without_secrets(row.line), width):
            style, words = _STYLES.get(part.tone, ""), ascii_only(part.text) if plain_ascii else part.text
            parts.append(f"{style}{words}\x1b[0m" if style else words)
        yield " " * MARGIN + "".join(parts)


def _without_echo() -> Any:
    """Keys are not drawn and not held back until Enter; returns how the terminal was, None where it cannot be asked."""
    with suppress(termios.error, OSError, ValueError):
        before = termios.tcgetattr(sys.stdin.fileno())
        now = [*before]
        now[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, now)
        return before
    return None


def _write(text: str) -> None:
    with suppress(OSError):
        os.write(sys.stdout.fileno(), text.encode("utf-8", "replace"))
