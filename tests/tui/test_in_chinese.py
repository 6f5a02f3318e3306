"""The app in Chinese: the documented cases, wide characters in columns, and nothing left unsaid."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from advisor.hostile import cells
from advisor.language import CHINESE, ENGLISH, say, speak, unsaid
from advisor.tui import (
    breadcrumb,
    explain,
    gauges_view,
    machine_view,
    memory_view,
    plan_rows,
    proof,
    question,
    verdict,
)
from advisor.tui.keys import hints
from advisor.tui.memory_bars import first_phase
from advisor.tui.page import POINTER, Page
from advisor.tui.palette import Palette
from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import DiffScreen, SavedScreen, preview_rows
from advisor.tui.ui_text import Row, TonedLine, crop, lead, plain, texts, width_of
from tests.heavy import sampled
from tests.stories.told import DOCUMENTED

from .made_state import host_crash, snapshot
from .screen_text import hit, opened, press, same_as_golden, screen_text
from .test_cases_at_sizes import SIZES, case
from .test_hostile import every_page, is_harmless

WIDTHS = [size[0] - 2 for size in SIZES]


@pytest.fixture(autouse=True)
def _chinese() -> None:
    speak(CHINESE)


def is_sound(pilot: Pilot[int], size: tuple[int, int]) -> str:
    """The screen: breadcrumb, gauges and keys are there, no line is wider than the terminal."""
    shown = screen_text(pilot.app)
    lines = shown.splitlines()
    assert len(lines) == size[1]
    assert max(cells(line) for line in lines) <= size[0]
    assert all(lines[at].strip() for at in (0, -2, -1))
    assert "退出" in lines[-1]
    return shown


async def test_a_case_goes_from_the_verdict_to_the_saved_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = (80, 24)
    async with opened(driver=case("easyr1", tmp_path, monkeypatch), size=size) as pilot:
        same_as_golden("zh-verdict-80x24", is_sound(pilot, size))
        await press(pilot, "g")
        same_as_golden("zh-gauges-80x24", is_sound(pilot, size))
        await press(pilot, "escape", "r", "enter")
        same_as_golden("zh-question-80x24", is_sound(pilot, size))
        while not isinstance(pilot.app.screen, PlanScreen):
            await hit(pilot, "enter")
        await press(pilot)
        same_as_golden("zh-plan-80x24", is_sound(pilot, size))
        await press(pilot, "m")
        same_as_golden("zh-memory-80x24", is_sound(pilot, size))
        await press(pilot, "escape", "question_mark")
        same_as_golden("zh-help-80x24", is_sound(pilot, size))
        await press(pilot, "escape", "enter")
        assert isinstance(pilot.app.screen, DiffScreen)
        same_as_golden("zh-diff-80x24", is_sound(pilot, size))
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, SavedScreen)
        assert "bash qwen2_5_vl_7b.fits.sh" in is_sound(pilot, size)
    assert not unsaid()


EVERY = [*(("easyr1", size) for size in SIZES), *((n, s) for n in DOCUMENTED if n != "easyr1" for s in SIZES)]
"""Every page of every case is looked at in three widths below."""


@pytest.mark.parametrize(("name", "size"), sampled(EVERY, (0, 3, 7)), ids=str)
async def test_enter_alone_leads_to_the_diff(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case(name, tmp_path, monkeypatch), size=size) as pilot:
        shown = is_sound(pilot, size)
        assert "耗尽" in shown
        if name == "easyr1" and size != SIZES[0]:
            same_as_golden(f"zh-verdict-{size[0]}x{size[1]}", shown)
        while not isinstance(pilot.app.screen, DiffScreen):
            await hit(pilot, "enter")
            is_sound(pilot, size)
    assert not unsaid()


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_page_of_every_case_says_all_it_has_to_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = case(name, tmp_path, monkeypatch)
    state = driver.state
    assert state is not None
    preview = driver.preview(state)
    for width in WIDTHS:
        pages = [
            verdict.verdict_rows(state, width),
            proof.proof_rows(state.crash, proof.titles_of(state), width),
            verdict.script_rows(state, width),
            verdict.box_rows(state, width),
            verdict.cause_rows(state, width),
            verdict.explanation_rows(state, width),
            *(question.question_rows(state, step, None, width) for step in state.diagnosis.path),
            *(question.because_rows(state, step, width) for step in state.diagnosis.path),
            question.earlier_rows(state, len(state.diagnosis.path), width),
            question.path_rows(state, 0, width),
            plan_rows.plan_rows(state, width),
            plan_rows.bar_rows(state, first_phase(state.plan, state.diagnosis.phase), width, 40),
            *(explain.step_rows(state, step, width) for step in state.plan.steps),
            explain.why_not_rows(state, width),
            explain.arithmetic_rows(state, state.diagnosis.phase, width),
            memory_view.memory_rows(state.plan, state.diagnosis.phase, width),
            machine_view.machine_rows(state.machine, state.run.topology, width),
            machine_view.library_rows(state.machine, state.run, width),
            machine_view.run_rows(state, width),
            machine_view.knob_rows(state.run, width),
            preview_rows(preview, "run.sh", width),
            [Row(breadcrumb.breadcrumb(state, "questions", 0, width))],
        ]
        for page in pages:
            assert max((width_of(crop(row.line, width)) for row in page), default=0) <= width
            assert {label for row in page for label in english_labels(row)} <= NAMES
    assert not unsaid()


NAMES = {"GPU", "swap", "/dev/shm"}
"""Labels that are the same in Chinese."""


def english_labels(row: Row) -> list[str]:
    """Headings and labels of a row without a Chinese character."""
    labels = [part.text.strip() for part in row.line if part.tone == "title"]
    return [label for label in labels if label and not any("\u4e00" <= character <= "\u9fff" for character in label)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("text", ["显存不足 🙂", "内存，" * 300, "宽{x}[red]\x1b[31m字\u202e", "Ａ" * 300 + "\u0301"])
def test_wide_and_hostile_text_stays_in_its_line(text: str, width: int) -> None:
    for page in every_page(text, width):
        is_harmless(texts(Row(crop(row.line, width)) for row in page), width)
    assert not unsaid(), "what a stranger wrote is no text to look up"


# --- columns ---------------------------------------------------------------------------------------------------------


def column_of(line: TonedLine, words: str) -> int:
    """The terminal column at which `words` begin."""
    text = plain(line)
    assert words in text
    return cells(text[: text.index(words)])


def test_the_columns_of_the_plan_stand_under_their_titles() -> None:
    rows = plan_rows.plan_rows(host_crash(), 78)
    titles, results = rows[0].line, ("不变", "会变")
    heads = [row.line for row in rows if row.key and any(word in plain(row.line) for word in results)]
    assert len(heads) == 4
    assert {min(column_of(head, word) for word in results if word in plain(head)) for head in heads} == {
        column_of(titles, "训练结果") - POINTER
    }
    ends = {column_of(head, "主机") + cells("主机") for head in heads if "主机" in plain(head)}
    assert ends == {column_of(titles, "显存/内存") + cells("显存/内存") - POINTER}


@pytest.mark.parametrize("width", WIDTHS)
def test_bars_begin_and_end_in_the_same_columns(width: int) -> None:
    rows = memory_view.memory_rows(host_crash().plan, "actor_update", width)
    bars = [row.line for row in rows if "现在" in plain(row.line) or "之后" in plain(row.line)]
    assert {cells(part[0].text) for part in bars} == {11}
    assert len({cells(plain(part).rpartition(" / ")[0]) for part in bars}) == 1
    assert max(width_of(one) for one in bars) <= width


def test_processes_stand_under_their_titles() -> None:
    rows = gauges_view.process_rows(snapshot(), 1000.0, 78)
    title, first = rows[0].line, rows[1].line
    for word, value in (("pid", "4242"), ("用户", "ana"), ("命令", "python3")):
        assert column_of(title, word) == column_of(first, value)


# --- words -----------------------------------------------------------------------------------------------------------


def test_keys_are_named_in_the_language_of_the_moment() -> None:
    assert [hint.words for hint in hints(PlanScreen.BINDINGS)][:2] == ["开/关", "看 diff"]
    speak(ENGLISH)
    assert [hint.words for hint in hints(PlanScreen.BINDINGS)][:2] == ["toggle", "diff"]


@pytest.mark.parametrize("typed", ["谁在占用", "gauges"])
async def test_the_palette_finds_a_command_in_either_language(typed: str) -> None:
    async with opened() as pilot:
        await press(pilot, ":", *typed)
        assert isinstance(pilot.app.screen, Palette)
        assert pilot.app.screen.query_one("#main", Page).cursor == "app.look('gauges')"


def test_a_lead_is_whole_sentences_of_chinese_too() -> None:
    text = "主机内存用尽。“是它。”卸载占满了内存！还有呢？"
    assert lead(text, 20) == ("主机内存用尽。", "“是它。”卸载占满了内存！还有呢？")
    assert lead(text, 24) == ("主机内存用尽。“是它。”", "卸载占满了内存！还有呢？")
    assert lead(text, 4) == ("主机内存用尽。", "“是它。”卸载占满了内存！还有呢？")
    assert lead(text, 99) == (text, "")
    assert lead("没有句号", 2) == ("没有句号", "")


def test_a_headline_names_memory_phase_and_card() -> None:
    crash = host_crash().crash
    assert proof.headline(crash) == say("{memory} ran out {when}.", memory="主机内存", when="在 actor 更新时")
