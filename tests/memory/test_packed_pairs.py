"""Packed rows that are filled with whole samples hold both answers of a pair, and heads without a vocabulary no logits.

ms-swift: swift/dataset/packing.py:113 adds up the lengths of a sample's rows before it fills a packed row.
"""

from __future__ import annotations

import pytest

from tests.loops import each
from tests.measured.published import ledger_of

BASE = {"framework": "ms-swift", "model": "Qwen/Qwen2.5-7B-Instruct", "gpus": "4xA100-80GB"}
LONG = {"tuner_type": "full", "torch_dtype": "bfloat16", "max_length": 8192, "packing": True}
V = 152064


def logits(program: str, **settings: object) -> float:
    found = ledger_of({**BASE, "program": program, "settings": {**LONG, **settings}}).phase("gpu", "actor_update")
    assert found is not None
    return found.of("logits")


def test_a_packed_row_of_pairs_is_no_longer_than_one_of_samples() -> None:
    zero3 = {"deepspeed": "zero3", "attn_impl": "flash_attn"}
    assert logits("swift rlhf", rlhf_type="dpo", **zero3) == pytest.approx(12 * V * 8192)
    apart = logits("swift rlhf", rlhf_type="dpo", **zero3, packing=False, padding_free=False)
    assert apart == pytest.approx(12 * V * 2 * 0.55 * 8192, rel=0.01)


@each(
    ("settings", "entries"),
    [
        ({"rlhf_type": "dpo"}, 8192),
        ({"rlhf_type": "rm"}, 0),
        ({"task_type": "embedding"}, 0),
        ({"task_type": "generative_reranker"}, 8192),
    ],
)
def test_under_megatron_a_score_takes_the_place_of_the_vocabulary(settings: dict[str, object], entries: int) -> None:
    program = "megatron rlhf" if "rlhf_type" in settings else "megatron sft"
    found = logits(program, **settings, tensor_model_parallel_size=4, recompute_granularity="full")
    assert found == pytest.approx(6 * V / 4 * entries)


def test_half_of_a_packed_row_of_kto_is_only_scored() -> None:
    found = ledger_of(
        {**BASE, "program": "megatron rlhf", "settings": {**LONG, "rlhf_type": "kto", "recompute_granularity": "full"}}
    ).phase("gpu", "actor_update")
    assert found is not None
    assert found.of("logits") == 6 * V * 4096
