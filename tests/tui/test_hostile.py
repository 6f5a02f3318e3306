"""What strangers wrote is shown, never obeyed: no markup, no control sequence, no crash."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import pytest
from textual.pilot import Pilot

from advisor.hostile import cells
from advisor.line_breaks import cut, cut_left
from advisor.machine.live import GaugeSnapshot
from advisor.recent import FoundFile, Recent, RecentRun
from advisor.report import layout
from advisor.state import State
from advisor.tui import (
    breadcrumb,
    choose_view,
    explain,
    files_view,
    gauge_strip,
    gauges_view,
    machine_view,
    memory_view,
    palette,
    plan_rows,
    proof,
    question,
    save_view,
    verdict,
)
from advisor.tui.driver import Preview, Saved
from advisor.tui.keys import Hint
from advisor.tui.ui_text import Row, crop, flow, labelled, plain, texts
from tests.heavy import sampled
from tests.loops import each
from tests.replacing import replace

from .made_state import KNOWLEDGE, MadeDriver, MadeGauges, host_crash, snapshot, step
from .screen_text import opened, press, screen_text

HOSTILE = [
    "[/red]", "[/tmp/x]", "[rank0]: torch.OutOfMemoryError", "[red]x[/red]", "[bold", "back\\[slash", "x=[1, 2]",
    "\x1b]52;c;cm0gLXJm\x07after", "\x1b]0;title\x1b\\", "\x1b[31mred\x1b[0m", "bell\x07", "a\x00b\x9bc",
    "\u202egpj.exe", "显存不足 🙂", "e\u0301" * 30, "x" * 5000, "two\nlines\r\nthree", "$primary {x} %s", "",
]  # fmt: skip


def poisoned(next_text: Callable[[], str]) -> State:
    """Hostile text in every field a stranger could have written."""
    text = next_text
    state = host_crash(log="log")
    evidence = tuple(
        replace(one, text=text(), process=text(), file=text(), fields={"gpu": text()}) for one in state.crash.evidence
    )
    settings = tuple(
        replace(one, key=text(), value=text(), span=replace(one.span, path=text()))  # type: ignore[type-var]
        for one in state.run.settings
    )
    run = replace(
        state.run,
        title=text(),
        model_name=text(),
        notes=(text(),),
        settings=settings,
        recognised_by=text(),
        algorithm=text(),
    )
    box = replace(
        state.machine,
        gpus=tuple(replace(gpu, name=text(), problem=text()) for gpu in state.machine.gpus),
        libraries={text(): text()},
        environment=text(),
        problems=(text(),),
        driver=text(),
    )
    told = replace(
        state.diagnosis,
        title=text(),
        explains=text(),
        remarks=(text(), text()),
        path=tuple(
            replace(
                one,
                asks=text(),
                why=text(),
                because=text(),
                if_unknown=text(),
                choices=tuple(replace(choice, title=text()) for choice in one.choices),
            )
            for one in state.diagnosis.path
        ),
        ruled_out=tuple(replace(one, title=text(), because=text()) for one in state.diagnosis.ruled_out),
        cases=tuple(replace(one, title=text(), differs=(text(),)) for one in state.diagnosis.cases * 2),
    )
    bad = step("bad", text(), text(), text(), title=text(), why=text(), costs=text(), selected=True)
    bad = replace(bad, caveats=(text(),), sources=(text(),), documented=text())
    plan = replace(state.plan, steps=(bad, *state.plan.steps), shortfall=text())
    crash = replace(state.crash, evidence=evidence, settings={text(): text()}, unclear_because=text())
    asked = replace(state.asked, script=Path("/home") / (text().replace("\x00", "") or "run.sh"))
    return replace(state, crash=crash, run=run, machine=box, diagnosis=told, asked=asked).with_plan(plan)


def in_turn(start: int) -> Callable[[], str]:
    """The hostile strings one after the other, so that every field gets another one with every start."""
    turning = cycle([*HOSTILE[start:], *HOSTILE[:start]])
    return lambda: next(turning)


def always(text: str) -> Callable[[], str]:
    """The same string everywhere."""
    return lambda: text


@dataclass
class HostileDriver(MadeDriver):
    """Gives hostile diffs, proofs and paths too."""

    text: Callable[[], str] = str

    def preview(self, state: State) -> Preview:
        text = self.text
        diff = f"--- a\n+++ b\n@@ -1 +1 @@\n-{text()}\n+{text()}\n"
        return Preview(diff, (text(),), self.folder / "out.sh", by_hand=(text(),))

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        return Saved(Path(self.text().replace("\x00", "")), Path("report"), self.text())


@dataclass
class HostileGauges(MadeGauges):
    """Processes and cards with hostile names."""

    text: Callable[[], str] = str

    def poll(self, now: float) -> GaugeSnapshot:
        text, given = self.text, snapshot(2, now)
        rows = []
        for row in given.gpus:
            processes = tuple(replace(one, user=text(), command=text()) for one in row.gpu.processes or ())
            rows.append(replace(row, gpu=replace(row.gpu, name=text(), problem=text(), processes=processes)))
        return replace(given, gpus=tuple(rows), problem=text())


def is_harmless(shown: str, width: int) -> None:
    """Every line has its width, and holds nothing that a terminal would obey."""
    for one in shown.splitlines():
        assert cells(one) <= width
        assert not any(ord(character) < 32 or 0x7F <= ord(character) <= 0x9F for character in one)
        assert not set(one) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def seen(pilot: Pilot[int]) -> str:
    """The screen, which must be harmless."""
    shown = screen_text(pilot.app)
    is_harmless(shown, pilot.app.size.width)
    return shown


@pytest.mark.parametrize("start", sampled([0, 7, 13], kept=1))
async def test_hostile_text_passes_through_every_screen(start: int) -> None:
    text = in_turn(start)
    driver = HostileDriver(poisoned(text), folder=Path("/nowhere"), text=text)
    async with opened(driver=driver, gauges=HostileGauges(text=text)) as pilot:
        seen(pilot)
        looks = ("w", "g", "m", "d", ":", "question_mark", "o")
        for key in (*(one for look in looks for one in (look, "escape")), "escape", "escape"):
            await press(pilot, key)
            seen(pilot)
        for key in ("enter", "enter", "enter", "4", "enter", "enter", "enter", "e", "escape", "a", "escape", "space"):
            await press(pilot, key)
            seen(pilot)
        for key in ("enter", "enter", "enter"):
            await press(pilot, key)
            seen(pilot)
        assert type(pilot.app.screen).__name__ == "SavedScreen"


def every_page(text: str, width: int) -> list[list[Row]]:
    """What every screen shows where strangers wrote `text` everywhere."""
    state = poisoned(always(text))
    driver, gauges = HostileDriver(state, text=always(text)), HostileGauges(text=always(text))
    snapshot_of_it = gauges.poll(1.0)
    clean_path = text.replace("\x00", "") or "x"
    one = FoundFile(Path("/runs") / clean_path, 1.0, 5)
    found = Recent(Path("/runs"), (RecentRun(one, one),), (one,), one)
    return [
        verdict.verdict_rows(state, width),
        proof.proof_rows(state.crash, proof.titles_of(state), width),
        verdict.script_rows(state, width),
        verdict.box_rows(state, width),
        verdict.cause_rows(state, width),
        verdict.explanation_rows(state, width),
        *(question.question_rows(state, one, None, width) for one in state.diagnosis.path),
        question.because_rows(state, state.diagnosis.path[0], width),
        question.earlier_rows(state, 2, width),
        question.path_rows(state, 1, width),
        machine_view.machine_rows(state.machine, state.run.topology, width),
        machine_view.library_rows(state.machine, state.run, width),
        machine_view.gpu_rows(state.machine, width),
        machine_view.run_rows(state, width),
        machine_view.knob_rows(state.run, width),
        plan_rows.plan_rows(state, width),
        explain.step_rows(state, state.plan.steps[0], width),
        explain.why_not_rows(state, width),
        save_view.preview_rows(driver.preview(state), text, width),
        save_view.saved_rows(driver.save(state, Path(), False), width),
        gauges_view.gauge_rows(snapshot_of_it, "", 1000.0, width, ended=999.0),
        memory_view.memory_rows(state.plan, "actor_update", width),
        explain.case_rows(replace(state, knowledge=KNOWLEDGE), state.diagnosis.cases[0].id, width),
        palette.palette_rows([Hint(text, text, text, True, text)], width),
        choose_view.choose_rows(found, Path("/x") / clean_path, (Path(clean_path),), 9.0, width, {one.path: text}),
        files_view.paste_rows(text * 3 or "x", width),
        [Row(gauge_strip.strip(snapshot_of_it, "", width))],
        [Row(breadcrumb.breadcrumb(state, "crash", 0, width))],
    ]


AT_WIDTHS = [(text, width) for text in HOSTILE for width in (56, 78, 118)]


@pytest.mark.parametrize(("text", "width"), sampled(AT_WIDTHS, range(0, len(AT_WIDTHS), 2)), ids=range(len(AT_WIDTHS)))
def test_every_text_passes_through_every_page(text: str, width: int) -> None:
    for page in every_page(text, width):
        is_harmless(texts(Row(crop(row.line, width)) for row in page), width)


@pytest.mark.parametrize("text", ["[rank0]: torch.OutOfMemoryError", "[/red]", "[red]x[/red]", "显存不足 🙂"])
async def test_brackets_and_wide_characters_are_shown_as_they_are(text: str) -> None:
    async with opened(poisoned(always(text)), size=(120, 40)) as pilot:
        assert text in seen(pilot)


async def test_a_hostile_note_is_shown_as_text() -> None:
    class Refusing(MadeDriver):
        def toggle(self, state: State, step_id: str) -> State:
            raise ValueError("[/red] \x1b[2Jgone")

    async with opened(driver=Refusing()) as pilot:
        await press(pilot, "enter", "space")
        assert "that could not be done: [/red] gone" in seen(pilot)


@each("width", range(8, 60, 3))
def test_a_secret_is_hidden_before_the_line_is_broken_or_cut(width: int) -> None:
    """A token in a file's name, torn by the width, was told in two halves."""
    token = "hf_" + "aBcD4Rf6YhJgKLmNoPqRs"
    text = f"by the log log_{token}.log, line 41"
    told = [
        *(plain(row.line) for row in labelled("Answered by", text, width + 14)),
        *(plain(row.line) for row in flow([text], width)),
        cut(text, width),
        cut_left(text, width),
        *layout.wrap(text, width=width),
    ]
    assert not any(token[at : at + 5] in line for line in told for at in range(len(token) - 5))
