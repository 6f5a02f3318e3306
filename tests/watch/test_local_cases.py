"""What worked is kept: as a case of the user's own that the next plan names, and that can be shown without names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from advisor.cli import main
from advisor.knowledge import open_knowledge
from advisor.report.local_case import Proof, case_yaml, keep_case, local_case
from advisor.saved_fix import answer_fix, remember_fix, waiting_fix
from advisor.session import SessionRequest, open_session
from advisor.watch.record_files import ATTEMPT, CASE
from tests.watch.made_run import ROOT, finish, write_script
from tests.watch.terminals import WATCH

RUN = Path(__file__).parents[1] / "runs" / "logic-rl"
DAY = 1_795_600_000.0


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture(scope="module")
def came_back(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up run that died in step 5, was changed and came to step 6."""
    folder = tmp_path_factory.mktemp("came") / "back"
    folder.mkdir()
    write_script(folder)
    code, said = finish(folder)
    assert code == 0, said
    assert "it worked here: kept as a case of this site in" in said
    return folder


def test_a_retry_that_got_past_the_place_of_its_death_is_a_confirmed_case_that_the_next_plan_names(
    came_back: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(came_back / "config"))
    knowledge = open_knowledge()
    assert not knowledge.refused
    (own,) = knowledge.own_cases
    case = next(one for one in knowledge.cases if one.id == own)
    assert case.grade == "confirmed"
    assert case.reported["confirmed_by"].startswith("a retry")
    record = came_back / "record"
    state = open_session(SessionRequest(script=came_back / "run.sh", logs=(record / "errors.log",), record=record))
    told = {step.worked_here for step in state.plan.steps if any(change.key in case.values for change in step.changes)}
    assert any(sentence.startswith("worked here on 20") for sentence in told)


def test_a_retry_that_died_where_its_ancestor_did_confirms_nothing(tmp_path: Path) -> None:
    write_script(tmp_path)
    finish(tmp_path, MADE_DEATHS="always")
    assert not (tmp_path / "config").exists()


SECRET, OWNER, HOST = "hf_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz", "alice.smith", "node17.acme-lab.internal"


def test_nothing_of_the_site_is_in_a_case(tmp_path: Path) -> None:
    script = tmp_path / f"{OWNER}.sh"
    text = (RUN / "stage1.sh").read_text()
    lines = [f"export HF_TOKEN={SECRET}", f"export MASTER_ADDR={HOST}", "set -x"]
    path = f"/home/{OWNER}/models/acme-secret-7b"
    marked = text.replace("actor_rollout_ref.model.path=$MODEL_PATH", f"actor_rollout_ref.model.path={path}")
    script.write_text("\n".join(lines) + "\n" + marked)
    state = open_session(SessionRequest(script=script, logs=(RUN / "stage1.log",), host_ram="1000GB"))
    steps = [step for step in state.plan.steps if step.changes]
    shown = case_yaml(local_case(state, steps, Proof(f"{OWNER}", when=DAY)))
    body = shown.replace(OWNER, "", 1)  # who confirmed it is ours to say, and said so here
    for private in (SECRET, OWNER, HOST, "acme", "/home", str(tmp_path), "http://", "@"):
        assert private not in body, private
    assert yaml.safe_load(shown)["values"]


def test_a_case_is_kept_once_and_overwrites_nothing(home: Path) -> None:
    state = open_session(SessionRequest(script=RUN / "stage1.sh", logs=(RUN / "stage1.log",)))
    steps = [step for step in state.plan.steps if step.id == "token-budget"]
    case = local_case(state, steps, Proof("a retry", 3, 9, DAY))
    file = keep_case(case)
    assert file is not None
    assert file.stat().st_mode & 0o777 == 0o600
    assert keep_case(case) is None
    assert len([*file.parent.iterdir()]) == 1
    assert open_knowledge().own_cases == (case.id,)


def test_share_shows_the_whole_case_and_writes_it_only_where_asked(
    came_back: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["share", str(came_back / "record")]) == 0
    shown = capsys.readouterr().out
    assert "grade: confirmed" in shown
    assert str(came_back) not in shown
    target = tmp_path / "case.yaml"
    assert main(["share", str(came_back / "record-2"), "-o", str(target)]) == 0
    assert capsys.readouterr().out == shown == target.read_text()
    assert main(["share", str(came_back / "record"), "-o", str(target)]) == 2
    assert target.read_text() == shown


def test_share_trusts_no_file_of_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str], came_back: Path) -> None:
    record = tmp_path / "record"
    record.mkdir()
    for name in ("samples.jsonl", "errors.log", "output.log", "command.sh"):
        (record / name).write_bytes((came_back / "record" / name).read_bytes())
    (record / ATTEMPT).write_text(json.dumps({"attempt": 1}))
    own = (came_back / "record-2" / CASE).read_text()
    (record / CASE).write_text(own.replace("title: '", f"title: 'token={SECRET} ip=10.1.2.3 /home/{OWNER}/x "))
    assert main(["share", str(record)]) == 0
    shown = capsys.readouterr().out
    assert not any(private in shown for private in (SECRET, "10.1.2.3", OWNER))
    (record / CASE).write_text("id: [1")
    assert main(["share", str(record)]) == 2


def test_a_fix_by_hand_is_asked_for_once_in_its_folder(tmp_path: Path) -> None:
    state = open_session(SessionRequest(script=RUN / "stage1.sh", logs=(RUN / "stage1.log",), accept="token-budget"))
    folder = tmp_path / "work"
    folder.mkdir()
    remember_fix(state, folder / "run.fits.sh")
    log = tmp_path / "later.log"
    log.write_text("a run that began later\n")
    os.utime(log, (time.time() + 5, time.time() + 5))
    assert waiting_fix({tmp_path}, {log}) is None
    assert waiting_fix({folder}, {RUN / "stage1.log"}) is None
    fix = waiting_fix({folder}, {log})
    assert fix is not None
    assert fix.script == "run.fits.sh"
    file = answer_fix(fix, helped=True)
    assert file is not None
    assert "confirmed" in file.read_text()
    assert waiting_fix({folder}, {log}) is None


def test_fix_remembers_and_a_no_keeps_nothing(tmp_path: Path) -> None:
    for name in ("stage1.sh", "stage1.log"):
        (tmp_path / name).write_bytes((RUN / name).read_bytes())
    assert main(["fix", str(tmp_path / "stage1.sh"), "--log", str(tmp_path / "stage1.log")]) == 0
    log = tmp_path / "later.log"
    log.write_text("a run that began later\n")
    os.utime(log, (time.time() + 5, time.time() + 5))
    fix = waiting_fix({tmp_path}, {log})
    assert fix is not None
    assert answer_fix(fix, helped=False) is None
    assert waiting_fix({tmp_path}, {log}) is None
    assert not (tmp_path / "config").exists()


def test_the_watcher_writes_no_case_of_a_run_that_needed_none(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [*WATCH, "--retry", "-o", str(tmp_path / "r"), "--", sys.executable, "-c", "pass"],
        cwd=tmp_path,
        env=env,
        check=True,
        capture_output=True,
    )
    assert not (tmp_path / "config").exists()
