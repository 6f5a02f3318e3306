"""Somebody who starts with nothing, on a terminal of any kind, is told what to do in a calm sentence."""

import pytest

from advisor.crash.evidence import Crash, Evidence
from advisor.state import State
from advisor.tui.app import AdvisorApp
from advisor.tui.breadcrumb import breadcrumb
from advisor.tui.facts import gpu_words
from advisor.tui.gauges_view import counted_rows
from advisor.tui.machine_view import MachineScreen, knob_rows
from advisor.tui.proof import headline, proof_rows
from advisor.tui.terminal import draws_signs
from advisor.tui.ui_state import Offers
from advisor.tui.ui_text import plain, texts, width_of
from advisor.tui.verdict import VerdictScreen, cause_rows
from tests.replacing import replace

from .made_state import MadeDriver, MadeGauges, host_crash, machine, no_log, plan_of
from .screen_text import opened, press, screen_text, settle


async def test_with_nothing_given_the_first_screen_says_what_to_give() -> None:
    async with opened(no_log(script=False)) as pilot:
        shown = screen_text(pilot.app)
        assert "Give the launch script and the log of the run that died" in shown
        assert "rl-oom-advisor --demo shows a bundled crash" in shown
        await press(pilot, "d")
        assert isinstance(pilot.app.screen, MachineScreen)


async def test_d_opens_the_bundled_crash_where_nothing_was_given() -> None:
    app = AdvisorApp(
        lambda: MadeDriver(no_log(script=False)),
        MadeGauges(),
        no_color=False,
        plain_ascii=False,
        offers=Offers(demo=MadeDriver),
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot)
        assert "d demo" in screen_text(app)
        await press(pilot, "d")
        assert isinstance(app.screen, VerdictScreen)
        await press(pilot, "escape", "escape")
        assert "d demo" not in screen_text(app)


async def test_with_a_script_nobody_is_told_to_give_one() -> None:
    async with opened(no_log()) as pilot:
        assert "Give the launch script" not in screen_text(pilot.app)


def test_an_empty_log_is_called_empty_and_a_missing_one_missing() -> None:
    nothing = Crash("unclear", "unknown", "unknown")
    assert headline(nothing, logs=False).startswith("No log was given")
    assert headline(nothing).startswith("The log is empty")
    assert headline(replace(nothing, lines_read=3)).startswith("The log does not prove")


def named(framework: str) -> State:
    state = host_crash()
    return replace(state, run=replace(state.run, framework=framework, algorithm="ppo"))


@pytest.mark.parametrize(
    ("width", "ends"),
    [(118, "open-reasoner-zero · PPO"), (78, "open-reasoner-zero · PPO"), (58, "open-re…"), (53, " ·")],
)
def test_a_long_name_stays_beside_the_breadcrumb_as_long_as_there_is_room(width: int, ends: str) -> None:
    shown = breadcrumb(named("open-reasoner-zero"), "plan", 0, width)
    assert width_of(shown) <= width
    assert plain(shown).endswith(ends)
    assert "Machine ✓" in plain(shown)
    assert "Save ·" in plain(shown)


def test_a_card_whose_name_says_its_size_is_not_sized_twice() -> None:
    sized = machine(2)
    sized = replace(sized, gpus=tuple(replace(gpu, name="A100-80GB") for gpu in sized.gpus))
    assert gpu_words(sized) == "2 × A100-80GB"
    assert gpu_words(machine(2)) == "2 × A100 40 GiB"


def test_gauges_say_which_machine_the_diagnosis_counts_with_unless_it_is_this_one() -> None:
    assert "8 × A100 40 GiB · 760 GiB RAM" in texts(counted_rows(machine(), 78))
    assert counted_rows(replace(machine(), sources={"gpus": "measured", "host.total": "measured"}), 78) == []


def test_habits_of_no_framework_are_not_listed() -> None:
    run = host_crash().run
    assert "rollout.memory_share" in texts(knob_rows(run, 78))
    assert "rollout.memory_share" not in texts(knob_rows(replace(run, framework="unknown"), 78))


@pytest.mark.parametrize(
    ("term", "encoding", "signs"),
    [("xterm-256color", "utf-8", True), ("linux", "utf-8", False), ("xterm", "iso8859-1", False)],
)
def test_signs_are_drawn_only_where_the_terminal_has_them(
    term: str, encoding: str, signs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Out:
        pass

    out = Out()
    out.encoding = encoding  # type: ignore[attr-defined]
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("advisor.tui.terminal.sys.stdout", out)
    assert draws_signs() is signs


def test_a_verdict_that_is_open_says_its_first_sentence_once() -> None:
    open_end = replace(
        no_log().crash, lines_read=3, verdict="unclear", unclear_because="Somebody sent SIGKILL. So do operators."
    )
    assert headline(open_end).endswith("Somebody sent SIGKILL.")


def test_what_a_logger_printed_before_gives_way_where_there_is_no_room() -> None:
    said = "(WorkerDict pid=31) INFO 03-04 11:02:03 worker.py:133] Sleep mode freed 23.02 GiB memory"
    crash = replace(host_crash().crash, evidence=(Evidence("sleep", "telemetry", "train.log", 7, said),))
    shown = {width: texts(proof_rows(crash, {}, width)) for width in (78, 120)}
    assert "Sleep mode freed 23.02 GiB memory" in shown[78]
    assert "pid=31" not in shown[78]
    assert said in shown[120]


def test_a_case_is_named_only_where_one_of_its_steps_is_proposed_here() -> None:
    state = host_crash()
    assert "Looks like" in texts(cause_rows(state, 78))
    assert "Looks like" not in texts(cause_rows(state.with_plan(plan_of(())), 78))
