"""Megatron's optimizers: a part of the states on the CPU, and Muon with one moment of each matrix."""

from __future__ import annotations

import pytest

from advisor.units import GIB
from tests.loops import each
from tests.measured.published import ledger_of

RUN = {"framework": "ms-swift", "program": "megatron sft", "model": "Qwen/Qwen2.5-7B", "gpus": "1xA100-80GB"}
TABLES, ALL = 2 * 152064 * 3584, 7_615_616_512


def optimizer(**settings: object) -> float:
    found = ledger_of({**RUN, "settings": {"tuner_type": "full", "packing": True, "max_length": 4096, **settings}})
    phase = found.phase("gpu", "actor_update")
    assert phase is not None
    return phase.of("optimizer") / GIB


@each(("fraction", "stays"), [(None, 0), (1.0, 0), (0.65, 0.35), (0.4, 0.6)])
def test_the_part_of_the_optimizer_that_is_not_offloaded_stays(fraction: float | None, stays: float) -> None:
    settings = {} if fraction is None else {"optimizer_offload_fraction": fraction}
    found = optimizer(optimizer_cpu_offload=True, use_precision_aware_optimizer=True, **settings)
    assert found == pytest.approx(stays * 12 * ALL / GIB, rel=1e-3)


def test_muon_has_one_moment_of_each_matrix_and_adam_keeps_the_tables() -> None:
    assert optimizer() == pytest.approx(12 * ALL / GIB, rel=1e-3)
    assert optimizer(optimizer="dist_muon") == pytest.approx((8 * ALL + 4 * TABLES) / GIB, rel=1e-3)


def test_areals_adam_bf16_compensates_under_fsdp_and_keeps_fp32_masters_under_megatron() -> None:
    def states(backend: str) -> float:
        settings = {"actor.backend": backend, "rollout.backend": "sglang:d1", "actor.optimizer_dtype": "bfloat16"}
        run = {"framework": "areal", "program": "train.py", "model": "Qwen/Qwen2.5-7B", "gpus": "2xA100-80GB"}
        found = ledger_of({**run, "settings": {**settings, "actor.optimizer.type": "adam_bf16"}})
        phase = found.phase("gpu", "actor_update")
        assert phase is not None
        return phase.of("optimizer") / ALL

    assert states("fsdp:d1") == pytest.approx(6, rel=1e-3)
    assert states("megatron:d1") == pytest.approx(4 + 4, rel=1e-3)
