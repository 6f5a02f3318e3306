"""Saving: nothing is overwritten unasked, and the next command is shown."""

from pathlib import Path

from textual.widgets import Input

from advisor.state import State
from advisor.tui.driver import Preview, Saved
from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import (
    DiffScreen,
    OverwriteScreen,
    SavedScreen,
    SaveScreen,
    before_start,
    counts,
    diff_rows,
    last_words,
)
from advisor.tui.ui_text import texts
from tests.replacing import replace

from .made_state import DIFF, MadeDriver, host_crash
from .screen_text import opened, press, screen_text

TO_DIFF = ["enter", "enter"]
TO_SAVE = [*TO_DIFF, "s"]


async def test_saving_writes_and_shows_the_next_command(tmp_path: Path) -> None:
    driver = MadeDriver(folder=tmp_path)
    async with opened(driver=driver) as pilot:
        await press(pilot, *TO_DIFF)
        told = " ".join(screen_text(pilot.app).split())
        assert "Enter writes" in told
        assert "run.fits.md; run.sh stays as it is" in told
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, SavedScreen)
        assert "bash run.fits.sh" in screen_text(pilot.app)
        assert "run.fits.md" in "".join(screen_text(pilot.app).split())
        assert (tmp_path / "run.fits.sh").exists()
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, PlanScreen)


async def test_a_file_that_exists_is_replaced_only_after_y(tmp_path: Path) -> None:
    (tmp_path / "run.fits.sh").write_text("mine\n")
    driver = MadeDriver(folder=tmp_path)
    async with opened(driver=driver) as pilot:
        await press(pilot, *TO_DIFF, "enter")
        assert isinstance(pilot.app.screen, OverwriteScreen)
        assert "exists already" in screen_text(pilot.app)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, SaveScreen)
        await press(pilot, "enter", "n")
        assert isinstance(pilot.app.screen, SaveScreen)
        assert (tmp_path / "run.fits.sh").read_text() == "mine\n"
        await press(pilot, "enter", "y")
        assert isinstance(pilot.app.screen, SavedScreen)
        assert (tmp_path / "run.fits.sh").read_text() == "fits\n"
        assert driver.calls[-1] == "save run.fits.sh True"


async def test_the_destination_can_be_edited_and_letters_are_letters(tmp_path: Path) -> None:
    driver = MadeDriver(folder=tmp_path)
    async with opened(driver=driver) as pilot:
        await press(pilot, *TO_SAVE)
        pilot.app.screen.query_one(Input).value = str(tmp_path) + "/"
        await press(pilot, "end", *"qwg?y.sh")
        assert isinstance(pilot.app.screen, SaveScreen)
        assert "qwg?y.md" in screen_text(pilot.app).replace("\n", "")
        await press(pilot, "enter")
        assert (tmp_path / "qwg?y.sh").exists()


async def test_a_folder_that_cannot_be_written_is_told_and_can_be_changed(tmp_path: Path) -> None:
    driver = MadeDriver(folder=tmp_path / "nowhere")
    async with opened(driver=driver) as pilot:
        await press(pilot, *TO_SAVE, "enter")
        assert isinstance(pilot.app.screen, SaveScreen)
        assert "nothing was written" in screen_text(pilot.app)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, DiffScreen)


async def test_a_refused_edit_shows_its_reason_and_cannot_be_saved() -> None:
    class Refusing(MadeDriver):
        def preview(self, state: object) -> Preview:
            return Preview("", refused="run.sh:9 the value is computed by a command")

    async with opened(driver=Refusing()) as pilot:
        await press(pilot, *TO_SAVE)
        assert isinstance(pilot.app.screen, DiffScreen)
        assert "the value is computed by a command" in screen_text(pilot.app)


class ByHand(MadeDriver):
    """A plan that changes a version and no file."""

    def preview(self, state: State) -> Preview:
        return Preview("", by_hand=('Change deepspeed: pip install "deepspeed>=0.16.8"',), report=self.folder / "r.md")

    def save(self, state: State, destination: Path, force: bool) -> Saved:
        destination.write_text("why\n")
        return Saved(destination, destination, "bash run.sh")


async def test_a_plan_that_changes_no_file_says_what_to_do_and_writes_only_the_report(tmp_path: Path) -> None:
    async with opened(driver=ByHand(folder=tmp_path)) as pilot:
        await press(pilot, "enter", "enter")
        shown = screen_text(pilot.app)
        assert "run.sh stays as it is" in shown
        assert 'pip install "deepspeed>=0.16.8"' in shown
        assert "enter write the report" in shown
        await press(pilot, "s")
        assert "Write the report" in screen_text(pilot.app)
        await press(pilot, "escape", "enter")
        assert isinstance(pilot.app.screen, SavedScreen)
        shown = screen_text(pilot.app)
        assert shown.index("By hand first") < shown.index("Next          bash run.sh")
        assert "Script" not in shown
        assert [path.name for path in tmp_path.iterdir()] == ["r.md"]


async def test_without_a_place_for_the_report_there_is_nothing_to_enter() -> None:
    class NoReport(ByHand):
        def preview(self, state: State) -> Preview:
            return replace(super().preview(state), report=None)

    async with opened(driver=NoReport()) as pilot:
        await press(pilot, *TO_SAVE)
        assert isinstance(pilot.app.screen, DiffScreen)
        assert "pip install" in screen_text(pilot.app)


async def test_long_lines_of_the_diff_can_be_read_sideways() -> None:
    async with opened() as pilot:
        await press(pilot, "enter", "enter", "right")
        assert "optimizer=false" in screen_text(pilot.app)
        assert "    worker.actor" not in screen_text(pilot.app)
        await press(pilot, "left", "left")
        assert "    worker.actor" in screen_text(pilot.app)


async def test_the_diff_follows_the_plan() -> None:
    driver = MadeDriver()
    async with opened(driver=driver) as pilot:
        await press(pilot, "enter", "enter", "escape", "space", "enter")
        assert driver.calls.count("preview") == 2


def test_a_diff_has_line_numbers_and_signs() -> None:
    shown = texts(diff_rows(DIFF)).splitlines()
    assert shown[0] == "    7        data.train_files=[a, b] \\"
    assert shown[2] == "    9  -     trainer.n_gpus_per_node=8"
    assert shown[3] == "    9  +     trainer.n_gpus_per_node=8 \\"
    assert shown[-1].startswith("   11  +")
    assert counts(DIFF) == "3 lines added, 1 removed"


def test_lines_that_begin_with_signs_are_not_taken_for_file_names() -> None:
    diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n--- x\n+++ y\n same\n"
    assert texts(diff_rows(diff)).splitlines() == ["    1  - -- x", "    1  + ++ y", "    2    same"]


def test_the_last_words_name_only_what_was_written_and_what_comes_first() -> None:
    alone = Saved(Path("a.md"), Path("a.md"), "", ("pip install x",))
    assert last_words(alone) == "report   a.md\nby hand  pip install x"


def test_the_last_words_can_be_copied() -> None:
    assert last_words(Saved(Path("a.fits.sh"), Path("a.fits.md"), "bash a.fits.sh")).endswith("bash a.fits.sh")


def test_the_word_that_changes_is_never_out_of_sight() -> None:
    short, long = "x=1 " * 18, "data.train_files=/data/a.parquet " * 20
    diff = f"--- a\n+++ b\n@@ -1,2 +1,3 @@\n+# {'k' * 70} True -> False\n-{short}key=True\n+{short}key=False\n"
    diff += f"-{long}key=True {long}\n+{long}key=False {long}\n"
    rows = texts(diff_rows(diff, 80)).splitlines()
    assert max(map(len, rows)) <= 80
    for told, times in (("-> False", 1), ("key=True", 2), ("key=False", 2)):
        assert sum(told in row for row in rows) == times, (told, rows)
    assert len(rows) == 8, "a line of two pieces three times, and two that begin before their change"


async def test_what_to_look_at_before_the_run_starts_again(tmp_path: Path) -> None:
    saved = Saved(tmp_path / "run.fits.sh", tmp_path / "run.fits.md", "bash run.fits.sh")
    state = host_crash()
    topology = replace(state.run.topology, nodes=2)
    told = texts(before_start(saved, replace(state, run=replace(state.run, topology=topology)), ["77"], 100))
    for words in ("kill 77", "each of the 2 nodes", "rl-oom-advisor watch -- bash run.fits.sh"):
        assert words in told
    told = texts(before_start(replace(saved, next_command="sbatch a.fits.slurm"), state, [], 100))
    assert "watch" not in told
    assert "diff " in told
