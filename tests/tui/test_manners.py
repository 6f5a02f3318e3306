"""Manners of a terminal program: its colours, keys, mouse and clipboard, at the first frame and at the last step."""

import base64
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color
from textual.widget import Widget

from advisor.config import THEMES
from advisor.script import write as write_module
from advisor.state import State
from advisor.tui.app import AdvisorApp
from advisor.tui.evidence_view import EvidenceView
from advisor.tui.explain import WhyNot
from advisor.tui.gauges_view import GaugesView
from advisor.tui.help_view import HelpView
from advisor.tui.keys import name_of
from advisor.tui.question import QuestionScreen
from advisor.tui.screen import HEIGHTS, WIDTHS, keys_of_every_screen, load_screens
from advisor.tui.terminal import MOST, in_clipboard, takes_mouse, theme_of
from advisor.tui.ui_state import UiState
from advisor.tui.ui_text import TONES
from advisor.tui.verdict import VerdictScreen
from tests.heavy import sampled
from tests.loops import each

from .made_state import MadeDriver, MadeGauges
from .screen_text import opened, press, screen_text, settle

# --- colours and mouse ----------------------------------------------------------------------------------------------


@each(
    ("chosen", "environ", "theme"),
    [
        ("auto", {"TERM": "xterm-256color"}, "dark"),
        ("auto", {"TERM": "xterm-256color", "COLORFGBG": "0;15"}, "light"),
        ("auto", {"TERM": "xterm-256color", "COLORFGBG": "15;default;0"}, "dark"),
        ("auto", {"TERM": "linux"}, "terminal"),
        ("auto", {"TERM": "screen"}, "terminal"),
        ("auto", {"TERM": "screen-256color"}, "dark"),
        ("auto", {"TERM": "screen", "COLORTERM": "truecolor"}, "dark"),
        ("auto", {"TERM": "xterm-256color", "TEXTUAL_THEME": "nord"}, ""),
        ("light", {"TERM": "linux"}, "light"),
    ],
)
def test_the_theme_follows_the_terminal_until_one_is_chosen(chosen: str, environ: dict[str, str], theme: str) -> None:
    assert theme_of(chosen, environ) == theme


def test_the_mouse_is_left_to_the_terminal_over_ssh_unless_asked_for() -> None:
    assert takes_mouse("auto", {})
    assert not takes_mouse("auto", {"SSH_CONNECTION": "1 2 3 4"})
    assert not takes_mouse("off", {})
    assert takes_mouse("on", {"SSH_TTY": "/dev/pts/1"})


def luminance(color: Color) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one: Color, other: Color) -> float:
    """WCAG's ratio, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


async def test_high_contrast_means_seven_to_one_and_nothing_dim() -> None:
    async with opened(theme="contrast") as pilot:
        background = pilot.app.screen.styles.background
        for tone in TONES:
            style = pilot.app.tone_style(tone)  # type: ignore[attr-defined]
            assert not style.dim, tone
            if style.color is not None:
                assert contrast(Color.from_rich_color(style.color), background) >= 7, tone


@pytest.mark.parametrize("theme", sampled(THEMES, 3))
async def test_every_theme_that_can_be_chosen_is_there(theme: str) -> None:
    async with opened(theme=theme) as pilot:
        assert pilot.app.theme == THEMES[theme]


@pytest.mark.parametrize("theme", ["dark", "light", "contrast", "terminal", "gruvbox"])
async def test_every_theme_draws_the_same_words(theme: str) -> None:
    async with opened() as pilot:
        first = screen_text(pilot.app)
        await pilot.app.run_action(f"theme('{theme}')")
        await press(pilot)
        assert screen_text(pilot.app) == first


async def test_without_colour_no_segment_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(no_color=True) as pilot:
        for key in ("g", "escape", "w", "escape", "enter"):
            await press(pilot, key)
            for strip in pilot.app.screen._compositor.render_strips():
                for segment in strip:
                    style = segment.style
                    assert style is None or style.color is None or style.color.is_default


# --- the first frame ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "classes"), [((80, 24), "-narrow"), ((120, 40), "-wide"), ((160, 45), "-huge")])
async def test_a_screen_has_the_layout_of_its_size_before_it_is_drawn(
    size: tuple[int, int], classes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[set[str]] = []
    panes = VerdictScreen.panes

    def recorded(screen: VerdictScreen) -> Iterable[Widget]:
        made.append({name for _, name in (*WIDTHS, *HEIGHTS) if screen.has_class(name)})
        return panes(screen)

    monkeypatch.setattr(VerdictScreen, "panes", recorded)
    async with opened(size=size):
        assert made == [{classes, "-tall"}]


async def test_no_key_has_the_whole_state_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[State] = []
    monkeypatch.setattr(State, "__repr__", lambda state: printed.append(state) or "a state")
    kept: list[object] = []
    async with opened(keeper=lambda *given: not kept.append(given)) as pilot:
        await press(pilot, "enter", "space", "u", "enter", "escape")
    assert kept
    assert printed == []


# --- keys -----------------------------------------------------------------------------------------------------------


async def test_keys_can_be_given_away_and_the_key_line_and_the_help_follow() -> None:
    keymap = {"why_not": "x", "open_line": "z", "gauges": "f7"}
    async with opened(keymap=keymap) as pilot:
        assert "x why not" in screen_text(pilot.app)
        await press(pilot, "w")
        assert not isinstance(pilot.app.screen, WhyNot)
        await press(pilot, "x")
        assert isinstance(pilot.app.screen, WhyNot)
        await press(pilot, "escape", "z")
        assert isinstance(pilot.app.screen, EvidenceView)
        await press(pilot, "escape", "f7")
        assert isinstance(pilot.app.screen, GaugesView)
        await press(pilot, "escape", "?", "end")
        assert isinstance(pilot.app.screen, HelpView)


def test_the_names_in_the_template_are_names_of_keys() -> None:
    from advisor.config import TEMPLATE

    named = {line.split()[2] for line in TEMPLATE.splitlines() if line.startswith("# key ") and "=" in line}
    load_screens()
    known = {binding.id for binding in keys_of_every_screen()}
    assert named - {"NAME"} <= known


def test_actions_that_go_both_ways_have_two_names_and_digits_none() -> None:
    assert [name_of(a) for a in ("phase(-1)", "phase(1)", "app.leave", "choose(3)", "nothing")] == [
        "phase_before", "phase_after", "leave", None, None,
    ]  # fmt: skip


# --- copying --------------------------------------------------------------------------------------------------------


def test_what_is_copied_goes_through_screen_and_stays_within_what_terminals_take() -> None:
    plain = in_clipboard("zwölf\n", {})
    assert base64.b64decode(plain[7:-1]).decode() == "zwölf\n"
    wrapped = in_clipboard("x" * 1000, {"STY": "1.pts"})
    assert wrapped.startswith("\x1bP\x1b]52;c;")
    assert wrapped.endswith("\x07\x1b\\")
    assert in_clipboard("x", {"STY": "1", "TMUX": "1"}) == in_clipboard("x", {})
    assert len(in_clipboard("x" * 10**6, {})) < MOST * 1.4


async def test_the_ticket_is_written_and_copied_and_the_screen_says_where(tmp_path: Path) -> None:
    async with opened() as pilot:
        sent: list[str] = []
        pilot.app.to_clipboard = sent.append  # type: ignore[attr-defined]
        await press(pilot, "y")
        assert "people, hosts and folders are left out" in " ".join(screen_text(pilot.app).split())
        assert sent == list(tmp_path.glob("oom-report-*.txt")) == [], "it is read first"
        await press(pilot, "enter")
        assert len(sent) == 1
        assert list(tmp_path.glob("oom-report-*.txt")) == []
        await press(pilot, "y", "s")
        files = list(tmp_path.glob("oom-report-*.txt"))
        assert len(files) == 1
        assert sent[1:] == [files[0].read_text()]
        assert files[0].name in screen_text(pilot.app)


async def test_the_report_is_written_as_a_page_and_not_copied(tmp_path: Path) -> None:
    async with opened() as pilot:
        sent: list[str] = []
        pilot.app.to_clipboard = sent.append  # type: ignore[attr-defined]
        await press(pilot, "y", "h")
        await settle(pilot)
        (page,) = tmp_path.glob("oom-report-*.html")
        assert page.read_text().startswith("<!doctype html>")
        assert page.name in screen_text(pilot.app)
        assert sent == []


async def test_where_the_folder_cannot_be_written_the_ticket_lies_with_the_state(tmp_path: Path) -> None:
    async with opened() as pilot:
        with pytest.MonkeyPatch.context() as patch:
            write = write_module.write_file

            def refuse(path: Path, *args: Any, **more: Any) -> tuple[str, ...]:
                if not path.is_absolute():
                    raise PermissionError(13, "Permission denied")
                return write(path, *args, **more)

            patch.setattr(write_module, "write_file", refuse)
            await press(pilot, "y", "s")
        assert len(list((tmp_path / "state").rglob("oom-report-*.txt"))) == 1


@pytest.mark.parametrize(
    ("way", "words"), [(["c"], "The line"), (["enter", "c"], "The change"), (["enter", "enter", "c"], "The diff")]
)
async def test_what_the_cursor_stands_on_can_be_copied(way: list[str], words: str, tmp_path: Path) -> None:
    async with opened() as pilot:
        await press(pilot, *way)
        assert f"{words} is in" in screen_text(pilot.app)
        assert (tmp_path / "state" / "rl-oom-advisor" / "copied.txt").read_text().strip()


async def test_the_plain_view_has_what_is_scrolled_out_of_sight_too() -> None:
    async with opened(size=(60, 15)) as pilot:
        words = pilot.app.screen.plain_words()  # type: ignore[attr-defined]
        assert "416 GB are not explained" in words
        assert "416 GB" not in screen_text(pilot.app)
        assert pilot.app.screen.plain_words(True).isascii()  # type: ignore[attr-defined]


# --- resuming -------------------------------------------------------------------------------------------------------


async def test_every_step_is_kept_with_answers_switches_and_place() -> None:
    kept: list[tuple[str, int, dict[str, bool]]] = []

    def keep(state: State, ui: UiState) -> None:
        kept.append((ui.stage, ui.question, dict(ui.switched)))

    async with opened(keeper=keep) as pilot:
        await press(pilot, "r", "enter", "4", "u", "enter", "space", "down", "space", "space")
    assert kept[0][:2] == ("crash", 0)
    assert ("questions", 0, {}) in kept
    assert kept[-1] == ("plan", 0, {"optimizer-offload-off": False, "param-offload-off": True})


async def test_where_nothing_can_be_kept_the_sitting_goes_on() -> None:
    def keep(*_: object) -> None:
        raise OSError("disk full")

    async with opened(keeper=keep) as pilot:
        await press(pilot, "r", "enter")
        assert isinstance(pilot.app.screen, QuestionScreen)


async def test_keys_faster_than_the_disk_are_kept_one_after_the_other_and_the_newest_stays() -> None:
    writing, together, places = [0], [0], []

    def keep(_: State, ui: UiState) -> None:
        writing[0] += 1
        together[0] = max(together[0], writing[0])
        time.sleep(0.02)
        places.append((ui.stage, ui.question))
        writing[0] -= 1

    async with opened(keeper=keep) as pilot:
        for _ in range(8):
            pilot.app.call_later(pilot.app.go_on)
            pilot.app.call_later(pilot.app.go_back)
        await press(pilot, "enter")
        last = (pilot.app.ui.stage, pilot.app.ui.question)  # type: ignore[attr-defined]
    assert together == [1]
    assert places[-1] == last


async def test_a_sitting_is_taken_up_where_it_was_left() -> None:
    app = AdvisorApp(MadeDriver, MadeGauges(), no_color=False, plain_ascii=False, resume=("questions", 1))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot)
        assert "Questions 2/3" in screen_text(app)


async def test_a_stage_of_another_version_is_no_trouble() -> None:
    app = AdvisorApp(MadeDriver, MadeGauges(), no_color=False, plain_ascii=False, resume=("attic", 9))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "Host RAM ran out" in screen_text(app)
