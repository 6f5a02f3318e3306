"""Every claim of the verdict opens the very line that proves it, however the log was given."""

import gzip
import shutil
from pathlib import Path

import pytest

from advisor.session import SessionRequest, State
from advisor.tui.driver import SessionDriver
from advisor.tui.evidence_view import EvidenceView, source_of
from advisor.tui.log_window import LogWindows
from advisor.tui.verdict import VerdictScreen
from tests.loops import each

from .screen_text import opened, press, screen_text

RUNS = Path(__file__).parent.parent / "runs"
STORIES = sorted(folder.name for folder in RUNS.iterdir() if folder.is_dir())


def read(*logs: Path) -> State:
    return SessionDriver(SessionRequest(logs=logs)).open(lambda _: None)


def every_proof_opens(state: State) -> None:
    assert state.crash.evidence
    for evidence in state.crash.evidence:
        window = LogWindows(source_of(state, evidence.file)).around(evidence.line, 3)
        assert evidence.text.expandtabs(8)[:40].strip() in window.lines[evidence.line - window.first]


@each("story", STORIES)
def test_every_proof_of_a_story_is_found_in_its_log(story: str) -> None:
    every_proof_opens(read(*sorted((RUNS / story).glob("*.log"))))


def test_a_compressed_log_and_a_folder_of_logs_open_too(tmp_path: Path) -> None:
    plain = RUNS / "easyr1" / "train.log"
    packed = tmp_path / "train.log.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    every_proof_opens(read(packed))
    every_proof_opens(read(tmp_path))


async def test_a_log_given_by_a_relative_path_opens_at_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    shutil.copy(RUNS / "logic-rl" / "stage1.log", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    async with opened(driver=SessionDriver(SessionRequest(logs=(Path("logs/stage1.log"),)))) as pilot:
        assert isinstance(pilot.app.screen, VerdictScreen)
        await press(pilot, "o")
        assert isinstance(pilot.app.screen, EvidenceView)
        shown = screen_text(pilot.app)
        assert "logs/stage1.log  line 33, mark" in shown
        assert "▸ 33 E torch.OutOfMemoryError" in shown
