"""What a dead run left is waited for and then ended; nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from advisor.units import GIB
from advisor.watch.gauges import Gauge
from advisor.watch.process_tree import others_on_cards, role_of
from advisor.watch.record import Record
from advisor.watch.recording import read_record

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes of Linux")
_IN_ITS_OWN_PROCESS = """
import subprocess, sys, time
from advisor.watch.process_tree import adopt_orphans, wait_for_leftovers
adopt_orphans()
subprocess.run(["bash", "-c", {command!r}])
begun = time.monotonic()
print(wait_for_leftovers({limit}, 0.5, set), round(time.monotonic() - begun, 1))
"""


def waited(command: str, limit: float) -> str:
    program = textwrap.dedent(_IN_ITS_OWN_PROCESS.format(command=command, limit=limit))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def test_an_orphan_that_ends_by_itself_is_waited_for() -> None:
    assert waited("(setsid sleep 0.4 &)", 5).startswith("([], []) 0.")


def test_an_orphan_that_stays_is_ended() -> None:
    assert waited("(trap '' TERM; setsid sleep 60 &)", 0.2).startswith("([], [])")


def test_rays_own_processes_are_left_alone_and_named() -> None:
    assert waited("(exec -a raylet sleep 1 &)", 0.2).startswith("([], ['raylet'])")


def test_a_process_of_somebody_else_is_not_touched() -> None:
    other = subprocess.Popen(["sleep", "30"])
    assert waited("true", 0.1).startswith("([], [])")
    assert other.poll() is None
    other.kill()
    other.wait()


def test_strangers_on_the_cards_are_named_by_what_they_hold(tmp_path: Path) -> None:
    record = Record.create(tmp_path / "record", {"began": 1.7e9, "command": ["bash", "run.sh"]})
    dead = 2**22 + 7  # above the kernel's greatest process id
    columns = {
        pid: [record.column(Gauge("gpu_process", name, None, pid, card)) for card in (0, 1)]
        for pid, name in ((1, "another process"), (os.getpid(), "ours"), (dead, "gone"))
    }
    record.sample(1, {column: GIB for two in columns.values() for column in two})
    record.flush(1)
    record.close()
    assert others_on_cards(read_record(tmp_path / "record")) == [(role_of(1), 2 * GIB)]
