"""What a retry rests on: who asked the run to end, which of its processes stay, what a checkpoint survives, events."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace

from advisor.knowledge.schema import ResumeFact
from advisor.retry import attempt
from advisor.retry.attempt import Death, History, NextAttempt, RetryRequest
from advisor.retry.declined import Declined
from advisor.run.resume import Resume
from advisor.watch.notify import EventCommand
from advisor.watch.process_tree import ProcessTree
from tests.watch.made_trainer import DIED, put_record, put_trainer
from tests.watch.test_without_terminal import started

DEATH = History(deaths=(Death("actor_update", 3),))


@pytest.fixture
def dead(tmp_path, monkeypatch):
    """The session of a run that died behind step 3 and has a whole checkpoint of step 2, and its script."""
    monkeypatch.chdir(tmp_path)
    script, record = put_trainer(tmp_path), put_record(tmp_path / "record", DIED)
    (tmp_path / "checkpoints" / "global_step_2").mkdir(parents=True)
    (tmp_path / "checkpoints" / "global_step_2" / "data.pt").touch()
    (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").write_text("2")
    state = attempt.open_run(script, record, ())
    assert not isinstance(state, Declined)
    return state, script


def test_a_signal_that_was_passed_on_counts_as_a_stop_whatever_the_exit_code(tmp_path):
    (tmp_path / "run.sh").write_text("trap 'echo torch.OutOfMemoryError; exit 1' TERM\necho ready\nsleep 20 & wait\n")
    process = started(tmp_path, "bash", "run.sh", options=["--retry"])
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "somebody stopped it (SIGTERM)" in err


def test_only_processes_below_the_command_are_its_own_and_those_that_ended_are_not_left():
    other = subprocess.Popen(["sleep", "60"])
    run = subprocess.Popen(["bash", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    child = int(run.stdout.readline())
    try:
        tree = ProcessTree(run.pid)
        tree.refresh({other.pid})
        assert set(tree.left()) == {run.pid, child}
        run.kill()
        run.wait()
        assert set(tree.left()) == {child}
    finally:
        other.kill()
        other.wait()
        os.kill(child, signal.SIGKILL)


def test_a_change_that_the_checkpoint_does_not_survive_gives_way_to_another(dead, monkeypatch):
    state, script = dead
    free = attempt.next_attempt(state, script, RetryRequest(), DEATH, 0.0)
    assert isinstance(free, NextAttempt)
    assert {change.key for change in free.changes} == {"actor_rollout_ref.model.use_fused_kernels"}
    resume = attempt.resume_in(state)
    assert resume.fact is not None
    bound = replace(resume, fact=replace(resume.fact, fixed=("actor.fused_loss",)))
    monkeypatch.setattr(attempt, "resume_in", lambda _: bound)
    found = attempt.next_attempt(state, script, RetryRequest(), DEATH, 0.0)
    assert isinstance(found, NextAttempt)
    assert "use_fused_kernels" not in found.script.read_text()
    assert found.changes


def test_where_the_checkpoint_has_to_be_named_the_new_script_names_it(dead, monkeypatch, tmp_path):
    state, script = dead
    whole = ResumeFact(
        folder="trainer.default_local_dir",
        whole=("global_step_*/data.pt",),
        step=r"global_step_(\d+)",
        point="trainer.resume_from_path",
        source="made up",
    )
    resume = Resume(2, "checkpoints", by_itself=False, point="trainer.resume_from_path", fact=whole)
    monkeypatch.setattr(attempt, "resume_in", lambda _: resume)
    found = attempt.next_attempt(state, script, RetryRequest(), DEATH, 0.0)
    assert isinstance(found, NextAttempt)
    assert f"trainer.resume_from_path={tmp_path}/checkpoints/global_step_2" in found.script.read_text()
    assert found.goes_on is not None
    assert found.goes_on.step == 2
    later = attempt.next_attempt(state, script, RetryRequest(), DEATH, time.time() + 60)
    assert isinstance(later, NextAttempt)
    assert later.goes_on is None
    assert "resume_from_path" not in later.script.read_text()


def test_a_slow_command_for_events_holds_nothing_up_and_gets_no_secret(tmp_path):
    told, out = [], tmp_path / "out"
    code = f"import sys, time; open({str(out)!r}, 'w').write(sys.stdin.read()); time.sleep(60)"
    events = EventCommand(shlex.join([sys.executable, "-c", code]), told.append)
    begun = time.monotonic()
    events.send("start", command=["bash", "run.sh", "--token=hf_abcdefghijklmnopqrstuvwxyz0123456789"])
    assert time.monotonic() - begun < 5
    while not (out.exists() and out.read_text()):
        assert time.monotonic() - begun < 30
        time.sleep(0.02)
    assert '"event": "start"' in out.read_text()
    assert "hf_abcdef" not in out.read_text()
    ((_, process),) = events._running
    process.kill()
    process.wait()


def test_a_command_for_events_that_is_not_there_is_told_before_the_run():
    with pytest.raises(ValueError, match="no such command"):
        EventCommand("no-such-command-here --x", lambda _: None)
