"""The app's driver over the real session, without a screen."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from advisor.demo import demo_files
from advisor.session import SessionRequest
from advisor.tui.driver import SessionDriver, expected_trouble

DEMO = demo_files()


@pytest.fixture(scope="module")
def driver():
    return SessionDriver(
        SessionRequest(script=DEMO.script, logs=(DEMO.log,), machine_files=(DEMO.machine,)), is_demo=True
    )


@pytest.fixture(scope="module")
def state(driver):
    return driver.open(lambda _: None)


def test_it_says_what_it_reads():
    told: list[str] = []
    SessionDriver(SessionRequest(logs=(DEMO.log,))).open(told.append)
    assert any("train.log" in sentence for sentence in told)


def test_a_preview_writes_nothing_and_goes_where_the_user_is(driver, state, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    preview = driver.preview(state)
    assert preview.destination == Path("run.fits.sh")
    assert "+    worker.actor.offload.offload_optimizer=false" in preview.diff
    assert preview.proof
    assert list(tmp_path.iterdir()) == []


def test_saving_writes_script_and_report_and_names_the_next_command(driver, state, tmp_path):
    saved = driver.save(state, tmp_path / "run.fits.sh", False)
    assert subprocess.run(shlex.split(saved.next_command), check=True, capture_output=True).stdout  # it works there
    assert any(f"bash {tmp_path / 'run.fits.sh'}" in note for note in saved.notes)
    own = SessionDriver(driver.asked).save(state, tmp_path / "own.fits.sh", False)
    assert own.next_command == f"bash {tmp_path / 'own.fits.sh'}"
    assert saved.path.read_bytes() != DEMO.script.read_bytes()
    assert saved.path.stat().st_mode & 0o777 == DEMO.script.stat().st_mode & 0o777
    assert "## What changes" in saved.report.read_text()
    with pytest.raises(FileExistsError):
        driver.save(state, tmp_path / "run.fits.sh", False)


def test_toggling_and_answering_give_new_states(driver, state):
    step = state.plan.selected()[0]
    assert step.id not in {each.id for each in driver.toggle(state, step.id).plan.selected()}
    question = next(each for each in state.diagnosis.path if each.source == "unknown")
    answered = driver.answer(state, question.question, question.choices[0].id)
    assert next(s for s in answered.diagnosis.path if s.question == question.question).source == "user"
    assert driver.answer(answered, question.question, None).answers == state.answers


def test_a_log_that_cannot_be_read_is_a_sentence_for_the_app(tmp_path):
    with pytest.raises(expected_trouble(), match=r"gone\.log"):
        SessionDriver(SessionRequest(logs=(tmp_path / "gone.log",))).open(lambda _: None)
