"""What a command line says, said as a text in the app: read by the same rules, and taken back with nothing."""

from pathlib import Path

import pytest

from advisor import session
from advisor.given import FORMS, GivenName, text_of, with_text
from advisor.memory.cells import Place
from advisor.session import SessionRequest, State
from tests.loops import each

HERE = Path(__file__).parent
RUN = HERE / "runs" / "easyr1"


@each("name", [name for name in FORMS if name not in ("version", "script", "logs")])
def test_what_is_said_stands_as_it_was_written_and_empty_takes_it_back(name: GivenName) -> None:
    asked = SessionRequest()
    said = with_text(asked, name, FORMS[name])
    assert said != asked or name == "margin"
    assert text_of(said, name) == FORMS[name]
    assert with_text(said, name, " ") == with_text(asked, name, "")


def test_a_version_is_that_of_the_framework_and_makes_room_for_another() -> None:
    asked = SessionRequest(libraries=("vllm=0.8.5", "verl=0.3"), answers={"version": "v0.4", "memory": "gpu"})
    said = with_text(asked, "version", "0.4.1", "verl")
    assert said.libraries == ("vllm=0.8.5", "verl=0.4.1")
    assert said.answers == {"memory": "gpu"}, "what was answered before is not held against it"
    assert with_text(said, "version", "", "verl").libraries == ("vllm=0.8.5",)


def test_logs_and_scripts_are_files_that_exist_with_blanks_in_their_names(tmp_path: Path) -> None:
    first, second = tmp_path / "a b.log", tmp_path / "c.log"
    first.write_text("x\n")
    second.write_text("y\n")
    said = with_text(SessionRequest(), "logs", f"'{first}' {second}")
    assert said.logs == (first, second)
    assert with_text(SessionRequest(), "logs", text_of(said, "logs")).logs == (first, second)
    for name in ("logs", "script"):
        with pytest.raises(ValueError, match="does not exist"):
            with_text(said, name, "gone.log")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not closed"):
        with_text(said, "logs", "'a")


@each(
    ("name", "text", "why"),
    [
        ("nodes", "0", "number from 1 on"),
        ("nodes", "two", "number from 1 on"),
        ("nodes", "9" * 80, "number from 1 on"),
        ("launch", "-1", "number from 1 on"),
        ("margin", "2", "between 0 and 0.9"),
        ("margin", "\x1b[2J3", "between 0 and 0.9"),
        ("max_row", "long", "neither a number of tokens"),
        ("version", "1.0", "framework first"),
    ],
)
def test_what_is_not_written_as_it_should_be_is_refused_in_one_sentence(name: GivenName, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as told:
        with_text(SessionRequest(), name, text)
    assert "\x1b" not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.fixture(scope="module")
def state() -> State:
    asked = SessionRequest(RUN / "qwen2_5_vl_7b.sh", (RUN / "train.log",), gpus="8xA100-40GB", host_ram="760GB")
    return session.open_session(asked)


def peak(state: State, place: Place) -> int:
    found = state.ledger.peak(place)
    assert found is not None
    return found.expected


def test_said_later_it_counts_as_if_said_at_the_start(state: State) -> None:
    later = session.asked_otherwise(state, with_text(state.asked, "gpus", "8xA100-80GB"))
    at_once = session.open_session(with_text(state.asked, "gpus", "8xA100-80GB"))
    assert later.machine.gpus[0].name == at_once.machine.gpus[0].name
    assert (peak(later, "gpu"), later.plan.fit) == (peak(at_once, "gpu"), at_once.plan.fit)
    assert peak(later, "host") == peak(at_once, "host")


def test_answers_switches_and_numbers_stay_where_they_can(state: State) -> None:
    step = state.plan.selected()[0]
    before = session.toggle(state, step.id, False)
    after = session.asked_otherwise(before, with_text(before.asked, "nodes", "1"))
    assert {one.id: one.selected for one in after.plan.steps}[step.id] is False
    answered = session.answer(state, "memory", "gpu")
    request = with_text(session.replace(answered.asked, answers=dict(answered.answers)), "margin", "0.2")
    again = session.asked_otherwise(answered, request)
    assert again.answers == answered.answers
    assert again.plan.margin == 0.2


def test_logs_are_read_again_only_where_others_are_named(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "read_crash_of", lambda *_: pytest.fail("the log was read again"))
    assert session.asked_otherwise(state, with_text(state.asked, "nodes", "1")).crash == state.crash
    monkeypatch.undo()
    other = tmp_path / "other.log"
    other.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    assert session.asked_otherwise(state, with_text(state.asked, "logs", str(other))).crash != state.crash
