"""Output on its way through the process apart: into the log, past a full disk, and after the command's end."""

from __future__ import annotations

import os
import sys

import pytest

from advisor.watch.output_relay import Stream, start_output_relay

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes of Linux")


@pytest.fixture
def pipe():
    read, write = os.pipe()
    yield read, write
    os.close(read)


@pytest.fixture
def log(tmp_path):
    fd = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    yield fd
    os.close(fd)


def poured_to(log, pipe):
    output = start_output_relay([Stream(log, pipe[1])])
    os.close(pipe[1])
    return output


def test_what_is_printed_until_the_end_is_the_watchers_to_show_and_what_comes_later_is_shown(tmp_path, log, pipe):
    output = poured_to(log, pipe)
    os.write(output.ends[0], b"before\n")
    assert output.sizes() == [7]
    os.write(output.ends[0], b"later\n")
    output.close_ends()
    assert os.read(pipe[0], 100) == b"later\n"
    assert os.read(pipe[0], 100) == b""
    assert (tmp_path / "log").read_bytes() == b"before\nlater\n"


def test_a_full_disk_never_meets_the_command_and_its_output_is_shown_all_the_same(pipe):
    full = os.open("/dev/full", os.O_WRONLY)
    output = poured_to(full, pipe)
    os.close(full)
    os.write(output.ends[0], b"words\n")
    assert os.read(pipe[0], 100) == b"words\n"
    output.close_ends()


def test_a_reader_that_goes_breaks_the_commands_pipe(log, pipe):
    output = poured_to(log, pipe)
    output.lose_reader(0)
    output.sizes()
    with pytest.raises(BrokenPipeError):
        os.write(output.ends[0], b"x")
    output.close_ends()


def test_a_watcher_that_is_gone_leaves_the_log_going_on(tmp_path, log, pipe):
    output = poured_to(log, pipe)
    os.close(output.ask)
    assert os.read(pipe[0], 100) == b""  # whoever read us sees the end
    os.write(output.ends[0], b"alone\n")
    output.close_ends()
    os.read(output.answer, 100)  # its own end
    assert (tmp_path / "log").read_bytes() == b"alone\n"
