"""A watched command in scripts and batch jobs: exit codes, signals, streams and pipes are as without a watcher."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.watch.recording import read_record
from tests.watch.terminals import WATCH

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes of Linux")
HERE = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def started(folder, *command, options=(), **streams):
    argv = [*WATCH, "-o", str(folder / "record"), *options, "--", *command]
    wanted = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **streams}
    return subprocess.Popen(argv, env=HERE, cwd=folder, text=True, **wanted)


def finished(folder, *command, **streams):
    process = started(folder, *command, **streams)
    out, err = process.communicate(timeout=90)
    return process.returncode, out, err


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_commands(tmp_path, code):
    assert finished(tmp_path, "bash", "-c", f"exit {code}")[0] == code


def test_output_and_errors_keep_to_their_streams_and_stand_in_the_record(tmp_path):
    _, out, err = finished(tmp_path, "bash", "-c", "echo to-out; echo to-err >&2")
    assert out == "to-out\n"
    assert "to-err\n" in err
    assert (tmp_path / "record/output.log").read_text() == "to-out\n"
    assert (tmp_path / "record/errors.log").read_text() == "to-err\n"


def test_standard_input_is_passed_through(tmp_path):
    done = subprocess.run(
        [*WATCH, "-o", str(tmp_path / "record"), "--", "sort"],
        input="b\na\n", env=HERE, capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    assert done.stdout == "a\nb\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_watcher_reaches_the_command_and_ends_both_alike(tmp_path, number):
    process = started(tmp_path, "bash", "-c", "echo ready; exec sleep 20")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=10)
    assert process.returncode == -number


def test_what_nohup_ignores_stays_ignored(tmp_path):
    process = started(
        tmp_path,
        "bash",
        "-c",
        "echo ready; sleep 0.6; echo lived",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    assert process.stdout.read() == "lived\n"  # may have come with the first line, so it is not asked for anew
    assert process.wait(timeout=30) == 0


def test_a_command_that_is_not_there_is_told_in_a_sentence_with_the_shells_code(tmp_path):
    code, _, err = finished(tmp_path, "no-such-command-here")
    assert code == 127
    assert "no-such-command-here" in err


def test_a_reader_that_goes_away_ends_the_command_as_a_broken_pipe_does(tmp_path):
    process = started(tmp_path, "bash", "-c", "while :; do echo y; done", stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.wait(timeout=10) == -signal.SIGPIPE


def test_what_the_command_left_behind_prints_still_reaches_the_reader(tmp_path):
    _, out, _ = finished(tmp_path, "bash", "-c", "(sleep 0.6; echo late) & echo end", stderr=subprocess.DEVNULL)
    assert out == "end\nlate\n"
    assert (tmp_path / "record/output.log").read_text() == "end\nlate\n"


def test_a_command_that_ignores_a_broken_pipe_meets_it_as_an_error(tmp_path):
    code = "import sys\ntry:\n    while True: print('y', flush=True)\nexcept BrokenPipeError: sys.exit(9)"
    process = started(tmp_path, sys.executable, "-c", code, stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.wait(timeout=20) == 9


def test_a_script_without_a_first_line_that_names_its_reader_is_read_by_a_shell(tmp_path):
    (tmp_path / "run").write_text("echo from $1; exit 4\n")
    (tmp_path / "run").chmod(0o755)
    code, out, _ = finished(tmp_path, "./run", "me")
    assert (code, out) == (4, "from me\n")


def test_a_watcher_killed_by_force_leaves_the_command_writing_and_the_record_readable(tmp_path):
    go = tmp_path / "go"
    process = started(tmp_path, "bash", "-c", f"echo $$; until [ -e {go} ]; do sleep .05; done; echo done")
    pid = int(process.stdout.readline())
    time.sleep(0.5)
    process.kill()
    process.wait()
    os.kill(pid, 0)
    go.touch()
    until = time.monotonic() + 20
    while "done" not in (tmp_path / "record/output.log").read_text() and time.monotonic() < until:
        time.sleep(0.05)
    assert "done" in (tmp_path / "record/output.log").read_text()
    recording = read_record(tmp_path / "record")
    assert recording.end is None
    assert recording.of_kind("host")[0].peak


def test_an_alert_is_told_once_on_standard_error(tmp_path):
    process = started(tmp_path, "sleep", "0.6", options=("--alert", "0.1%"))
    _, err = process.communicate(timeout=20)
    assert err.count("in use") >= 1
    assert err.count("host RAM:") == 1
    assert read_record(tmp_path / "record").alerts


def test_joining_a_run_follows_its_output_file_to_its_end(tmp_path):
    log = (tmp_path / "train.log").open("w")
    joined = f"until grep -q column {tmp_path}/record/samples.jsonl; do sleep .1; done; sleep .2"
    run = subprocess.Popen(
        ["bash", "-c", f"({joined}) 2> /dev/null; echo 'Update policy:  31%|###'; sleep 1"], stdout=log, stderr=log
    )
    done = subprocess.run(
        [*WATCH, "-o", str(tmp_path / "record"), "--attach", str(run.pid)],
        env=HERE, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    run.wait()
    assert done.returncode == 0, done.stderr
    recording = read_record(tmp_path / "record")
    assert [phase for _, phase in recording.phases] == ["actor_update"]
    assert recording.end == {"unknown": True}


def test_joining_a_process_that_is_not_there_is_refused(tmp_path):
    done = subprocess.run(
        [*WATCH, "-o", str(tmp_path / "r"), "--attach", "4194300"],
        env=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no such process" in done.stderr


def test_many_that_begin_at_once_have_a_record_each(tmp_path):
    ranks = [
        subprocess.Popen([*WATCH, "--", "bash", "-c", f"echo ran; exit {n}"], env={**HERE, "SLURM_JOB_ID": "77"},
                         cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for n in range(3)
    ]  # fmt: skip
    assert [(one.communicate(timeout=90)[0], one.returncode) for one in ranks] == [("ran\n", n) for n in range(3)]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["watch-job77", "watch-job77-2", "watch-job77-3"]


def test_a_record_that_is_there_is_left_alone_and_the_command_runs(tmp_path):
    finished(tmp_path, "true")
    before = (tmp_path / "record/samples.jsonl").read_bytes()
    code, out, err = finished(tmp_path, "bash", "-c", "echo again; exit 4")
    assert (code, out) == (4, "again\n")
    assert "there is a record already" in err
    assert (tmp_path / "record/samples.jsonl").read_bytes() == before


def test_where_nothing_can_be_written_the_command_runs_without_a_record():
    argv = [*WATCH, "-o", "/proc/nowhere/record", "--"]
    ran = subprocess.run([*argv, "bash", "-c", "echo ran; kill -TERM $$"], env=HERE, capture_output=True, text=True,
                         timeout=90, check=False)  # fmt: skip
    assert (ran.stdout, ran.returncode) == ("ran\n", -signal.SIGTERM)
    assert "no record can be written" in ran.stderr
    missing = subprocess.run([*argv, "no-such-command"], env=HERE, capture_output=True, timeout=90, check=False)
    assert missing.returncode == 127
