"""The glance: the same verdict as the whole reading, from a child that never holds anybody up."""

import os
from pathlib import Path

import pytest

from advisor.demo import demo_files
from advisor.glance import Looking, Sight, glance_at
from advisor.session import SessionRequest, open_session

DEMO = demo_files()


def test_a_child_tells_the_verdict_and_the_described_machine() -> None:
    found = Looking(Sight((DEMO.log,), gpus="8xA100-40GB", host_ram="760GB")).result(30)
    assert found is not None
    whole = open_session(SessionRequest(logs=(DEMO.log,))).crash
    assert (found.crash.verdict, found.crash.memory, found.crash.phase) == (whole.verdict, whole.memory, whole.phase)
    assert len(found.machine.gpus) == 8
    assert found.titles


def test_of_a_long_log_only_the_end_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(b"a line of no importance\n" * 100_000 + DEMO.log.read_bytes())
    found = glance_at(Sight((log,)))
    assert found is not None
    assert found.crash.preliminary
    assert found.crash.memory == "host"


def test_an_end_that_proves_nothing_is_not_shown_as_a_verdict(tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(DEMO.log.read_bytes() + b"a line of no importance\n" * 100_000)
    assert glance_at(Sight((log,))) is None


def test_what_can_be_read_only_once_is_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert glance_at(Sight((pipe,))) is None
    assert not Looking(Sight((Path("-"),))).is_looking
    assert not Looking(Sight(())).is_looking


@pytest.mark.parametrize("name", ["gone.log", "binary.log"])
def test_trouble_is_left_to_the_reading_itself(tmp_path: Path, name: str) -> None:
    (tmp_path / "binary.log").write_bytes(b"\x7fELF" + bytes(5000))
    assert Looking(Sight((tmp_path / name,))).result(30) is None


def test_a_child_that_takes_too_long_is_ended() -> None:
    looking = Looking(Sight((DEMO.log,)))
    assert looking.result(0.0) is None
    assert not looking.is_looking
    assert looking.result(0.0) is None
