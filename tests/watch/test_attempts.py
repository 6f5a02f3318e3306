"""The attempts of a run that came back are one story: in order, with what was changed, expected and held."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.report.record_report import attempt_sentences, record_json
from advisor.tui.record_view import RecordView
from advisor.units import GIB
from advisor.watch.listing import add_told, attempts_of, joined
from advisor.watch.measured import measured_in
from advisor.watch.record_files import ATTEMPT
from tests.replacing import replace
from tests.tui.made_state import host_crash
from tests.tui.screen_text import opened, press, screen_text
from tests.watch.made_record import made_record


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three attempts, and a record of another run beside them."""
    root = tmp_path_factory.mktemp("chain")
    folders = [made_record(root / name, steps=4) for name in ("first", "second", "third", "stranger")]
    planned = {"place": "host", "phase": "actor_update", "bytes": 250 * GIB}
    for number, folder in enumerate(folders[:3], start=1):
        before = None if number == 1 else str(folders[number - 2])
        told = {"attempt": number, "before": before, "changes": [f"workers {8 // number} → {8 // (number + 1)}"]}
        about = {**told, "from_step": 2 * number, "planned": planned} if number > 1 else {"attempt": 1}
        (folder / ATTEMPT).write_text(json.dumps(about))
        add_told(folder, verdict="oom", memory="host", phase="actor_update")
    return folders


def test_any_of_them_leads_to_all_in_order(chain: list[Path]) -> None:
    for folder in chain[:3]:
        assert [one.record.folder.name for one in attempts_of(folder)] == ["first", "second", "third"]
    assert attempts_of(chain[3]) == ()


def test_each_has_a_line_with_its_changes_and_what_was_expected(chain: list[Path]) -> None:
    first, second, _ = attempt_sentences(chain[2])
    assert first.startswith("attempt 1: Host RAM ran out: the actor update, step 4")
    assert "workers 4 → 2; from step 4" in second
    assert "of 512.0 GiB, 250.0 expected" in second
    found = record_json(measured_in(chain[1]))
    assert found is not None
    assert [one["planned_bytes"] for one in found["attempts"]] == [None, 250 * GIB, 250 * GIB]
    assert found["attempts"][0]["peak_bytes"] > 250 * GIB


def test_a_chain_that_was_tampered_with_ends_and_harms_nothing(tmp_path: Path) -> None:
    one, other = (made_record(tmp_path / name, steps=2) for name in ("one", "other"))
    for folder, before in ((one, other), (other, one)):
        (folder / ATTEMPT).write_text(json.dumps({"attempt": 2, "before": str(before), "planned": {"bytes": "many"}}))
    assert len(attempts_of(one)) == 2
    (one / ATTEMPT).write_text("[" * 100_000)
    assert [each.record.folder.name for each in attempts_of(one)] == ["one", "other"]


def test_memory_over_time_runs_through_all_of_them(chain: list[Path]) -> None:
    attempts = attempts_of(chain[0])
    whole, parts = joined(attempts), [measured_in(one.record.folder).length for one in attempts]
    assert whole.length == pytest.approx(max(parts))  # the made-up ones began at the same moment
    (host,) = whole.of_kind("host")
    assert sum(size == -1 for size in host.sizes) == len(attempts)


async def test_the_app_shows_a_line_for_each_and_one_key_shows_this_one_alone(chain: list[Path]) -> None:
    async with opened(replace(host_crash(), measured=measured_in(chain[1]))) as pilot:
        await press(pilot, "t")
        view = pilot.app.screen
        assert isinstance(view, RecordView)
        shown = screen_text(pilot.app)
        assert "attempt 1: Host RAM ran out" in shown
        assert "attempts" in shown
        await press(pilot, "a")
        assert view.alone


async def test_without_attempts_there_is_no_such_key(chain: list[Path]) -> None:
    async with opened(replace(host_crash(), measured=measured_in(chain[3]))) as pilot:
        await press(pilot, "t", "a")
        view = pilot.app.screen
        assert isinstance(view, RecordView)
        assert not view.alone
