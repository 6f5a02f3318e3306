"""Every reason not to start a run again, each told in its sentence; the exit is the command's own."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from advisor.retry import attempt, loop
from advisor.retry.attempt import Death, History, NextAttempt, RetryRequest, free_name
from advisor.retry.declined import SENTENCES, Declined, NotRetried
from advisor.retry.leftovers import is_rays_own, wait_until_gone
from advisor.watch.launch_word import script_place, with_script
from advisor.watch.launcher import WatchResult
from advisor.watch.notify import EventCommand
from advisor.watch.process_tree import began
from advisor.watch.request import WatchRequest
from tests.watch.made_trainer import DIED, SCRIPT, TORCH, put_record, put_trainer

EXIT_1 = 1 << 8


@pytest.fixture
def attempts(tmp_path, monkeypatch):
    """Runs `run.sh` as the loop does, but every attempt ends as it is told: output and wait status of each."""
    monkeypatch.chdir(tmp_path)

    def run(*ends, script=SCRIPT, command=("bash", "run.sh"), **asked):
        put_trainer(tmp_path, script)
        started, told = [], []

        def watched(request, _):
            output, result = ends[len(started)]
            started.append(request)
            folder = put_record(tmp_path / f"record-{len(started)}", output)
            return result._replace(folder=folder) if isinstance(result, WatchResult) else WatchResult(folder, result)

        monkeypatch.setattr(loop, "watch", watched)
        monkeypatch.setattr(loop._Attempts, "_outlook", lambda _: "")
        how = RetryRequest(**{"most": 1, "wait_s": 0.1, **asked})
        ended = loop.run_with_retries(WatchRequest(command), how, EventCommand("", told.append), told.append)
        assert told[-1] == ended.declined.sentence
        assert (tmp_path / "run.sh").read_text() == script
        return ended, started

    return run


def why(ended: tuple[loop.RetriedRun, list[WatchRequest]]) -> NotRetried:
    return ended[0].declined.why


def test_every_reason_has_a_sentence():
    assert set(SENTENCES) == set(NotRetried)


def test_what_ended_well_is_left_alone(attempts):
    assert why(attempts(("", 0))) is NotRetried.ENDED_WELL


@pytest.mark.parametrize(("output", "status"), [("KeyError: 'x'\n", EXIT_1), (DIED, None)])
def test_a_crash_or_an_end_that_is_not_proven_is_not_answered(attempts, output, status):
    assert why(attempts((output, status))) is NotRetried.NOT_PROVEN


@pytest.mark.parametrize(
    "end",
    [int(signal.SIGINT), 130 << 8, WatchResult(None, EXIT_1, stopped_by=int(signal.SIGTERM))],
    ids=["signal", "code of a shell", "passed on"],
)
def test_what_somebody_stopped_stays_stopped_though_it_died_of_memory(attempts, end):
    ended = attempts((DIED, end))
    assert why(ended) is NotRetried.STOPPED
    assert len(ended[1]) == 1


@pytest.mark.parametrize("command", [("python3", "-m", "verl.trainer.main_ppo"), ("bash", "-c", "exit 1")])
def test_a_command_without_a_script_has_nothing_to_change(attempts, command):
    assert why(attempts((DIED, EXIT_1), command=command)) is NotRetried.NO_LAUNCH


def test_a_script_without_a_training_command_has_nothing_to_change(attempts):
    assert why(attempts((DIED, EXIT_1), script="echo hello\n")) is NotRetried.NO_LAUNCH


def test_where_nothing_would_resume_it_is_started_again_only_if_that_is_wished(attempts):
    ended, _ = attempts((DIED, EXIT_1), script=SCRIPT.replace("save_freq=2", "save_freq=-1"))
    assert ended.declined.why is NotRetried.NOTHING_RESUMES
    assert "add trainer.save_freq=20" in ended.declined.sentence


def test_attempts_are_used_up_and_the_last_ones_end_counts(attempts):
    script = SCRIPT.replace("save_freq=2", "save_freq=-1")
    ended = attempts((DIED, EXIT_1), (DIED, 3 << 8), script=script, from_scratch=True)
    assert why(ended) is NotRetried.USED_UP
    assert [request.argv for request in ended[1]] == [("bash", "run.sh"), ("bash", "run.fits-1.sh")]
    assert ended[0].result.status == 3 << 8
    assert ended[1][1].chain["after"] == "record-1"


def test_a_plan_that_is_not_expected_to_fit_is_not_tried(attempts):
    ended = attempts((TORCH, EXIT_1))  # no step was done, so what saving takes of this host's RAM is not known
    assert why(ended) is NotRetried.DOES_NOT_FIT
    assert len(ended[1]) == 1


def test_without_a_change_that_may_be_made_it_is_not_tried(attempts):
    assert why(attempts((DIED, EXIT_1), accept="no-such-step")) is NotRetried.NO_CHANGE


def test_a_script_that_cannot_be_written_is_told_of(attempts, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "run.fits-1.sh")

    monkeypatch.setattr(attempt, "save", full)
    assert why(attempts((DIED, EXIT_1))) is NotRetried.NOT_PATCHABLE


def test_processes_that_stay_hold_the_next_attempt_back_and_are_left_alone(attempts):
    other = subprocess.Popen(["sleep", "60"])
    try:
        left = {other.pid: began(other.pid) or 0}
        ended = attempts((DIED, WatchResult(None, EXIT_1, left=left)))
        assert why(ended) is NotRetried.LEFTOVERS
        assert f"sleep {other.pid}" in ended[0].declined.sentence
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_process_id_that_another_process_has_by_now_is_not_waited_for():
    assert wait_until_gone({1: -1}, 5.0, lambda: False) == ()
    assert not is_rays_own(1)


def test_a_command_that_cannot_be_started_is_not_started_again(attempts):
    assert why(attempts(("", WatchResult(None, None, "run.sh: no such file", 127)))) is NotRetried.NOT_STARTED


def test_two_deaths_at_one_point_end_it_unless_there_is_a_new_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script, record = put_trainer(tmp_path), put_record(tmp_path / "record", DIED)
    state = attempt.open_run(script, record, ())
    assert not isinstance(state, Declined)
    dead = Death("actor_update", 3)
    assert attempt.death_in(state) == dead
    begun = History(deaths=(dead, dead))
    found = attempt.next_attempt(state, script, RetryRequest(), begun, 0.0)
    assert isinstance(found, NextAttempt)
    again = History(deaths=(dead, dead), made=found.made)
    stuck = attempt.next_attempt(state, script, RetryRequest(), again, 0.0)
    assert isinstance(stuck, Declined)
    assert stuck.why is NotRetried.STUCK
    later = History(deaths=(dead, Death("actor_update", 4)), made=found.made)
    second = attempt.next_attempt(state, script, RetryRequest(), later, 0.0)
    assert isinstance(second, NextAttempt)
    assert (found.script.name, second.script.name) == ("run.fits-1.sh", "run.fits-2.sh")


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "run.fits-1.md").touch()
    (tmp_path / "run.fits-2.sh").symlink_to("nowhere")
    assert free_name(tmp_path / "run.sh").name == "run.fits-3.sh"


@pytest.mark.parametrize(
    ("argv", "place"),
    [
        (("bash", "run.sh"), 1),
        (("bash", "-ex", "run.sh", "7B"), 2),
        (("./run.sh", "7B"), 0),
        (("bash", "-c", "run.sh"), None),
        (("bash", "-O", "extglob", "run.sh"), None),
        (("python3", "run.sh"), None),
        (("bash", "other.sh"), None),
    ],
)
def test_the_script_is_found_among_the_words_of_the_command(tmp_path, monkeypatch, argv, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").touch()
    assert script_place(argv) == place
    if place is not None:
        new = with_script(argv, place, Path("run.fits-1.sh"))
        assert new[place] == argv[place].replace("run.sh", "run.fits-1.sh")
        assert (*new[:place], argv[place], *new[place + 1 :]) == argv
