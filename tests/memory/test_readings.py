"""What a log measured stands in the ledger in place of what was predicted, and says so."""

from __future__ import annotations

import pytest

from advisor.crash.evidence import Crash, Evidence, Reading, ReadingKind
from advisor.memory.calibrate import corrected, corrections
from advisor.memory.cells import Cell, Ledger
from advisor.memory.ledger import build_ledger
from advisor.memory.readings import replaced_by, with_readings
from advisor.units import GIB
from advisor.words import Phase
from tests.replacing import replace

from .runs import box, easyr1

CARD = 80


def ledger(share: float = 0.6) -> Ledger:
    return build_ledger(easyr1(share=share), box(8, CARD, 760))


def read(kind: ReadingKind, gib: float, phase: Phase = "rollout_init", at: str = "") -> Reading:
    return Reading(12, phase, kind, round(gib * GIB), "", at, "train.log")


def crash(*readings: Reading, **fields: int) -> Crash:
    cause = Evidence("torch-oom", "cause", "train.log", 30, "", "gpu", "actor_update", fields)
    return Crash("oom", "gpu", "actor_update", "torch-oom", (cause,), readings=readings)


def cell(of: Ledger, owner: str, phase: Phase = "rollout_generate", begins: str = "") -> Cell:
    found = of.phase("gpu", phase)
    assert found is not None
    return next(c for c in found.cells if c.owner == owner and (not begins or begins in c.formula))


def measured(of: Ledger, died: Crash) -> Ledger:
    return with_readings(of, replaced_by(of, died))


@pytest.mark.parametrize(
    ("kind", "owner", "gib"),
    [("kv_cache", "kv_cache", 30.0), ("weights", "engine_weights", 8.1)],
)
def test_the_engines_own_profile_replaces_the_prediction(kind: ReadingKind, owner: str, gib: float) -> None:
    after = cell(measured(ledger(), crash(read(kind, gib))), owner)
    assert (after.low, after.expected, after.high) == (round(gib * GIB),) * 3
    assert after.basis == "measured"
    assert "train.log:12" in after.formula


def test_captured_graphs_replace_their_allowance() -> None:
    after = measured(ledger(), crash(read("graphs", 1.25)))
    assert cell(after, "engine_rest", begins="captured graphs").expected == round(1.25 * GIB)


def test_what_sleep_gave_back_tells_the_cache_where_nothing_else_does() -> None:
    before = ledger()
    weights = cell(before, "engine_weights").expected
    after = cell(measured(before, crash(read("freed", 40, "weight_sync"))), "kv_cache")
    assert after.expected == 40 * GIB - weights
    assert after.basis == "measured"


def test_what_was_in_use_asleep_less_the_trainers_is_the_residue() -> None:
    before = ledger()
    beside = before.phase("gpu", "rollout_generate")
    assert beside is not None
    engine = ("engine_weights", "kv_cache", "engine_rest")
    trainer = sum(c.expected for c in beside.cells if c.owner not in engine)
    left = Reading(14, "weight_sync", "still_used", trainer + 2 * GIB, "", "", "train.log")
    after = measured(before, crash(left))
    assert cell(after, "engine_rest", "actor_update", "left by sleep").expected == 2 * GIB


def test_a_reading_far_from_the_prediction_is_of_another_engine() -> None:
    before = ledger()
    assert measured(before, crash(read("weights", 0.9))) == before


def test_what_torch_keeps_beside_what_it_gave_out_is_its_own_figure() -> None:
    died = crash(total_bytes=80 * GIB, free_bytes=GIB, tried_bytes=2 * GIB, reserved_unallocated_bytes=5 * GIB)
    after = measured(ledger(), died)
    assert cell(after, "fragmentation", "actor_update").expected == 5 * GIB
    assert cell(after, "fragmentation", "optimizer_step").basis == "estimated"
    whole = corrected(after, corrections(after, died)).phase("gpu", "actor_update")
    assert whole is not None
    assert whole.expected == 81 * GIB


def test_a_changed_prediction_moves_by_the_difference_that_was_read() -> None:
    before, lower = ledger(0.6), ledger(0.5)
    found = replaced_by(before, crash(read("kv_cache", 30)))
    after = cell(with_readings(lower, found), "kv_cache")
    off = 30 * GIB - cell(before, "kv_cache").expected
    assert after.expected == cell(lower, "kv_cache").expected + off
    assert after.basis == "estimated"


def test_more_in_use_after_a_phase_than_predicted_is_unexplained_and_measured() -> None:
    before = ledger()
    died = replace(crash(read("used", 70, "log_prob", "After compute_log_prob")), memory="host", evidence=())
    after = corrected(before, corrections(before, died)).phase("gpu", "log_prob")
    assert after is not None
    assert after.expected == 70 * GIB
    assert after.cells[-1].basis == "measured"


def test_less_in_use_between_phases_says_nothing_of_their_peak() -> None:
    before = ledger()
    died = replace(crash(read("used", 2, "log_prob")), memory="host", evidence=())
    assert corrections(before, died) == ()
