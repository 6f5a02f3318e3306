"""A watched command on a real terminal: keys, signals, stops and the end are as without a watcher."""

from __future__ import annotations

import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from tests.watch.terminals import WATCH, talk

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="terminals of Linux")


def watched(folder, command):
    return [*WATCH, "-o", str(folder / "record"), "--", "bash", "-c", command]


def test_a_command_has_a_terminal_reads_what_is_typed_and_ends_with_its_own_code(tmp_path):
    command = 'test -t 0 && test -t 1 && test -t 2 && echo has-terminal; read -p "name? " x; echo "hello $x"; exit 7'
    status, said = talk(watched(tmp_path, command), [(b"name? ", b"bob\n")], tmp_path)
    assert os.waitstatus_to_exitcode(status) == 7
    assert "has-terminal" in said
    assert "hello bob" in said
    assert "hello bob" in (tmp_path / "record/output.log").read_text()


def test_an_interrupt_typed_reaches_the_command_which_may_handle_it(tmp_path):
    command = 'trap "echo caught; exit 5" INT; echo ready; sleep 20 & wait'
    status, said = talk(watched(tmp_path, command), [(b"ready", b"\x03")], tmp_path)
    assert os.waitstatus_to_exitcode(status) == 5
    assert "caught" in said


def test_a_command_that_dies_of_the_interrupt_ends_us_by_the_same_signal(tmp_path):
    status, _ = talk(watched(tmp_path, "echo ready; exec sleep 20"), [(b"ready", b"\x03")], tmp_path)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGINT


def test_a_stop_typed_gives_the_shell_its_terminal_and_fg_goes_on(tmp_path):
    command = " ".join(WATCH) + f" -o {tmp_path}/record -- bash -c 'echo ready; read l; echo got $l; exit 4'"
    script = [
        (b"$ ", f"PS1=next@\\ ; {command}\n".encode()),
        (b"\nready", b"\x1a"),
        (b"Stopped", b""),
        (b"next@ ", b"fg\n"),
        (b"fg\r\n", b"words\n"),
        (b"got words", b""),
        (b"next@ ", b"echo code=$?; exit\n"),
    ]
    _, said = talk(["env", "PS1=$ ", "bash", "--norc", "--noprofile", "-i"], script, tmp_path)
    assert "code=4" in said


def test_a_command_begun_in_the_background_is_typed_to_after_fg_and_echoes(tmp_path):
    command = " ".join(WATCH) + f" -o {tmp_path}/record -- bash -c 'echo ready; read l; echo got $l; exit 4'"
    script = [
        (b"$ ", f"PS1=next@\\ ; {command} &\n".encode()),
        (b"ready\r\n", b"\n"),
        (b"next@ ", b"fg\n"),
        (b"fg\r\n", b""),
        (b"exit 4'", b"words\n"),
        (b"got words", b""),
        (b"next@ ", b"echo code=$?; exit\n"),
    ]
    _, said = talk(["env", "PS1=$ ", "bash", "--norc", "--noprofile", "-i"], script, tmp_path)
    assert "code=4" in said
    assert "got words\r\n" in said  # ends as on one terminal
    assert said.count("words") >= 2  # typed and told


def test_a_terminal_that_is_closed_ends_us_as_the_command_ends(tmp_path):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
        argv = watched(tmp_path, "trap 'exit 3' HUP; echo ready; sleep 20 & wait")
        os.execvp(argv[0], argv)
    said = b""
    while b"ready" not in said:
        said += os.read(fd, 100)
    os.close(fd)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


def test_what_is_left_behind_on_a_terminal_prints_after_the_prompt_is_back(tmp_path):
    left = "(until [ -e back ]; do sleep .05; done; echo late) &"
    command = " ".join(WATCH) + f" -o {tmp_path}/record -- bash -c '{left} echo end'"
    script = [(b"$ ", f"PS1=next@\\ ; {command}\n".encode()), (b"next@ ", b": > back\n"), (b"late", b"exit\n")]
    _, said = talk(["env", "PS1=$ ", "bash", "--norc", "--noprofile", "-i"], script, tmp_path)
    assert said.index("end\r\n") < said.index("next@ ") < said.rindex("late\r\n")


def test_a_watcher_killed_by_force_leaves_command_output_record_and_terminal_whole(tmp_path):
    from advisor.watch.recording import read_record

    command = (
        " ".join(WATCH)
        + f" -o {tmp_path}/record -- bash -c 'for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep .2; done; echo the end'"
    )
    script = [
        (b"$ ", f"PS1='> '; {command} & pid=$!\n".encode()),
        (b"line 3", b"kill -9 $pid\n"),
        (b"the run goes on", b"sleep 1.6; stty -a | tr ' ' '\\n' | grep -x -e icanon -e -icanon; exit\n"),
        (b"icanon", b"\n"),
    ]
    _, said = talk(["env", "PS1=$ ", "bash", "--norc", "--noprofile", "-i"], script, tmp_path)
    assert (tmp_path / "record/output.log").read_text().splitlines()[-1] == "the end"
    assert "\n-icanon" not in said
    assert "\nicanon" in said
    recording = read_record(tmp_path / "record")
    assert recording.end is None
    assert recording.of_kind("host")[0].peak
