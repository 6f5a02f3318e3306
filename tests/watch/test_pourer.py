"""Output on its way through the process apart: into the log, past a full disk, and after the command's end."""

from __future__ import annotations

import os
import sys

import pytest

from advisor.watch.pourer import Stream, pour

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
    poured = pour([Stream(log, pipe[1])])
    os.close(pipe[1])
    return poured


def test_what_is_printed_until_the_end_is_the_watchers_to_show_and_what_comes_later_is_shown(tmp_path, log, pipe):
    poured = poured_to(log, pipe)
    os.write(poured.ends[0], b"before\n")
    assert poured.sizes() == [7]
    os.write(poured.ends[0], b"later\n")
    poured.close_ends()
    assert os.read(pipe[0], 100) == b"later\n"
    assert os.read(pipe[0], 100) == b""
    assert (tmp_path / "log").read_bytes() == b"before\nlater\n"


def test_a_full_disk_never_meets_the_command_and_its_output_is_shown_all_the_same(pipe):
    full = os.open("/dev/full", os.O_WRONLY)
    poured = poured_to(full, pipe)
    os.close(full)
    os.write(poured.ends[0], b"words\n")
    assert os.read(pipe[0], 100) == b"words\n"
    poured.close_ends()


def test_a_reader_that_goes_breaks_the_commands_pipe(log, pipe):
    poured = poured_to(log, pipe)
    poured.lose_reader(0)
    poured.sizes()
    with pytest.raises(BrokenPipeError):
        os.write(poured.ends[0], b"x")
    poured.close_ends()


def test_a_watcher_that_is_gone_leaves_the_log_going_on(tmp_path, log, pipe):
    poured = poured_to(log, pipe)
    os.close(poured.ask)
    assert os.read(pipe[0], 100) == b""  # whoever read us sees the end
    os.write(poured.ends[0], b"alone\n")
    poured.close_ends()
    os.read(poured.answer, 100)  # its own end
    assert (tmp_path / "log").read_bytes() == b"alone\n"
