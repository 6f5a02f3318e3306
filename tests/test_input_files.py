"""Files are taken for what they are, in whatever order: a log is never read as a script."""

import os
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.commands import app_parser
from advisor.commands.inputs import is_log
from advisor.commands.requests import asked_from
from advisor.exits import Refusal
from tests.loops import each

SCRIPT = "set -e\npython3 -m verl.trainer.main_ppo data.train_batch_size=8\n"
LOG = (
    "step:1 - x\nTraceback (most recent call last):\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("run.sh", SCRIPT), ("train.log", LOG), ("launch", SCRIPT), ("pasted.txt", LOG)):
        Path(name).write_text(text)
    Path("logs").mkdir()
    Path("logs/rank0.log").write_text(LOG)
    os.utime("logs/rank0.log", (0, 0))


@each(
    ("words", "script", "logs"),
    [
        (["run.sh", "train.log"], "run.sh", ["train.log"]),
        (["train.log", "run.sh"], "run.sh", ["train.log"]),
        (["train.log"], None, ["train.log"]),
        (["pasted.txt", "launch"], "launch", ["pasted.txt"]),
        (["logs", "run.sh"], "run.sh", ["logs"]),
        (["run.sh", "--log", "train.log", "logs/rank0.log"], "run.sh", ["train.log", "logs/rank0.log"]),
        (["-", "run.sh"], "run.sh", ["-"]),
    ],
)
def test_files_are_told_apart(words, script, logs):
    asked = asked_from(app_parser().parse_intermixed_args(words))
    assert (asked.script and str(asked.script), [str(log) for log in asked.logs]) == (script, logs)


@pytest.mark.parametrize(
    ("text", "logs"),
    [
        (f"It dies:\n```\n{LOG}```\nwith\n```\n{SCRIPT}```\n", ["issue.md"]),
        (f"To avoid CUDA out of memory, see below.\n```\n{SCRIPT}```\n", []),
    ],
)
def test_a_page_that_shows_a_crash_is_the_log_of_its_own_launch(text, logs):
    Path("issue.md").write_text(text)
    asked = asked_from(app_parser().parse_intermixed_args(["issue.md"]))
    assert (str(asked.script), [str(log) for log in asked.logs]) == ("issue.md", logs)
    with_log = asked_from(app_parser().parse_intermixed_args(["issue.md", "train.log"]))
    assert [str(log) for log in with_log.logs] == ["train.log"]


def test_a_folder_gives_its_newest_run_and_says_which(capsys):
    assert main(["diagnose", "."]) == 0
    out, err = capsys.readouterr()
    assert "the newest run of .: run.sh, train.log" in err
    assert "train.log:3" in out


def test_two_scripts_are_refused_and_a_mistyped_command_is_named(capsys):
    assert main(["diagnose", "run.sh", "launch"]) == 2
    assert main(["dignose", "run.sh"]) == 2
    err = capsys.readouterr().err
    assert "run.sh and launch are two launch files" in err
    assert "is diagnose meant?" in err
    with pytest.raises(Refusal):
        asked_from(app_parser().parse_intermixed_args(["estimat"]))


@pytest.mark.parametrize("name", ["a.sh", "conf.yaml", "train.py"])
def test_what_is_written_by_hand_is_no_log_whatever_it_quotes(name):
    Path(name).write_text(LOG)
    assert not is_log(Path(name))


def test_where_the_log_is_named_a_text_is_the_script_though_it_quotes_a_crash():
    Path("launch.txt").write_text(SCRIPT + "# " + LOG)
    asked = asked_from(app_parser().parse_intermixed_args(["launch.txt", "--log", "train.log"]))
    assert str(asked.script) == "launch.txt"
