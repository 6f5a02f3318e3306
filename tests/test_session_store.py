"""A sitting is kept at every step: it comes back as it was, in the app and without a screen."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor import session, session_store
from advisor.cli import main
from advisor.commands.sessions import kept_session
from advisor.demo import demo_files
from advisor.exits import Refusal
from advisor.session import SessionRequest
from advisor.session_store import SavedSession
from tests.replacing import replace

DEMO = demo_files()
ASKED = SessionRequest(DEMO.script, (DEMO.log,), machine_files=(DEMO.machine,))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def state() -> session.State:
    return session.open_session(ASKED)


names = st.text(st.characters(blacklist_characters="\x00/", blacklist_categories=["Cs"]), min_size=1, max_size=20)


@given(
    script=st.none() | names.map(Path),
    logs=st.lists(names.filter(lambda name: name != "-").map(Path), max_size=3).map(tuple),
    answers=st.dictionaries(names, names, max_size=3),
    switched=st.dictionaries(names, st.booleans(), max_size=3),
    gpus=st.none() | names,
    record=st.none() | names.map(Path),
)
def test_what_is_kept_is_read_again_as_it_was(tmp_path_factory, script, logs, answers, switched, gpus, record) -> None:
    path = tmp_path_factory.mktemp("kept") / "one.json"
    sitting = SavedSession(SessionRequest(script, logs, gpus=gpus, answers=answers, record=record), switched, "plan", 2)
    session_store.save(path, sitting)
    assert session_store.load(path) == sitting
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2, "asked": {}}', '{"schema": 1, "asked": {"logs": 3}}'])
def test_what_is_no_sitting_is_told_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"broken\.json"):
        session_store.load(path)


def test_only_the_newest_sittings_stay() -> None:
    for number in range(session_store.MOST_SESSIONS + 5):
        path = session_store.sessions_folder() / f"{number:03}.json"
        session_store.save(path, SavedSession(SessionRequest()))
    left = sorted(path.name for path in session_store.sessions_folder().glob("*.json"))
    assert len(left) == session_store.MOST_SESSIONS


def test_answers_and_switches_replay_without_a_screen(state: session.State, capsys: pytest.CaptureFixture[str]) -> None:
    step = next(step for step in state.plan.steps if step.selected)
    question = next(one for one in state.diagnosis.path if one.source != "log")
    answered = session.answer(state, question.question, question.choices[0].id)
    saved = SavedSession(session_store.current_request(answered), {step.id: False}, "plan", folder=str(Path.cwd()))
    session_store.save(session_store.new_file(), saved)
    assert main(["diagnose", "--replay", "--format", "json"]) == 0
    import json

    told = json.loads(capsys.readouterr().out)
    assert next(s for s in told["diagnosis"]["path"] if s["question"] == question.question)["source"] == "user"
    assert next(s for s in told["plan"] if s["id"] == step.id)["selected"] is False


def test_a_step_that_the_plan_has_no_more_is_passed_over(state: session.State) -> None:
    assert session_store.with_switches(state, {"gone": True}) == state


def test_a_session_is_taken_up_in_its_own_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {name: tmp_path / name for name in ("mine", "theirs", "started", "empty")}
    for place in places.values():
        place.mkdir()
    made = (
        SavedSession(SessionRequest(places["mine"] / "run.sh"), folder="/elsewhere"),
        SavedSession(SessionRequest(None, (Path("/data/train.log"),)), folder=str(places["started"])),
        SavedSession(SessionRequest(None, (places["theirs"] / "train.log",))),
    )
    for number, saved in enumerate(made):
        path = session_store.sessions_folder() / f"{number}.json"
        session_store.save(path, saved)
        os.utime(path, (number, number))
    for name, saved in zip(("mine", "started", "theirs"), made, strict=True):
        monkeypatch.chdir(places[name])
        assert kept_session("") == saved, name
    monkeypatch.chdir(places["empty"])
    with pytest.raises(Refusal, match=r"theirs/train\.log: --resume .*/2\.json opens it"):
        kept_session("")


def test_with_nothing_kept_there_is_nothing_to_resume(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "--replay"]) == 2
    assert "nothing to resume" in capsys.readouterr().err


def test_paths_are_kept_so_that_they_hold_from_every_folder(state: session.State, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    moved = replace(state, asked=SessionRequest(Path("run.sh"), (Path("train.log"), Path("-"))))
    assert session_store.current_request(moved).script == tmp_path / "run.sh"
    assert session_store.current_request(moved).logs == (tmp_path / "train.log", Path("-"))
