"""Only open questions that decide something stand between the verdict and the plan; all answers are one key away."""

from pathlib import Path

import pytest

from advisor.session import SessionRequest
from advisor.tui.driver import SessionDriver
from advisor.tui.plan_view import PlanScreen
from advisor.tui.question import QuestionScreen
from advisor.tui.verdict import VerdictScreen
from tests.heavy import sampled
from tests.stories.told import DOCUMENTED

from .screen_text import hit, opened, press, screen_text
from .test_cases_at_sizes import case

LOG = """torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
79.15 GiB of which 1.10 GiB is free.
"""


@pytest.fixture
def unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionDriver:
    """A crash of a card, and nothing else."""
    monkeypatch.chdir(tmp_path)
    Path("train.log").write_text(LOG)
    return SessionDriver(SessionRequest(None, (Path("train.log"),)))


@pytest.mark.parametrize("name", sampled(DOCUMENTED, 2))
async def test_a_documented_case_is_written_with_four_keys(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(driver=case(name, tmp_path, monkeypatch)) as pilot:
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, PlanScreen)
        await press(pilot, "enter", "enter", "enter")
        assert "Written." in screen_text(pilot.app) or "pip install" in screen_text(pilot.app)


async def test_what_decides_is_asked_once_and_not_knowing_leads_on(unknown: SessionDriver) -> None:
    async with opened(driver=unknown) as pilot:
        assert "enter the open question" in screen_text(pilot.app)
        asked = []
        while not isinstance(pilot.app.screen, PlanScreen):
            await hit(pilot, "enter")
            asked.append(pilot.app.ui.question_id)  # type: ignore[attr-defined]
        assert len(asked) - 1 == len(set(asked[:-1])) <= 3
        for _ in asked[:-1]:
            await hit(pilot, "escape")
            assert isinstance(pilot.app.screen, QuestionScreen)
        await hit(pilot, "escape")
        assert isinstance(pilot.app.screen, VerdictScreen)


async def test_every_answer_is_listed_with_who_gave_it_and_leads_to_its_question(unknown: SessionDriver) -> None:
    async with opened(driver=unknown) as pilot:
        await press(pilot, "r")
        assert "by the log, line 1" in screen_text(pilot.app)
        await press(pilot, "down", "enter")
        assert isinstance(pilot.app.screen, QuestionScreen)
        assert pilot.app.ui.question == 1  # type: ignore[attr-defined]
