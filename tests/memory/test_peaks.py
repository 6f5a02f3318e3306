"""What a record measured in a phase takes the place of what was predicted there."""

from __future__ import annotations

import pytest

from advisor.memory.amount import in_bytes
from advisor.memory.calibrate import Correction, corrected
from advisor.memory.cells import Ledger
from advisor.memory.ledger import build_ledger
from advisor.memory.readings import ENGINE, Peak, proven_by, with_peaks
from advisor.run.run import Topology
from advisor.units import GIB
from advisor.words import Phase
from tests.loops import each
from tests.memory.runs import FSDP, box, make_run
from tests.replacing import replace

WHERE = "the record, GPU 0 at 31 s"


def ledger(micro: int = 8) -> Ledger:
    knobs = {
        "actor.micro_batch": micro,
        "data.max_prompt": 1024,
        "data.max_response": 3072,
        "rollout.memory_share": 0.4,
    }
    run = make_run("Qwen2.5-7B-Instruct", FSDP, Topology(1, 8, 8, 8, tensor_parallel=2), knobs)
    return build_ledger(run, box(8, 80, 1000))


def peak_of(size: float, phase: Phase = "actor_update", *, whole: bool = True) -> Peak:
    return Peak("gpu", phase, round(size), WHERE, whole)


def predicted(of: Ledger, phase: Phase = "actor_update") -> int:
    found = of.phase("gpu", phase)
    assert found is not None
    return found.expected


def shown(of: Ledger, *others: Peak) -> tuple[Peak, ...]:
    """Peaks of every phase as predicted, those given in their place: so nothing is hidden."""
    given = {peak.phase for peak in others}
    same = tuple(Peak("gpu", each.phase, each.expected, WHERE) for each in of.gpu if each.phase not in given)
    return (*same, *others)


@each("share", [0.45, 0.8, 1.0, 1.3])
def test_the_sum_of_a_phase_is_what_was_measured_and_certain(share: float) -> None:
    before = ledger()
    size = round(predicted(before) * share)
    after = with_peaks(before, proven_by(before, shown(before, peak_of(size)))).phase("gpu", "actor_update")
    assert after is not None
    assert (after.low, after.expected, after.high) == (size, size, size)
    assert after.predicted == predicted(before)
    assert WHERE in after.measured
    assert all(0 <= cell.low <= cell.expected <= cell.high for cell in after.cells)


def test_what_is_beyond_the_prediction_is_unexplained_and_measured() -> None:
    before = ledger()
    after = with_peaks(before, proven_by(before, shown(before, peak_of(predicted(before) + 7 * GIB))))
    cells = [c for each in after.gpu for c in each.cells if c.owner == "unexplained"]
    assert [(c.expected, c.basis) for c in cells] == [(7 * GIB, "measured")]
    assert WHERE in cells[0].formula


def test_where_less_was_held_the_states_of_the_model_are_believed_longest() -> None:
    before = ledger()
    after = with_peaks(before, proven_by(before, shown(before, peak_of(predicted(before) * 0.8))))
    old, new = (one.phase("gpu", "actor_update") for one in (before, after))
    assert old is not None
    assert new is not None
    changed = {a.owner for a, b in zip(old.cells, new.cells, strict=True) if a.expected != b.expected}
    assert "logits" in changed
    assert not changed & {"weights", "gradients", "optimizer"}


def test_a_phase_that_was_cut_off_may_need_more_but_not_less() -> None:
    before = ledger()
    size = predicted(before)
    assert proven_by(before, shown(before, peak_of(size * 0.8, whole=False)))[-1].phase != "actor_update"
    assert proven_by(before, shown(before, peak_of(size * 1.2, whole=False)))[-1].phase == "actor_update"


@pytest.mark.parametrize("share", [0.2, 4.0])
def test_a_peak_far_from_the_prediction_is_of_another_run(share: float) -> None:
    before = ledger()
    assert all(peak.phase != "actor_update" for peak in proven_by(before, [peak_of(predicted(before) * share)]))


def test_a_high_peak_may_be_that_of_a_phase_which_the_output_does_not_show() -> None:
    before = ledger()
    low, high = sorted(before.gpu, key=lambda each: each.expected)[1:4:2]
    between = Peak("gpu", low.phase, (low.expected + high.expected) // 2, WHERE)
    assert proven_by(before, [between]) == ()
    assert any(peak.phase == low.phase for peak in proven_by(before, shown(before, between)))


def test_after_a_change_the_difference_that_was_measured_moves_along() -> None:
    before, smaller = ledger(8), ledger(2)
    proven = proven_by(before, shown(before, peak_of(predicted(before) + 5 * GIB)))
    assert predicted(with_peaks(smaller, proven)) == predicted(smaller) + 5 * GIB
    proven = proven_by(before, shown(before, peak_of(predicted(before) * 0.8)))
    assert predicted(with_peaks(smaller, proven)) == pytest.approx(predicted(smaller) * 0.8, rel=1e-6)
    changed = with_peaks(smaller, proven).phase("gpu", "actor_update")
    assert changed is not None
    assert changed.measured == ""
    assert changed.high > changed.expected


def engine_in(of: Ledger, phase: Phase) -> int:
    found = of.phase("gpu", phase)
    assert found is not None
    return sum(cell.expected for cell in found.cells if cell.owner in ENGINE)


def test_what_the_engines_own_processes_held_is_its_part_and_the_rest_is_the_trainers() -> None:
    before = ledger()
    held, whole = engine_in(before, "weight_sync"), predicted(before, "weight_sync")
    peak = replace(peak_of(whole, "weight_sync"), engine=held - 3 * GIB)
    after = with_peaks(before, proven_by(before, shown(before, peak)))
    found = after.phase("gpu", "weight_sync")
    assert found is not None
    assert (found.expected, engine_in(after, "weight_sync")) == (whole, held - 3 * GIB)
    assert {c.basis for c in found.cells if c.owner in ENGINE} == {"measured"}
    assert sum(c.expected for c in found.cells if c.owner == "unexplained") == 3 * GIB


def test_processes_far_from_the_predicted_engine_are_another_one() -> None:
    before = ledger()
    peak = replace(
        peak_of(predicted(before, "weight_sync"), "weight_sync"), engine=engine_in(before, "weight_sync") // 5
    )
    proven = proven_by(before, shown(before, peak))
    assert engine_in(with_peaks(before, proven), "weight_sync") == engine_in(before, "weight_sync")


def test_what_a_death_proves_of_every_phase_is_not_added_to_one_that_was_measured() -> None:
    before = ledger()
    host = tuple(replace(each, measured=WHERE if each.phase == "log_prob" else "") for each in before.host)
    rest = Correction("host", "actor_update", in_bytes("killed", 9 * GIB), 900 * GIB, every_phase=True)
    after = corrected(replace(before, host=host), (rest,))
    held = {each.phase: sum(c.expected for c in each.cells if c.owner == "unexplained") for each in after.host}
    assert held["log_prob"] == 0
    assert held["actor_update"] == held["rollout_generate"] == 9 * GIB
