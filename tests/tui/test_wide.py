"""Where there is room, what else would take a key stands beside: the log at the proof, memory, its arithmetic."""

from pathlib import Path

from tests.replacing import replace

from .made_state import host_crash
from .screen_text import opened, press, screen_text


async def test_the_log_stands_beside_the_evidence_and_follows_the_cursor(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    lines = [f"step {number} worker.actor.offload=1" for number in range(1, 42_000)]
    lines[41_210 - 1] = "\x1b[2J[red]" + "x" * 500
    log.write_text("\n".join(lines) + "\n")
    async with opened(host_crash(log=str(log)), size=(120, 40)) as pilot:
        shown = screen_text(pilot.app)
        assert "The log there" in shown
        assert "41 206 C step 41206" in shown
        assert "41 208 C step 41208" in shown
        assert "[red]xxx" in shown
        await press(pilot, "down")
        shown = screen_text(pilot.app)
        assert "41 212 C step 41212" in shown
        await pilot.resize_terminal(80, 24)
        await press(pilot)
        assert "The log there" not in screen_text(pilot.app)


async def test_a_log_that_is_gone_leaves_the_line_that_was_read() -> None:
    async with opened(host_crash(), size=(120, 40)) as pilot:
        assert "The chosen line" in screen_text(pilot.app)


async def test_memory_stands_beside_the_verdict_and_its_arithmetic_beside_memory() -> None:
    async with opened(host_crash(), size=(120, 40)) as pilot:
        shown = screen_text(pilot.app)
        assert "Memory, now and after the plan" in shown
        assert "723 of" in shown
        await press(pilot, "m")
        assert "The arithmetic of the actor update" in screen_text(pilot.app)
        await press(pilot, "up")
        assert "The arithmetic of generating rollouts" in screen_text(pilot.app)


async def test_what_sums_and_log_say_against_each_other_stands_once_under_the_headline_and_with_the_sums() -> None:
    state, doubt = host_crash(), "29 GiB of the 84 GiB are explained by nothing."
    state = replace(
        state,
        ledger=replace(state.ledger, doubts=(doubt,)),
        diagnosis=replace(state.diagnosis, remarks=(doubt, *state.diagnosis.remarks)),
    )
    async with opened(state, size=(120, 40)) as pilot:
        shown = " ".join(screen_text(pilot.app).split())
        assert shown.count("29 GiB of") == 1
        assert "it held 0.9 GB and is the victim" in shown.replace(" │", "")
        await press(pilot, "m")
        assert "29 GiB of the 84 GiB" in screen_text(pilot.app)


async def test_a_sum_is_read_with_the_reasons_and_not_under_the_headline() -> None:
    state, sum_of_it = host_crash(), "The 9.28 GiB asked for are 9.28 GiB ÷ 2 bytes."
    state = replace(state, diagnosis=replace(state.diagnosis, remarks=(sum_of_it, *state.diagnosis.remarks)))
    async with opened(state, size=(160, 40)) as pilot:
        lines = screen_text(pilot.app).splitlines()
        assert "Ray killed main_task" in lines[2]
        assert any("9.28 GiB asked for" in one for one in lines[3:])
