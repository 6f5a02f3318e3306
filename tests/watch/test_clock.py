"""The clock on the wall may be set while a run lives: what belongs to the run is still found."""

from __future__ import annotations

import os
import time

import pytest

from advisor.watch.request import Beginning
from advisor.watch.system_logs import keep_ends


@pytest.mark.parametrize("jump", [-86_400, -3, 0, 3, 86_400])
def test_what_was_written_since_the_beginning_is_found_whatever_the_clock_was_set_to(tmp_path, monkeypatch, jump):
    logs, began = tmp_path / "logs", Beginning.now()
    logs.mkdir()
    for name, at in (("worker-0-a.err", began.wall + 1), ("worker-1-b.err", began.wall + jump + 2)):
        (logs / name).write_text("torch.OutOfMemoryError\n")
        os.utime(logs / name, (at, at))
    wall, steady = time.time, time.monotonic
    monkeypatch.setattr(time, "time", lambda: wall() + jump + 3)
    monkeypatch.setattr(time, "monotonic", lambda: steady() + 3)
    assert keep_ends(logs, tmp_path / "kept", began.earliest()) == 2


def test_what_was_there_before_is_not_the_runs(tmp_path):
    logs, began = tmp_path / "logs", Beginning.now()
    logs.mkdir()
    (logs / "worker-0-a.err").write_text("an old run\n")
    os.utime(logs / "worker-0-a.err", (began.wall - 60, began.wall - 60))
    assert keep_ends(logs, tmp_path / "kept", began.earliest()) == 0
