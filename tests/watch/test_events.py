"""Events reach the user's own command as JSON, and nothing that it does holds up the run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from advisor.watch import events
from advisor.watch.events import Notifier


def test_each_event_is_one_object_on_standard_input(tmp_path: Path) -> None:
    notifier = Notifier(f"tee '{tmp_path / 'told here'}'")
    notifier.send("death", attempt=1, title="显存不足; rm -rf $HOME")
    notifier.finish()
    told = json.loads((tmp_path / "told here").read_text())
    assert (told["event"], told["attempt"], told["title"]) == ("death", 1, "显存不足; rm -rf $HOME")


def test_a_command_that_hangs_or_reads_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_PATIENCE", 0.2)
    notifier = Notifier("sleep 60")
    begun = time.monotonic()
    for _ in range(12):
        notifier.send("alert", text="x" * 100_000)
    assert time.monotonic() - begun < 2
    assert len(notifier.pids()) <= 8
    notifier.finish()
    assert time.monotonic() - begun < 3
    assert not notifier.pids()


def test_a_command_that_is_not_there_costs_the_events_only() -> None:
    notifier = Notifier("/no/such/command --at all")
    notifier.send("start")
    notifier.finish()
    assert notifier.failed


def test_words_that_cannot_be_split_are_refused() -> None:
    with pytest.raises(ValueError, match="quotation"):
        Notifier("tee 'half")


def test_an_event_tells_no_secret_however_deep_it_stands(tmp_path: Path) -> None:
    told, token = tmp_path / "told", "hf_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xYz"
    notifier = Notifier(f"tee '{told}'")
    notifier.send("start", command=["python", f"--hub_token={token}"], settings={"env": [f"HF_TOKEN={token}"]}, step=3)
    notifier.finish()
    assert json.loads(told.read_text())["step"] == 3
    assert token not in told.read_text()
