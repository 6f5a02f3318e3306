"""The app's driver over the real session, without a screen."""

from __future__ import annotations

import shlex
import subprocess

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


def test_a_preview_writes_nothing_and_the_demo_goes_into_the_users_state(driver, state, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    preview = driver.preview(state)
    assert preview.destination == tmp_path / "state" / "rl-oom-advisor" / "demo" / "run.fits.sh"
    assert "+    worker.actor.offload.offload_optimizer=false" in preview.diff
    assert preview.proof
    assert list(tmp_path.iterdir()) == []


def test_saving_writes_script_and_report_and_names_the_next_command(driver, state, tmp_path):
    saved = driver.save(state, tmp_path / "run.fits.sh", False)
    assert subprocess.run(shlex.split(saved.next_command), check=True, capture_output=True).stdout  # it works there
    assert any("rl-oom-advisor run.sh --log train.log" in note for note in saved.notes)
    own = SessionDriver(driver.asked).save(state, tmp_path / "own.fits.sh", False)
    assert own.next_command == f"bash {tmp_path / 'own.fits.sh'}"
    assert saved.path.read_bytes() != DEMO.script.read_bytes()
    assert saved.path.stat().st_mode & 0o777 == DEMO.script.stat().st_mode & 0o777
    assert "## What changes" in saved.report.read_text()
    with pytest.raises(FileExistsError):
        driver.save(state, tmp_path / "run.fits.sh", False)


def test_a_second_demo_takes_the_place_of_the_first(driver, state, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    destination = driver.preview(state).destination
    assert [driver.save(state, destination, False).path for _ in range(2)] == [destination] * 2


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


def test_a_program_that_a_script_runs_is_started_by_that_script(tmp_path, monkeypatch):
    """What starts is the launcher, which must be told of the new file: a bare `python FILE` would lose its options."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    launch = tmp_path / "run.sh"
    launch.write_text("accelerate launch --num_processes 8 train_grpo.py\n")
    (tmp_path / "train_grpo.py").write_text(
        "from trl import GRPOConfig, GRPOTrainer\n"
        "args = GRPOConfig(output_dir='out', per_device_train_batch_size=8, num_generations=8)\n"
        "GRPOTrainer(model='Qwen/Qwen2.5-0.5B', args=args, reward_funcs=len, train_dataset=None).train()\n"
    )
    log = tmp_path / "train.log"
    log.write_text(
        '  File "/opt/trl/trainer/grpo_trainer.py", line 1300, in _get_per_token_logps\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 2 has a total capacity of "
        "79.15 GiB of which 6.10 GiB is free.\n"
    )
    made = SessionDriver(SessionRequest(launch, (log,), gpus="8xA100-80GB"))
    state = made.open(lambda _: None)
    step = next(one for one in state.plan.steps if one.id == "lower-actor-micro-batch")
    state = state if step.selected else made.toggle(state, step.id)
    shown = made.preview(state)
    assert (shown.by_hand, shown.launch) == ((), tmp_path / "run.fits.sh")
    saved = made.save(state, shown.destination, force=False)
    assert saved.path.name == "train_grpo.fits.py"
    assert (saved.launch, saved.next_command) == (shown.launch, f"bash {shown.launch}")
    assert shown.launch.read_text().splitlines()[-1] == "accelerate launch --num_processes 8 train_grpo.fits.py"
    with pytest.raises(FileExistsError, match="train_grpo"):
        made.save(state, shown.destination, force=False)
    elsewhere = made.save(state, tmp_path / "state" / "other.py", force=True)
    assert elsewhere.next_command == ""
