"""A fault of the recorder, wherever it strikes: the command runs, its output and exit code are as without us."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.heavy import heavy
from tests.watch.terminals import talk
from tests.watch.test_without_terminal import HERE

BROKEN = """
import sys
import advisor.watch.{module} as broken
def bug(*given, **named):
    raise RuntimeError("a bug")
broken.{name} = bug
from advisor.cli import main
sys.exit(main(sys.argv[1:]))
"""
SCRIPT = "echo begun; echo wrong >&2; sleep {seconds}; echo ended; exit 7"
BEFORE = [("launcher", "claim"), ("launcher", "KernelLog.open"), ("launcher", "start_output_relay")]
UNDERWAY = [
    ("recorder", "_sampler"),
    ("recorder", "Record.create"),
    ("recorder", "OutputProgress.by"),
    ("recorder", "LogTail.follow"),
    ("supervisor", "Supervisor._pump"),
    ("sampler", "Sampler.wait"),
    ("progress", "OutputProgress.feed"),
    ("recorder", "record_run"),
]


def _words(module: str, name: str, folder) -> list[str]:
    """Where what fails is called while the command lives, it lives until that was loaded."""
    code, script = (
        BROKEN.format(module=module, name=name),
        SCRIPT.format(seconds=0.4 if (module, name) in BEFORE else 3),
    )
    return [sys.executable, "-c", code, "watch", "-o", str(folder / "r"), "--", "bash", "-c", script]


@pytest.mark.parametrize("places", [BEFORE, [UNDERWAY[at] for at in (0, 2, 4, 7)], pytest.param(UNDERWAY, marks=heavy)])
def test_the_command_runs_whatever_of_the_recorder_fails(places: list[tuple[str, str]], tmp_path) -> None:
    """Side by side: each only waits for its command."""
    begun = {}
    for module, name in places:
        (folder := tmp_path / name).mkdir()
        words, pipe = _words(module, name, folder), subprocess.PIPE
        begun[module, name] = subprocess.Popen(words, env=HERE, stdout=pipe, stderr=pipe, text=True)
    for (module, name), process in begun.items():
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (7, "begun\nended\n"), name
        assert err.startswith("wrong\n") or "\nwrong\n" in err, name
        assert ("a bug" in err) == (name != "OutputProgress.feed"), name
        if (module, name) in UNDERWAY:
            assert (tmp_path / name / "r" / "output.log").read_text() == "begun\nended\n", name


def test_a_fault_after_the_command_was_reaped_leaves_its_exit_code(tmp_path) -> None:
    words = [*_words("supervisor", "Supervisor._show_rest", tmp_path)[:-1], "echo begun; exit 7"]
    done = subprocess.run(words, env=HERE, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, "begun\n")
    assert '"end":{"code":7}' in (tmp_path / "r" / "samples.jsonl").read_text()


@pytest.mark.parametrize(("module", "name"), [("recorder", "_sampler"), ("supervisor", "Supervisor._turn")])
def test_so_it_does_on_a_terminal(module: str, name: str, tmp_path) -> None:
    status, said = talk(_words(module, name, tmp_path), [], tmp_path)
    assert status >> 8 == 7
    assert said.count("begun") == 1
    assert said.count("ended") == 1
    assert "a bug" in said


GONE = """
import os, sys
import advisor.commands.watch as watch
def gone(*given):
    raise OSError(107, os.strerror(107), "record/command.sh")
watch.script_of = gone
from advisor.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_record_whose_file_system_went_away_leaves_the_commands_exit_code(tmp_path) -> None:
    words = [sys.executable, "-c", GONE, "watch", "-o", str(tmp_path / "r"), "--", "bash", "-c", "exit 7"]
    done = subprocess.run(words, env=HERE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 7
    assert "what it died of cannot be told (OSError: " in done.stderr


NO_PTY = """
import os, sys
def none_left(*given):
    raise OSError(28, os.strerror(28))
os.openpty = none_left
from advisor.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_where_no_pseudo_terminal_can_be_had_the_run_is_recorded_through_a_pipe(tmp_path) -> None:
    words = [
        sys.executable,
        "-c",
        NO_PTY,
        "watch",
        "-o",
        str(tmp_path / "r"),
        "--",
        "bash",
        "-c",
        SCRIPT.format(seconds=0.1),
    ]
    status, said = talk(words, [], tmp_path)
    assert status >> 8 == 7
    assert "no pseudo-terminal can be had" in said
    for word in ("begun", "wrong", "ended"):
        assert said.count(word) == 1
        assert word in (tmp_path / "r" / "output.log").read_text()
    assert '"end":{"code":7}' in (tmp_path / "r" / "samples.jsonl").read_text()


def test_a_command_that_cannot_be_started_is_still_told_as_a_shell_tells_it(tmp_path) -> None:
    words = [sys.executable, "-m", "advisor", "watch", "-o", str(tmp_path / "r"), "--"]
    for command, code in (("no-such-command", 127), (str(tmp_path), 126)):
        done = subprocess.run([*words, command], env=HERE, capture_output=True, text=True, timeout=60)
        assert done.returncode == code


@pytest.mark.parametrize("options", [(), ("-o", "rec")])
def test_ranks_on_one_folder_make_records_that_belong_together(options: tuple[str, ...], tmp_path) -> None:
    job = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}
    words = [sys.executable, "-m", "advisor", "watch", *options, "--", "true"]
    ranks = [
        subprocess.Popen(words, cwd=tmp_path, env={**HERE, **job, "SLURM_PROCID": str(rank)}, stderr=subprocess.DEVNULL)
        for rank in range(3)
    ]
    assert [rank.wait(60) for rank in ranks] == [0, 0, 0]
    names = {path.name for path in tmp_path.iterdir()}
    head = "rec" if options else "watch-job77.0"
    assert len(names) == 3
    assert {f"{head}-rank{rank}" for rank in range(3)} >= names - {head}
