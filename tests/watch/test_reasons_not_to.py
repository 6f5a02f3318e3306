"""Each reason not to start again, on a run that would else be started again."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from advisor.commands import retry, retry_choice
from advisor.commands.retry import Attempt
from advisor.commands.retry_choice import No, NoRetry, Retry, RetryRules, RunDeath, choose
from advisor.run.resume import Resumption, resumption_of
from advisor.session import SessionRequest, State, open_session
from advisor.watch.events import Notifier
from advisor.watch.growth import Growth
from advisor.watch.launcher import WatchResult
from advisor.watch.measured import Grown, Measured
from advisor.watch.record_files import COMMAND
from advisor.watch.recording import RecordError, Recording
from advisor.watch.request import Beginning, WatchRequest
from tests.replacing import replace
from tests.watch.made_run import write_script
from tests.watch.made_verl.verl.trainer.main_ppo import OOM

DIED = RunDeath("actor_update", 1)
DIED_LATER = RunDeath("actor_update", 7)


class Dead:
    """A run of verl that died in its actor update, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.script = folder, write_script(folder)
        self.log = folder / "errors.log"
        self.log.write_text(OOM)
        self.state = self.opened(self.script)

    def opened(self, script: Path) -> State:
        return open_session(SessionRequest(script=script, logs=(self.log,), host_ram="1000GB"))

    def choice(self, *before: RunDeath, state: State | None = None) -> Retry | NoRetry:
        return choose(state or self.state, before or (DIED,), RetryRules(), self.folder)

    def chosen(self, state: State | None = None) -> Retry:
        found = self.choice(state=state)
        assert isinstance(found, Retry), found
        return found

    def next(self, *argv: str, record: Path | None = None, chosen: Retry | None = None) -> Attempt | NoRetry:
        """What follows the first attempt, which was started by these words."""
        first = Attempt(1, WatchRequest(argv))
        said: list[str] = []
        return retry._next(first, chosen or self.chosen(), record or self.folder / "r", Notifier(None), said.append)


@pytest.fixture
def dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dead:
    monkeypatch.chdir(tmp_path)
    return Dead(tmp_path)


def why(found: Retry | NoRetry | Attempt | None) -> No:
    assert isinstance(found, NoRetry), found
    return found.why


def test_without_a_reason_it_is_started_again(dead: Dead) -> None:
    assert isinstance(dead.next("bash", "run.sh"), Attempt)
    assert (dead.folder / "run.fits-1.sh").is_file()


def test_what_leaked_in_two_attempts_is_not_tried_a_third_time(dead: Dead) -> None:
    grown = Grown("host RAM", "unknown", Growth(1e9, 1e7, 9e9, 20, True))
    leaking = replace(dead.state, measured=Measured(dead.folder, 9.0, 20, (), (grown,), ()))
    assert isinstance(dead.choice(state=leaking), Retry)  # once, since a change may have been all it lacked
    assert why(dead.choice(DIED, replace(DIED_LATER, step=1, phase="log_prob"), state=leaking)) is No.LEAK


def test_a_change_that_the_checkpoint_does_not_survive_is_not_made(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    def fixed(*asked: object) -> Resumption:
        found = resumption_of(*asked)  # type: ignore[arg-type]
        assert found.way is not None
        return replace(found, way=replace(found.way, fixed=("actor.fused_*",)))

    monkeypatch.setattr(retry_choice, "resumption_of", fixed)
    assert why(dead.choice()) is No.CHECKPOINT_FIXED


@pytest.mark.parametrize("step", [1, 2])
def test_before_a_checkpoint_could_be_there_its_lack_is_no_reason(dead: Dead, step: int) -> None:
    assert isinstance(dead.choice(RunDeath("actor_update", step)), Retry)


def test_where_a_checkpoint_should_be_and_none_is_whole_it_is_not_started(dead: Dead) -> None:
    saved = dead.folder / "ckpt" / "global_step_6"
    saved.mkdir(parents=True)  # empty: half written
    (dead.folder / "ckpt" / "latest_checkpointed_iteration.txt").write_text("6")
    assert why(dead.choice(DIED_LATER)) is No.NO_CHECKPOINT
    (saved / "actor").mkdir()
    assert isinstance(dead.choice(DIED_LATER), Retry)


def test_a_change_that_cannot_be_written_exactly_is_not_made(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dead.chosen().patch
    monkeypatch.setattr(retry_choice, "patch", lambda *_: replace(found, rewrites=(), refused="two places decide it"))
    choice = dead.choice()
    assert why(choice) is No.NOT_EXACT
    assert isinstance(choice, NoRetry)
    assert choice.detail == "two places decide it"


def test_a_file_that_the_command_does_not_name_is_not_changed(dead: Dead) -> None:
    assert why(dead.next("bash", "start_all.sh")) is No.ELSEWHERE
    assert not [*dead.folder.glob("*.fits*")]


def test_a_command_with_a_secret_is_not_written_into_a_file(dead: Dead) -> None:
    record = dead.folder / "record"
    record.mkdir()
    (record / COMMAND).write_text(dead.script.read_text())
    chosen = dead.chosen(dead.opened(record / COMMAND))
    token = "hf_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
    assert why(dead.next("python", "-m", "x", f"--token={token}", record=record, chosen=chosen)) is No.SECRETS
    assert isinstance(dead.next("python", "-m", "x", record=record, chosen=chosen), Attempt)


def test_a_disk_that_is_full_ends_it_in_a_sentence(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(retry, "save", full)
    found = dead.next("bash", "run.sh")
    assert why(found) is No.NOT_WRITTEN
    assert isinstance(found, NoRetry)
    assert "No space left" in found.detail


def after(dead: Dead, ended: WatchResult, died: Sequence[RunDeath] = ()) -> Attempt | NoRetry | None:
    first = Attempt(1, WatchRequest(("bash", "run.sh")))
    return retry._after(first, ended, [*died], RetryRules(), Beginning(0.0, 0.0), Notifier(None), lambda _: None)


def test_processes_that_do_not_end_keep_it_from_starting(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    record = dead.folder / "record"
    record.mkdir()
    monkeypatch.setattr(retry, "read_record", lambda folder: Recording(folder, end={"code": 1}))
    monkeypatch.setattr(retry, "opened", lambda *_: dead.state)
    monkeypatch.setattr(retry, "wait_for_leftovers", lambda *_: (["ray::WorkerDict"], []))
    found = after(dead, WatchResult(record, 256))
    assert why(found) is No.STILL_THERE
    assert isinstance(found, NoRetry)
    assert found.detail == "ray::WorkerDict"
    assert not [*dead.folder.glob("*.fits*")]


def test_without_a_record_nothing_is_known(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why(after(dead, WatchResult(None, 256))) is No.NO_RECORD

    def lost(_: Path) -> Recording:
        raise RecordError("gone")

    monkeypatch.setattr(retry, "read_record", lost)
    assert why(after(dead, WatchResult(dead.folder, 256))) is No.NO_RECORD


def test_a_command_that_could_not_be_started_is_not_started_again(dead: Dead) -> None:
    found = after(dead, WatchResult(dead.folder, None, "nosuch: no such file", 127))
    assert why(found) is No.NOT_STARTED


def test_every_reason_has_a_test() -> None:
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_re*.py"))
    assert [reason.name for reason in No if f"No.{reason.name}" not in text and reason.value not in text] == []
