"""The documented crashes, as runs: what the ledger must see in each of them."""

from __future__ import annotations

import time

import pytest

from advisor.memory.cells import Ledger, Owner
from advisor.memory.fit import Walls, unfit
from advisor.memory.ledger import build_ledger, difference
from advisor.units import GIB
from advisor.words import Phase
from tests.memory.runs import engine_cannot_start, explained_host

from .runs import box, easyr1, logic_rl, ms_swift, open_reasoner_zero, openrlhf

A100_40, A100_80 = 39.5, 79.15
MARGIN = 0.08


def gib(ledger: Ledger, phase: Phase, place: str = "gpu") -> float:
    found = ledger.phase("gpu" if place == "gpu" else "host", phase)
    assert found is not None, phase
    return found.expected / GIB


def owned(ledger: Ledger, phase: Phase, owner: Owner) -> float:
    found = ledger.phase("gpu", phase)
    assert found is not None
    return sum(cell.expected for cell in found.cells if cell.owner == owner) / GIB


def test_logic_rl_halving_the_train_batch_is_what_makes_the_update_fit() -> None:
    machine = box(4, A100_80)
    eight, four = (build_ledger(logic_rl(prompts), machine) for prompts in (8, 4))
    assert gib(eight, "actor_update") > A100_80
    assert gib(four, "actor_update") < A100_80 * (1 - MARGIN)


def test_logic_rl_a_smaller_micro_batch_changes_nothing_while_the_card_holds_fewer_sequences() -> None:
    machine = box(4, A100_80)
    saved = difference(build_ledger(logic_rl(), machine), build_ledger(logic_rl(actor__micro_batch=64), machine), "gpu")
    assert set(saved.values()) == {0}
    assert build_ledger(logic_rl(actor__micro_batch=32), machine).phase("gpu", "actor_update") is not None
    less = build_ledger(logic_rl(actor__micro_batch=32), machine)
    assert gib(less, "actor_update") < gib(build_ledger(logic_rl(), machine), "actor_update") - 20


def test_logic_rl_a_token_budget_fits_without_changing_the_batch() -> None:
    budget = logic_rl(actor__dynamic_batch=True, actor__tokens_per_gpu=4896)
    ledger = build_ledger(budget, box(4, A100_80))
    assert gib(ledger, "actor_update") < A100_80 * (1 - MARGIN)
    assert gib(ledger, "log_prob") < A100_80 * (1 - MARGIN)


def test_logic_rl_the_engine_takes_half_of_what_is_free_and_not_of_the_card() -> None:
    ledger = build_ledger(logic_rl(), box(4, A100_80))
    assert owned(ledger, "rollout_generate", "kv_cache") < 0.5 * (A100_80 - 7 - 14)


def test_open_reasoner_zero_the_wake_up_is_the_fullest_moment_and_the_share_relieves_it() -> None:
    machine = box(4, A100_80)
    before, after = (build_ledger(open_reasoner_zero(share), machine) for share in (0.7, 0.5))
    peak = before.peak("gpu")
    assert peak is not None
    assert peak.phase == "weight_sync"
    assert gib(before, "weight_sync") > gib(before, "rollout_generate") + 4
    saved = difference(before, after, "gpu")
    assert saved["weight_sync"] / GIB == pytest.approx(0.2 * A100_80, abs=0.1)
    assert saved["actor_update"] == 0


def test_open_reasoner_zero_has_a_critic_that_needs_its_own_phase() -> None:
    ledger = build_ledger(open_reasoner_zero(), box(4, A100_80))
    assert ledger.phase("gpu", "critic_update") is not None
    assert owned(ledger, "critic_update", "logits") == 0
    assert owned(ledger, "critic_update", "optimizer") == 0


def test_openrlhf_the_leak_fills_every_card_however_many_there_are() -> None:
    few, many = (build_ledger(openrlhf(True, gpus), box(8, 80)) for gpus in (32, 64))
    whole = 2 * 70_553_706_496 / GIB
    assert owned(few, "actor_update", "gathered") >= whole - 0.1
    assert gib(few, "actor_update") - gib(many, "actor_update") < 4
    assert gib(many, "actor_update") > 80


def test_openrlhf_without_the_leak_the_update_is_small() -> None:
    assert gib(build_ledger(openrlhf(False), box(8, 80)), "actor_update") < 30


def test_openrlhf_an_unknown_deepspeed_keeps_the_leak_in_the_high_of_what_is_gathered() -> None:
    unknown = build_ledger(openrlhf(None), box(8, 80)).phase("gpu", "actor_update")
    known = build_ledger(openrlhf(None, libraries={"deepspeed": "0.15.0"}), box(8, 80)).phase("gpu", "actor_update")
    assert unknown is not None
    assert known is not None
    assert unknown.expected == known.expected < 30 * GIB
    most = [max(cell.high for cell in found.cells if cell.owner == "gathered") for found in (unknown, known)]
    assert most[0] > 131 * GIB > most[1]
    assert unknown.high <= 1.3001 * unknown.expected


def test_openrlhf_cpu_adam_holds_18_bytes_a_parameter_on_the_nodes() -> None:
    host = build_ledger(openrlhf(False), box(8, 80, 1000)).phase("host", "actor_update")
    assert host is not None
    adam = next(cell for cell in host.cells if cell.owner == "offloaded_optimizer")
    assert adam.expected == pytest.approx(18 * 70_553_706_496 * 8 / 32, rel=1e-6)
    assert adam.low == pytest.approx(16 * 70_553_706_496 * 8 / 32, rel=1e-6)


def test_easyr1_with_both_offloads_every_gpu_phase_fits() -> None:
    ledger = build_ledger(easyr1(), box(8, A100_40, 760))
    assert unfit(ledger, "gpu", Walls(MARGIN)) == []


def test_easyr1_without_offload_the_update_is_as_before_and_the_rollout_is_the_tight_phase() -> None:
    machine = box(8, A100_40, 760)
    before, after = build_ledger(easyr1(), machine), build_ledger(easyr1(False, False), machine)
    assert gib(after, "actor_update") == gib(before, "actor_update") < A100_40 * (1 - MARGIN)
    states = 12 * 8_292_166_656 / 8 / GIB
    assert gib(after, "rollout_generate") - gib(before, "rollout_generate") == pytest.approx(states * 1.04, rel=0.01)
    assert gib(after, "rollout_generate") > A100_40 * (1 - MARGIN)
    lower = build_ledger(easyr1(False, False, share=0.5), machine)
    assert gib(lower, "rollout_generate") < A100_40 * (1 - MARGIN)


def test_easyr1_the_two_offloads_explain_about_a_hundred_gb_of_the_node_and_not_all_of_it() -> None:
    machine = box(8, A100_40, 760)
    before, after = build_ledger(easyr1(), machine), build_ledger(easyr1(False, False), machine)
    saved = difference(before, after, "host")["actor_update"]
    assert saved == pytest.approx(12 * 8_292_166_656, rel=1e-6)
    low, expected, high = explained_host(before, "actor_update")
    assert low <= expected <= high < 760 * GIB
    assert 180e9 < expected < 300e9


def test_easyr1_the_sleeping_engines_keep_one_copy_each() -> None:
    host = build_ledger(easyr1(), box(8, A100_40, 760)).phase("host", "actor_update")
    assert host is not None
    copy = next(cell for cell in host.cells if cell.owner == "engine_copy")
    assert copy.expected == pytest.approx(2 * 8_292_166_656 * 4, rel=1e-6)


def test_ms_swift_adapters_leave_room_and_the_rollout_holds_the_share() -> None:
    ledger = build_ledger(ms_swift(), box(4, A100_80))
    assert owned(ledger, "actor_update", "optimizer") == owned(ledger, "actor_update", "gradients") == 0
    assert owned(ledger, "actor_update", "weights") < 5
    assert owned(ledger, "rollout_generate", "engine_weights") == pytest.approx(2 * 7.6156e9 / GIB, rel=1e-3)
    smaller = difference(ledger, build_ledger(ms_swift(2), box(4, A100_80)), "gpu")
    assert smaller["actor_update"] > 5 * GIB
    assert smaller["rollout_generate"] == 0


def test_an_engine_whose_share_is_smaller_than_its_weights_cannot_start() -> None:
    tight = build_ledger(ms_swift(share=0.2), box(4, 24))
    assert engine_cannot_start(tight)
    assert not engine_cannot_start(build_ledger(ms_swift(), box(4, A100_80)))
    cells = [cell for s in tight.gpu for cell in s.cells if cell.owner == "kv_cache"]
    assert cells
    assert all(cell.low == cell.expected == 0 < cell.high for cell in cells)


def test_a_whole_ledger_takes_less_than_five_milliseconds() -> None:
    run, machine = open_reasoner_zero(), box(4, A100_80, 760)
    build_ledger(run, machine)
    best = min(_seconds(lambda: build_ledger(run, machine)) for _ in range(20))
    assert best < 0.005


def _seconds(work: object) -> float:
    start = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - start
