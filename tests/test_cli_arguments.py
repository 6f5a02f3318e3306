"""The door: usage, exit codes, streams; where the process is what is shown, in one of its own, as users run it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest

from advisor import __version__, cli
from advisor.exits import Exit, Refusal


def advisor(*arguments, **options):
    """Run the console script's door; stdin is empty unless given."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [sys.executable, "-m", "advisor", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


@pytest.fixture
def here(capsys, monkeypatch):
    """(words) → exit code and both streams of the door in this process; standard input is empty."""
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            code = cli.main(arguments)
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        told = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, told.out, told.err)

    return run


def test_version_is_data():
    done = advisor("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"rl-oom-advisor {__version__}\n", "")


@pytest.mark.parametrize("command", [[], *([name] for name in cli.COMMANDS)], ids=lambda c: c[0] if c else "app")
def test_help_is_data_and_fits_a_terminal(command, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = here(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 96


def test_help_names_every_command_and_no_other():
    text = advisor("--help").stdout
    assert all(f"  {name}" in text for name in cli.COMMANDS)
    assert "observe" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["diagnose", "--fromat", "json"],
        ["diagnose", "--format", "xml"],
        ["estimate"],
        ["fix", "--log", "x.log"],
        ["set", "run.sh"],
        ["set", "run.sh", "no-equals-sign"],
        ["diagnose", "--log", "x.log", "--answer", "memory"],
        ["diagnose", "--log", "x.log", "--margin", "3"],
        ["diagnose", "run.sh", "--launch", "0"],
        ["explain"],
        ["scan"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_sentence_on_stderr(arguments, here):
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (Exit.UNUSABLE, "")
    assert done.stderr.startswith("rl-oom-advisor: ")
    assert done.stderr.count("\n") == 1


def test_a_word_that_is_no_command_is_a_script(here):
    done = here("observe")
    assert done.returncode == Exit.UNUSABLE
    assert "observe" in done.stderr


def test_a_closed_pipe_is_no_error():
    """Buffered, as Python writes to a pipe unless told otherwise: the last words go out when it ends."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, "-m", "advisor", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=buffered,
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(30) == 0


def test_a_fault_of_the_program_is_recorded_and_said_in_a_sentence(monkeypatch, tmp_path, capsys):
    def broken(_: list[str]) -> int:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr(cli, "_run", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert cli.main(["diagnose"]) == Exit.FAILED
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    (record,) = tmp_path.iterdir()
    assert str(record) in told.err
    assert "ZeroDivisionError: deep inside" in record.read_text()


def test_a_refusal_keeps_its_code(monkeypatch, capsys):
    def refusing(_: list[str]) -> int:
        raise Refusal("nothing here", Exit.NOTHING_FOUND)

    monkeypatch.setattr(cli, "_run", refusing)
    assert cli.main([]) == Exit.NOTHING_FOUND
    assert capsys.readouterr().err == "rl-oom-advisor: nothing here\n"


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_first_answer_comes_at_once(flag):
    assert min(_cpu_seconds(flag) for _ in range(3)) < 0.15


def _cpu_seconds(flag: str) -> float:
    """Processor time of the child, which a busy machine does not stretch as it does the clock."""
    before = os.times()
    advisor(flag)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def test_machine_json_is_one_object_whatever_the_locale():
    done = advisor("machine", "--format", "json", env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"})
    assert done.returncode == 0
    assert {"nodes", "gpus", "host", "libraries", "sources"} <= set(json.loads(done.stdout))


def test_explain_of_nothing_known_gives_close_names(here):
    done = here("explain", "rollout.memory_shar")
    assert (done.returncode, done.stdout) == (Exit.UNUSABLE, "")
    assert "rollout.memory_share" in done.stderr


def test_explain_of_a_knob_is_data_even_in_ascii(here):
    done = here("explain", "rollout.memory_share", "--ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert done.stdout.startswith("rollout.memory_share: a knob")


@pytest.mark.parametrize("arguments", [[], ["diagnose"]], ids=["app", "diagnose"])
def test_without_any_file_there_is_nothing_to_diagnose(arguments):
    done = advisor(*arguments)
    assert done.returncode == Exit.NOTHING_FOUND
    assert done.stdout.startswith("No log was given")
    assert done.stderr.count("\n") == 1


def test_control_sequences_in_an_argument_do_not_reach_the_terminal(here):
    done = here("diagnose", "--\x1b[31mred\x07")
    assert done.returncode == Exit.UNUSABLE
    assert not set("\x1b\x07") & set(done.stderr)


def test_questions_can_be_answered_without_any_file(here):
    done = here("diagnose", "--answer", "memory=host", "--format", "json")
    told = json.loads(done.stdout)
    assert (told["diagnosis"]["memory"], told["diagnosis"]["path"][0]["source"]) == ("host", "user")


def test_without_textual_the_app_says_so_and_names_what_needs_none(monkeypatch, capsys):
    monkeypatch.setattr(cli, "_has_terminal", lambda: True)
    monkeypatch.setitem(sys.modules, "textual", None)
    assert cli.main(["--demo"]) == Exit.FAILED
    assert "needs the package textual" in capsys.readouterr().err


def test_a_help_in_chinese_begins_with_the_whole_name(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ([], ["diagnose"]):
        with pytest.raises(SystemExit):
            cli.main([*command, "--lang", "zh", "--help"])
        assert capsys.readouterr().out.startswith(" ".join(["用法：rl-oom-advisor", *command]) + " [-h]")
