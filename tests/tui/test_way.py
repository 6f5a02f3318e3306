"""The whole way through the app, as a person would go it, at three sizes."""

from pathlib import Path

import pytest
from textual.worker import WorkerFailed

from advisor.memory.fit import Fit
from advisor.state import State
from advisor.tui.app import AdvisorApp
from advisor.tui.evidence_view import EvidenceView
from advisor.tui.machine_view import MachineScreen
from advisor.tui.plan_view import PlanScreen
from advisor.tui.save_view import DiffScreen
from advisor.tui.verdict import VerdictScreen
from tests.replacing import replace

from .made_state import MadeDriver, gpu_crash, host_crash, no_log
from .screen_text import opened, press, same_as_golden, screen_text, settle

SIZES = [(80, 24), (120, 40), (60, 15)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_way_looks_as_it_should(size: tuple[int, int]) -> None:
    """Verdict, question, another answer, plan, toggled plan, diff, save."""
    name = f"{size[0]}x{size[1]}"
    async with opened(size=size) as pilot:
        same_as_golden(f"verdict-{name}", screen_text(pilot.app))
        await press(pilot, "r")
        same_as_golden(f"answers-{name}", screen_text(pilot.app))
        await press(pilot, "enter")
        same_as_golden(f"question-{name}", screen_text(pilot.app))
        await press(pilot, "4")
        same_as_golden(f"question-unknown-{name}", screen_text(pilot.app))
        await press(pilot, "u", "enter")
        same_as_golden(f"plan-{name}", screen_text(pilot.app))
        await press(pilot, "space")
        same_as_golden(f"plan-toggled-{name}", screen_text(pilot.app))
        await press(pilot, "space", "enter")
        same_as_golden(f"diff-{name}", screen_text(pilot.app))
        await press(pilot, "s")
        same_as_golden(f"save-{name}", screen_text(pilot.app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_what_is_looked_at_on_the_side_looks_as_it_should(size: tuple[int, int]) -> None:
    """Gauges, why not, help, a step explained, the arithmetic, the machine and the run."""
    name = f"{size[0]}x{size[1]}"
    async with opened(size=size) as pilot:
        for key, view in (("g", "gauges"), ("w", "why-not"), ("question_mark", "help")):
            await press(pilot, key)
            same_as_golden(f"{view}-{name}", screen_text(pilot.app))
            await press(pilot, "escape")
        await press(pilot, "escape")
        same_as_golden(f"run-{name}", screen_text(pilot.app))
        await press(pilot, "escape")
        same_as_golden(f"machine-{name}", screen_text(pilot.app))
        await press(pilot, *["enter"] * 3)
        assert isinstance(pilot.app.screen, PlanScreen)
        for key, view in (("e", "explain"), ("a", "arithmetic")):
            await press(pilot, key)
            same_as_golden(f"{view}-{name}", screen_text(pilot.app))
            await press(pilot, "escape")


async def test_a_very_wide_terminal_shows_three_panes() -> None:
    async with opened(gpu_crash(), size=(160, 40)) as pilot:
        same_as_golden("verdict-160x40", screen_text(pilot.app))
        await press(pilot, "enter")
        same_as_golden("plan-160x40", screen_text(pilot.app))


@pytest.mark.parametrize("state", [host_crash(), gpu_crash()], ids=["host", "gpu"])
async def test_enter_twice_reaches_the_diff_where_nothing_decisive_is_open(state: State) -> None:
    async with opened(state) as pilot:
        assert isinstance(pilot.app.screen, VerdictScreen)
        await press(pilot, "enter", "enter")
        assert isinstance(pilot.app.screen, DiffScreen)
        assert "bash -n clean" in screen_text(pilot.app)


async def test_escape_goes_the_same_way_back_to_the_machine() -> None:
    async with opened() as pilot:
        await press(pilot, "r", "enter", "enter", "enter")
        seen = []
        for _ in range(6):
            seen.append(type(pilot.app.screen).__name__)
            await press(pilot, "escape")
        assert seen == [
            "DiffScreen",
            "PlanScreen",
            "QuestionScreen",
            "VerdictScreen",
            "RunScreen",
            "MachineScreen",
        ]
        assert isinstance(pilot.app.screen, MachineScreen)


async def test_an_earlier_answer_can_be_changed_and_the_difference_is_told() -> None:
    driver = MadeDriver()
    async with opened(driver=driver) as pilot:
        await press(pilot, "r", "enter", "1")
        assert driver.calls == ["answer memory gpu"]
        shown = screen_text(pilot.app)
        assert "cause changed from “host copies" in shown
        assert "to “not settled”" in " ".join(shown.split())
        assert "what the evidence says" in shown
        await press(pilot, "u")
        assert driver.calls[-1] == "answer memory None"
        assert "answered by the log" in screen_text(pilot.app)


async def test_enter_on_an_earlier_answer_goes_to_its_question() -> None:
    async with opened() as pilot:
        await press(pilot, "r", "end", "enter", "end", "up")
        assert "enter change this answer" in screen_text(pilot.app)
        assert "Questions 3/3" in screen_text(pilot.app)
        await press(pilot, "enter")
        assert "Questions 1/3" in screen_text(pilot.app)


async def test_the_palette_leads_to_every_question_from_the_plan() -> None:
    async with opened() as pilot:
        await press(pilot, "enter", ":", *"question", "space", "2", "enter")
        await settle(pilot)
        assert "Questions 2/3" in screen_text(pilot.app)


async def test_enter_on_another_answer_takes_it_and_goes_on() -> None:
    driver = MadeDriver()
    async with opened(driver=driver) as pilot:
        await press(pilot, "r", "enter", "down", "enter")
        assert driver.calls == ["answer memory shm"]
        assert isinstance(pilot.app.screen, PlanScreen)


async def test_i_do_not_know_always_says_how_to_find_out() -> None:
    async with opened() as pilot:
        await press(pilot, "r", "enter", "end")
        assert "How to find out" in screen_text(pilot.app)
        assert "dmesg -T" in screen_text(pilot.app)


async def test_quick_keys_arrive_where_slow_ones_would() -> None:
    async with opened() as pilot:
        await pilot.press("r", "enter", "4", "enter", "space")
        await press(pilot)
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(pilot.app.screen, PlanScreen)


async def test_toggling_moves_the_bars_and_what_conflicts() -> None:
    driver = MadeDriver()
    async with opened(driver=driver) as pilot:
        await press(pilot, "enter")
        before = screen_text(pilot.app)
        assert "632 of 760 G" in before
        await press(pilot, "space")
        after = screen_text(pilot.app)
        assert driver.calls == ["toggle optimizer-offload-off"]
        assert "▸ [ ] worker.actor.offload.offload_optim" in after or "▸ [ ] …" in after
        assert "693 of 760 G" in after
        assert "does not fit" in after
        await press(pilot, "down", "down", "down", "space", "up", "space")
        assert "also switched: Change rollout_batch_size off" in screen_text(pilot.app)


async def test_the_arrows_show_the_bars_of_another_phase() -> None:
    async with opened() as pilot:
        await press(pilot, "enter")
        assert "the actor update   2 changes on" in screen_text(pilot.app)
        await press(pilot, "right")
        assert "generating rollouts   2 changes on" in screen_text(pilot.app)


async def test_the_fullest_phase_after_is_named_and_one_key_shows_it_and_returns() -> None:
    async with opened() as pilot:
        await press(pilot, "enter")
        assert "f  fullest after: GPU 34.1 G  fits  generating rollouts" in screen_text(pilot.app)
        await press(pilot, "f")
        shown = screen_text(pilot.app)
        assert "generating rollouts   2 changes on" in shown
        assert "fullest after" not in shown
        await press(pilot, "f")
        assert "the actor update   2 changes on" in screen_text(pilot.app)


async def test_where_there_are_panes_the_key_line_names_tab_and_narrowing_brings_the_keys_back() -> None:
    async with opened(size=(120, 40)) as pilot:
        assert "tab other pane" in screen_text(pilot.app)
        await press(pilot, "tab")
        assert pilot.app.focused is pilot.app.screen.query_one("#second")
        await pilot.resize_terminal(80, 24)
        await press(pilot)
        assert pilot.app.focused is pilot.app.screen.query_one("#main")
        assert "tab other pane" not in screen_text(pilot.app)
        await press(pilot, "down")
        assert "▸ M top holders" in screen_text(pilot.app)


async def test_resizing_while_a_question_is_open_keeps_the_marked_answer() -> None:
    async with opened() as pilot:
        await press(pilot, "r", "enter", "down")
        for size in ((120, 40), (50, 10), (60, 15), (160, 45), (80, 24)):
            await pilot.resize_terminal(*size)
            await press(pilot)
        assert "▸ 3   Shared memory" in screen_text(pilot.app)


async def test_a_question_shows_what_its_own_answer_makes_less_likely_and_no_other() -> None:
    async with opened(size=(120, 40)) as pilot:
        await press(pilot, "r", "enter")
        assert "Less likely       GPU memory: no allocator message" in screen_text(pilot.app)
        await press(pilot, "r", "down", "enter")
        assert "Less likely" not in screen_text(pilot.app)


async def test_without_a_log_the_machine_comes_first_and_the_way_goes_on() -> None:
    async with opened(no_log()) as pilot:
        assert isinstance(pilot.app.screen, MachineScreen)
        await press(pilot, "enter", "enter")
        assert "No log was given" in screen_text(pilot.app)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, PlanScreen)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, VerdictScreen)


async def test_without_a_script_the_run_says_what_it_needs_and_nothing_can_be_written() -> None:
    async with opened(no_log(script=False)) as pilot:
        await press(pilot, "enter")
        assert "rl-oom-advisor run.sh --log train.log" in " ".join(screen_text(pilot.app).split())
        await press(pilot, "enter", "enter", "enter")
        assert isinstance(pilot.app.screen, DiffScreen)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, DiffScreen)
        assert "nothing to write" in screen_text(pilot.app)


async def test_a_log_opens_at_the_proof_and_moves_between_marks(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {number} worker.actor.offload=1\n" for number in range(1, 42_000)))
    state = host_crash(log=str(log))
    async with opened(state) as pilot:
        await press(pilot, "o")
        assert isinstance(pilot.app.screen, EvidenceView)
        assert "▸ 41 207 E step 41207" in screen_text(pilot.app)
        await press(pilot, "n")
        assert "▸ 41 211 M step 41211" in screen_text(pilot.app)
        await press(pilot, "N", "N")
        assert "▸ 41 198 P step 41198" in screen_text(pilot.app)
        assert "41 199 C step" in screen_text(pilot.app)
        await press(pilot, "home", "up")
        assert "40 89" in screen_text(pilot.app)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, VerdictScreen)


async def test_a_log_that_moved_away_says_so_and_the_app_goes_on() -> None:
    async with opened() as pilot:
        await press(pilot, "o")
        assert "cannot be shown" in screen_text(pilot.app)
        await press(pilot, "n", "right", "escape", "enter")
        assert isinstance(pilot.app.screen, PlanScreen)


async def test_what_a_driver_refuses_is_told_and_nothing_changes() -> None:
    class Refusing(MadeDriver):
        def toggle(self, state: State, step_id: str) -> State:
            raise ValueError("512 does not divide by 24")

    async with opened(driver=Refusing()) as pilot:
        await press(pilot, "enter", "space")
        assert "that could not be done: 512 does not divide by 24" in screen_text(pilot.app)
        assert "[x]" in screen_text(pilot.app)


async def test_a_bug_is_kept_for_the_door_and_does_not_flood_the_terminal() -> None:
    class Broken(MadeDriver):
        def toggle(self, state: State, step_id: str) -> State:
            raise KeyError("a bug")

    app = AdvisorApp(Broken, None, no_color=False, plain_ascii=False)

    async def toggle() -> None:
        async with app.run_test() as pilot:
            await settle(pilot)
            await pilot.press("enter", "space")
            await settle(pilot)

    with pytest.raises(WorkerFailed):  # the pilot raises it again
        await toggle()
    assert isinstance(app.fault, KeyError)
    assert not app._exit_renderables


async def test_an_unreadable_file_ends_the_app_with_two_and_one_sentence() -> None:
    driver = MadeDriver(trouble=OSError("run.sh: no such file"))
    async with opened(driver=driver) as pilot:
        assert pilot.app.return_code == 2
        assert pilot.app.trouble == "run.sh: no such file"


async def test_a_terminal_that_is_too_small_gets_one_sentence_and_recovers() -> None:
    async with opened(size=(50, 12)) as pilot:
        assert screen_text(pilot.app).strip().startswith("This terminal is 50×12")
        assert "Host RAM" not in screen_text(pilot.app)
        await pilot.resize_terminal(80, 24)
        await press(pilot)
        assert "Host RAM ran out" in screen_text(pilot.app)


async def test_resizing_keeps_the_place_and_changes_the_panes() -> None:
    async with opened() as pilot:
        await press(pilot, "down")
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        wide = screen_text(pilot.app)
        assert "▸ M top holders: 8 × ray::WorkerDict" in wide
        assert "│ Likely cause" in wide


async def test_a_plan_without_steps_says_why_and_is_no_dead_end() -> None:
    state = host_crash()
    state = state.with_plan(replace(state.plan, steps=(), fit=Fit("cannot_be_said")))
    async with opened(state) as pilot:
        await press(pilot, "enter")
        assert "nothing to propose" in screen_text(pilot.app)
        assert "More gradient accumulation: it does not lower the peak" in screen_text(pilot.app)
        await press(pilot, "space", "e", "a", "escape", "escape")
        assert isinstance(pilot.app.screen, VerdictScreen)


async def test_what_is_on_stands_first_and_enter_on_a_plan_with_nothing_on_switches_the_marked_step_on() -> None:
    crash = host_crash()
    steps = tuple(replace(step, selected=number == 2) for number, step in enumerate(crash.plan.steps))
    async with opened(crash.with_plan(replace(crash.plan, steps=steps))) as pilot:
        await press(pilot, "enter")
        assert "▸ [x] RAY_memory_usage_threshold" in screen_text(pilot.app)
    steps = tuple(replace(step, selected=False) for step in crash.plan.steps)
    async with opened(crash.with_plan(replace(crash.plan, steps=steps))) as pilot:
        await press(pilot, "enter", "enter")
        assert "▸ [x]" in screen_text(pilot.app)
        await press(pilot, "left_square_bracket", "right_square_bracket", "slash", *"rollout", "enter")
        assert pilot.app.ui.stage == "plan"  # type: ignore[attr-defined]
        assert "RAY_memory" not in screen_text(pilot.app)
