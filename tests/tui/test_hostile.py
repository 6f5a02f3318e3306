"""What strangers wrote is shown, never obeyed: no markup, no control sequence, no crash."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from advisor.hostile import cells
from advisor.session import State
from advisor.tui.driver import Preview, Saved

from .made_state import MadeDriver, MadeGauges, host_crash, snapshot, step
from .screen_text import hit, opened, press, screen_text

HOSTILE = [
    "[/red]", "[/tmp/x]", "[rank0]: torch.OutOfMemoryError", "[red]x[/red]", "[bold", "back\\[slash", "x=[1, 2]",
    "\x1b]52;c;cm0gLXJm\x07after", "\x1b]0;title\x1b\\", "\x1b[31mred\x1b[0m", "bell\x07", "a\x00b\x9bc", "\u202egpj.exe",
    "显存不足 🙂", "e\u0301" * 30, "x" * 5000, "two\nlines\r\nthree", "$primary {x} %s", "",
]  # fmt: skip


def poisoned(text: str) -> State:
    """Every text field a stranger could have written."""
    state = host_crash(log=text or "log")
    evidence = tuple(replace(one, text=text, process=text, fields={"gpu": text}) for one in state.crash.evidence)
    settings = tuple(replace(one, key=text, value=text, span=replace(one.span, path=text)) for one in state.run.settings)  # type: ignore[type-var]
    run = replace(state.run, title=text, model_name=text, notes=(text,), settings=settings, recognised_by=text, algorithm=text)
    box = replace(
        state.machine,
        gpus=tuple(replace(gpu, name=text, problem=text) for gpu in state.machine.gpus),
        libraries={text: text},
        environment=text,
        problems=(text,),
        driver=text,
    )
    told = replace(
        state.diagnosis,
        title=text,
        explains=text,
        remarks=(text, text),
        path=tuple(
            replace(one, asks=text, why=text, because=text, if_unknown=text, choices=tuple(replace(c, title=text) for c in one.choices))
            for one in state.diagnosis.path
        ),
        ruled_out=tuple(replace(one, title=text, because=text) for one in state.diagnosis.ruled_out),
        cases=tuple(replace(one, title=text, differs=(text,)) for one in state.diagnosis.cases) * 2,
    )
    bad = step(
        "bad", text, text, text, title=text, why=text, costs=text, caveats=(text,), sources=(text,), documented=text, selected=True
    )
    plan = replace(state.plan, steps=(bad, *state.plan.steps), shortfall=text)
    crash = replace(state.crash, evidence=evidence, settings={text: text}, unclear_because=text)
    asked = replace(state.asked, script=Path("/home") / (text.replace("\x00", "") or "run.sh"))
    return replace(state, crash=crash, run=run, machine=box, diagnosis=told, plan=plan, asked=asked)


class HostileDriver(MadeDriver):
    """Gives hostile diffs, proofs and paths too."""

    text = ""

    def preview(self, state: State) -> Preview:
        destination = self.folder / "out.sh"
        return Preview(f"--- a\n+++ b\n@@ -1 +1 @@\n-{self.text}\n+{self.text}\n", (self.text,), destination, by_hand=(self.text,))

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        return Saved(Path(self.text.replace("\x00", "")), Path(self.text.replace("\x00", "")), self.text)


class HostileGauges(MadeGauges):
    """Processes and cards with hostile names."""

    text = ""

    def poll(self, now: float) -> object:  # type: ignore[override]
        given = snapshot(2, now)
        rows = []
        for row in given.gpus:
            processes = tuple(replace(one, user=self.text, command=self.text) for one in row.gpu.processes or ())
            rows.append(replace(row, gpu=replace(row.gpu, name=self.text, problem=self.text, processes=processes)))
        return replace(given, gpus=tuple(rows), problem=self.text)


async def clean(pilot: Pilot[int]) -> str:
    """The screen has its width, and nothing a terminal would obey."""
    shown = screen_text(pilot.app)
    width = pilot.app.size.width
    for one in shown.splitlines():
        assert cells(one) <= width
        assert not any(ord(character) < 32 or 0x7F <= ord(character) <= 0x9F for character in one)
        assert not set(one) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    return shown


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_passes_through_every_screen(text: str) -> None:
    driver = HostileDriver(poisoned(text), folder=Path("/nowhere"))
    driver.text = text
    gauges = HostileGauges()
    gauges.text = text
    async with opened(driver=driver, gauges=gauges) as pilot:
        await clean(pilot)
        for key in ("w", "escape", "g", "escape", "question_mark", "escape", "o", "escape", "escape", "escape"):
            await hit(pilot, key)
            await clean(pilot)
        await press(pilot, "enter", "enter", "enter", "4", "enter", "enter", "enter")
        for key in ("e", "escape", "a", "escape", "space", "enter", "enter", "enter"):
            await hit(pilot, key)
            await clean(pilot)


@pytest.mark.parametrize("text", ["[rank0]: torch.OutOfMemoryError", "[/red]", "[red]x[/red]", "显存不足 🙂"])
async def test_brackets_and_wide_characters_are_shown_as_they_are(text: str) -> None:
    async with opened(poisoned(text), size=(120, 40)) as pilot:
        assert text in await clean(pilot)


async def test_a_hostile_note_is_shown_as_text() -> None:
    class Refusing(MadeDriver):
        def toggle(self, state: State, step_id: str) -> State:
            raise ValueError("[/red] \x1b[2J gone")

    async with opened(driver=Refusing()) as pilot:
        await press(pilot, *["enter"] * 4, "space")
        assert "that could not be done: [/red]  gone" in await clean(pilot)
