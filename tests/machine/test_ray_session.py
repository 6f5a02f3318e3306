"""What Ray's session logs on a node say of a worker that died, also where only its raylet knows why."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import open_knowledge
from advisor.machine.ray_session import ends_of_workers, raylet_words
from advisor.request import SessionRequest, read_crash_of, silent

WORKER, OTHER, ACTOR = "58290a84" * 7, "ffffaaaa" * 7, "a84aa5ff" * 4
KILL = """\
[2026-03-01 00:36:19,416 I 8439 8439] (raylet) node_manager.cc:3199: Killing 1 worker(s), kill details: Memory on the \
node (IP: 10.0.0.2, ID: 4e57) was 57.30GB used / 60.00GB limit (0.955)
Object store memory usage: [- objects spillable: 0

Eviction Stats:
]
Selected to kill: (Actor({actor}): job ID=02000000, pid=8714, actual memory used=4.66GB, worker ID={worker})
Top 10 memory users: PID\tMEM(GB)\tCOMMAND
8714\t41.66\tray::WorkerDict.update_actor
"""
OTHERS = "[2026-03-01 00:36:20,003 I 8439 8439] (raylet) node_manager.cc:1484: Disconnecting driver worker_id=0100\n"
DRIVER = """\
step:1 - actor/loss:0.1
Traceback (most recent call last):
  File "main.py", line 14, in <module>
ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
\tclass_name: WorkerDict
\tactor_id: {actor}
\tpid: 8714
\tip: 10.0.0.2
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker \
unexpectedly exits with a connection error code 2. End of file.
"""


@pytest.fixture
def session(tmp_path, monkeypatch):
    """The logs folder of a session where Ray's memory monitor killed a worker, and others went on."""
    logs = tmp_path / "ray" / "session_2026-03-01_00-30-00_1_2" / "logs"
    logs.mkdir(parents=True)
    killed = KILL.format(worker=WORKER, actor=ACTOR)
    (logs / "raylet.out").write_text(OTHERS + KILL.format(worker=OTHER, actor="0" * 32) + OTHERS + killed + OTHERS)
    (logs / f"worker-{WORKER}-02000000-8714.err").write_text(":job_id:02000000\n")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    return logs


def test_the_raylet_tells_of_this_worker_alone_in_whole_records(session):
    assert raylet_words([WORKER], session.parents[1]) == KILL.format(worker=WORKER, actor=ACTOR)


def test_an_actor_without_logs_of_its_own_is_found_in_the_newest_sessions(session):
    assert raylet_words([ACTOR], session.parents[1]) == KILL.format(worker=WORKER, actor=ACTOR)
    assert raylet_words(["1" * 32], session.parents[1]) == ""


def test_a_worker_of_another_node_has_nothing_here(session):
    assert set(ends_of_workers([WORKER])) == {f"worker-{WORKER}-02000000-8714.err", "raylet.out"}
    assert ends_of_workers(["1" * 56]) == {}
    assert ends_of_workers([]) == {}


def test_the_end_of_a_raylet_s_log_that_begins_within_a_record_and_bytes_that_are_no_text_do_no_harm(session):
    (session / "raylet.out").write_bytes(b"\xff\xfe rest of a record\n" + KILL.format(worker=WORKER, actor=1).encode())
    assert raylet_words([WORKER], session.parents[1]).startswith("[2026-03-01 00:36:19")


def test_a_driver_log_that_says_only_died_is_explained_by_the_raylet(session, tmp_path):
    log: Path = tmp_path / "driver.log"
    log.write_text(DRIVER.format(actor=ACTOR))
    crash = read_crash_of(SessionRequest(logs=(log,)), open_knowledge(()), silent)
    assert (crash.verdict, crash.memory) == ("oom", "host")
    assert crash.evidence[0].signature == "ray-memory-kill"


def test_the_death_of_another_actor_proves_nothing_of_this_one(session, tmp_path):
    log: Path = tmp_path / "driver.log"
    log.write_text(DRIVER.format(actor="1" * 32))
    assert read_crash_of(SessionRequest(logs=(log,)), open_knowledge(()), silent).verdict == "unclear"
