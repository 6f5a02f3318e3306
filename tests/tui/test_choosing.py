"""Started with nothing: recent runs, a tree of folders, pasted text, and the way back from each."""

import os
from pathlib import Path

import pytest
from textual import events

from advisor.crash.evidence import Crash
from advisor.crash.read import read_ends
from advisor.knowledge import open_knowledge
from advisor.recent import recent_in
from advisor.state import State
from advisor.tui.choose_view import ChooseScreen
from advisor.tui.files_view import FilesView, PasteView
from advisor.tui.machine_view import MachineScreen
from advisor.tui.ui_state import Offers
from advisor.tui.verdict import VerdictScreen
from tests.replacing import replace

from .made_state import MadeDriver, host_crash, no_log
from .screen_text import hit, opened, press, same_as_golden, screen_text, settle


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run.sh").write_text("python3 -m verl.trainer.main_ppo a=1\n")
    (tmp_path / "runs" / "train.log").write_text("CUDA out of memory\n" * 90)
    (tmp_path / "[red]old.log").write_text("x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("advisor.tui.choose_view.time.time", lambda: (tmp_path / "[red]old.log").stat().st_mtime + 200)
    return tmp_path


class Choosing:
    """Records what was opened."""

    def __init__(self, folder: Path, state: State | None = None) -> None:
        self.opened: list[tuple[str, list[str]]] = []
        self.folder, self.state = folder, state or host_crash()

    def files(self, script: Path | None, logs: tuple[Path, ...]) -> MadeDriver:
        if script is None and not logs:
            return MadeDriver(no_log(script=False))
        self.opened.append((script.name if script else "", [log.name for log in logs]))
        return MadeDriver(self.state)

    def offers(self) -> Offers:
        return Offers(
            MadeDriver, self.files, lambda: recent_in(self.folder, self.folder / "no-ray"), self.ending, self.paste
        )

    def ending(self, log: Path) -> Crash | None:
        knowledge = open_knowledge()
        return read_ends((log,), knowledge.signatures, *knowledge.phase_marks())

    def paste(self, text: str) -> Path:
        path = self.folder / "pasted.log"
        path.write_text(text)
        return path


def nothing() -> MadeDriver:
    return MadeDriver(no_log(script=False))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (60, 15)], ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_first_screen_names_recent_runs(folder: Path, size: tuple[int, int]) -> None:
    async with opened(driver=nothing(), size=size, offers=Choosing(folder).offers()) as pilot:
        assert isinstance(pilot.app.screen, ChooseScreen)
        same_as_golden(f"choose-{size[0]}x{size[1]}", screen_text(pilot.app))


async def test_each_log_says_how_it_ended_and_opens_with_its_script(folder: Path) -> None:
    (folder / "runs" / "older.log").write_text("step:1 - loss:0.1\nTraining finished.\n")
    os.utime(folder / "runs" / "older.log", (1, 1))
    choosing = Choosing(folder)
    async with opened(driver=nothing(), offers=choosing.offers()) as pilot:
        shown = [one.strip() for one in screen_text(pilot.app).splitlines()]
        for log, ending in (("train.log", "GPU memory ran out."), ("older.log", "Nothing in the log failed.")):
            at = next(at for at, one in enumerate(shown) if f"run.sh + runs/{log}" in one)
            assert shown[at + 1] == ending
        await press(pilot, "down", "enter")
        assert choosing.opened == [("run.sh", ["older.log"])]


async def test_a_log_that_cannot_be_read_only_says_nothing_of_its_end(folder: Path) -> None:
    (folder / "runs" / "train.log").write_bytes(b"\x00\x01\x02" * 9000)
    async with opened(driver=nothing(), offers=Choosing(folder).offers()) as pilot:
        assert "train.log" in screen_text(pilot.app)
        assert "GPU memory" not in screen_text(pilot.app)


async def test_enter_opens_the_marked_run_and_escape_comes_back_to_the_list(folder: Path) -> None:
    choosing = Choosing(folder)
    async with opened(driver=nothing(), offers=choosing.offers()) as pilot:
        await press(pilot, "enter")
        assert choosing.opened == [("run.sh", ["train.log"])]
        assert isinstance(pilot.app.screen, VerdictScreen)
        await press(pilot, "escape", "escape", "escape")
        assert isinstance(pilot.app.screen, MachineScreen)


async def test_a_log_alone_can_be_opened(folder: Path) -> None:
    choosing = Choosing(folder)
    async with opened(driver=nothing(), offers=choosing.offers()) as pilot:
        await press(pilot, "end", "enter")
        assert choosing.opened == [("", ["[red]old.log"])]


async def test_script_and_log_are_chosen_in_the_tree(folder: Path) -> None:
    choosing = Choosing(folder)
    async with opened(driver=nothing(), offers=choosing.offers()) as pilot:
        await press(pilot, "f")
        assert isinstance(pilot.app.screen, FilesView)
        assert "[red]old.log" in screen_text(pilot.app)
        await press(pilot, "enter", "down", "enter", "down", "enter")
        assert "chosen as the log: train.log" in screen_text(pilot.app)
        await press(pilot, "left", "u", "escape", "enter")
        assert choosing.opened == [("run.sh", ["train.log"])]


async def test_a_folder_that_cannot_be_read_says_so_in_its_place(folder: Path) -> None:
    async with opened(driver=nothing(), offers=Choosing(folder).offers()) as pilot:
        await press(pilot, "f")
        (folder / "runs" / "run.sh").unlink()
        (folder / "runs" / "train.log").unlink()
        (folder / "runs").rmdir()
        screen = pilot.app.screen
        assert isinstance(screen, FilesView)
        screen._opened.add(folder / "gone")
        screen._folder = folder / "gone"
        screen.reload()
        assert "cannot be read: no such file" in screen_text(pilot.app)
        await press(pilot, "enter", "left", "right", "escape")


async def test_pasted_text_is_taken_as_what_the_user_says_it_is(folder: Path) -> None:
    choosing = Choosing(folder)
    async with opened(driver=nothing(), offers=choosing.offers()) as pilot:
        await press(pilot, "p")
        assert isinstance(pilot.app.screen, PasteView)
        pilot.app.post_message(events.Paste("[/red] \x1b[31mfirst\n" + "line\n" * 20))
        await settle(pilot)
        assert "21 lines came" in screen_text(pilot.app)
        assert "[/red] first" in screen_text(pilot.app)
        await press(pilot, "l", "enter")
        assert choosing.opened == [("", ["pasted.log"])]


async def test_a_pasted_path_is_taken_at_once(folder: Path) -> None:
    async with opened(driver=nothing(), offers=Choosing(folder).offers()) as pilot:
        await press(pilot, "p")
        pilot.app.post_message(events.Paste(f"'{folder}/runs/run.sh' "))
        await press(pilot)
        assert isinstance(pilot.app.screen, ChooseScreen)
        assert "chosen as the script: run.sh" in screen_text(pilot.app)
        await press(pilot, "backspace")
        assert "read these" not in screen_text(pilot.app)


async def test_what_cannot_be_opened_says_why_and_the_list_is_there_again(folder: Path) -> None:
    choosing = Choosing(folder)
    offers = replace(choosing.offers(), files=lambda script, logs: _broken(choosing, script, logs))
    async with opened(driver=nothing(), offers=offers) as pilot:
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, ChooseScreen)
        assert "that could not be opened: run.sh is a picture" in screen_text(pilot.app)


def _broken(choosing: Choosing, script: Path | None, logs: tuple[Path, ...]) -> MadeDriver:
    driver = choosing.files(script, logs)
    driver.trouble = ValueError("run.sh is a picture") if script is not None else None
    return driver


async def test_every_key_there_is_safe(folder: Path) -> None:
    async with opened(driver=nothing(), offers=Choosing(folder).offers(), size=(60, 15)) as pilot:
        for way in ([], ["f"], ["p"]):
            for key in [*"bls", "u", "enter", "backspace", "left", "right", "down", "?", ":", "y"]:
                while not isinstance(pilot.app.screen, ChooseScreen):
                    await hit(pilot, "escape")
                    if isinstance(pilot.app.screen, MachineScreen | VerdictScreen):
                        pilot.app.ui.driver = nothing  # type: ignore[attr-defined]
                        pilot.app._open_driver(None)  # type: ignore[attr-defined]
                        await settle(pilot)
                for each in (*way, key):
                    await hit(pilot, each)
                assert pilot.app.is_running


async def test_an_empty_folder_offers_no_key_that_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with opened(driver=nothing(), offers=Choosing(tmp_path / "empty").offers(), size=(120, 40)) as pilot:
        keys = screen_text(pilot.app).splitlines()[-1]
        assert "f files" in keys
        for dead in ("open", "why not", "answers", "memory", "ticket", "facts"):
            assert dead not in keys
        await press(pilot, "enter", "w", "m", "r", "y", "i")
        assert isinstance(pilot.app.screen, ChooseScreen)
