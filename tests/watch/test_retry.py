"""A run that comes back: it dies of memory, is changed, goes on from its checkpoint, and ends."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.watch.listing import list_records
from tests.watch.made_trainer import SCRIPT, put_trainer
from tests.watch.terminals import WATCH
from tests.watch.test_without_terminal import HERE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes of Linux")


@pytest.fixture(scope="module")
def came_back(tmp_path_factory):
    """The folder of a run that died once and came back, its exit code, output and errors."""
    folder = tmp_path_factory.mktemp("run")
    put_trainer(folder)
    notify = f"{sys.executable} -c \"import sys; open('events', 'a').write(sys.stdin.read())\""
    argv = [*WATCH, "-o", "record", "--retry", "--notify", notify, "--", "bash", "run.sh"]
    path = {**HERE, "PYTHONPATH": f"{HERE['PYTHONPATH']}:{folder}", "OF_THE_USER": "a variable"}
    done = subprocess.run(argv, cwd=folder, env=path, capture_output=True, text=True, timeout=90, check=False)
    return folder, done.returncode, done.stdout, done.stderr


def test_the_exit_code_is_the_last_attempts(came_back):
    assert came_back[1] == 0


def test_the_second_attempt_goes_on_from_the_checkpoint_in_the_same_folder_and_environment(came_back):
    folder, _, out, _ = came_back
    assert f"begins behind step 0 in {folder} with a variable" in out
    assert f"begins behind step 2 in {folder} with a variable" in out
    assert "step:5" in out


def test_the_script_of_the_second_attempt_lies_beside_the_first_which_is_as_it_was(came_back):
    folder = came_back[0]
    assert (folder / "run.sh").read_text() == SCRIPT
    assert "actor_rollout_ref.model.use_fused_kernels=True" in (folder / "run.fits-1.sh").read_text()
    assert "GPU memory ran out" in (folder / "run.fits-1.md").read_text()


def test_it_is_said_what_a_death_would_cost_and_what_was_done(came_back):
    err = came_back[3]
    assert "saves every 2 steps to checkpoints; resumes by itself" in err.splitlines()[0]
    assert "attempt 2: run.fits-1.sh (actor_rollout_ref.model.use_fused_kernels" in err
    assert "it goes on from step 2 (" in err
    assert "it ended well" in err


def test_the_attempts_are_linked_in_their_records(came_back):
    first, second = list_records(came_back[0])
    assert (first.attempt, first.after, first.verdict, first.phase) == (1, "", "oom", "actor_update")
    assert (second.attempt, second.after, second.ended) == (2, "record", "ended well")
    assert second.changed[0].startswith("actor_rollout_ref.model.use_fused_kernels")


def test_every_event_reaches_the_users_own_command(came_back):
    file, until = came_back[0] / "events", time.monotonic() + 10
    while time.monotonic() < until and '"end"' not in (file.read_text() if file.exists() else ""):
        time.sleep(0.02)
    events = sorted((json.loads(line) for line in file.read_text().splitlines()), key=lambda event: event["time"])
    assert [event["event"] for event in events] == ["start", "death", "diagnosis", "retry", "start", "end"]
    assert events[3]["from_step"] == 2
    assert Path(events[3]["script"]).name == "run.fits-1.sh"
