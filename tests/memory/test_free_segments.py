"""Free segments of torch's allocator never fill a card: torch gives them back before it fails."""

from __future__ import annotations

import pytest

from tests.measured.published import ledger_of

DPO = {
    "framework": "ms-swift",
    "program": "swift rlhf",
    "model": "Qwen/Qwen2.5-7B",
    "settings": {
        "rlhf_type": "dpo",
        "tuner_type": "lora",
        "torch_dtype": "bfloat16",
        "per_device_train_batch_size": 1,
        "max_length": 32768,
        "deepspeed": "zero3",
        "use_liger_kernel": False,
    },
}


def held(gpus: str) -> tuple[int, int, int]:
    """Bytes of logits, of free segments, and of the card."""
    ledger = ledger_of({**DPO, "gpus": gpus})
    found = ledger.phase("gpu", "actor_update")
    assert found is not None
    assert ledger.gpu_capacity is not None
    free = sum(one.expected for one in found.cells if one.kind == "unused")
    return found.of("logits"), free, ledger.gpu_capacity


def test_they_are_kept_where_there_is_room() -> None:
    logits, free, _ = held("8xB300-288GB")
    assert free > 0.2 * logits


@pytest.mark.parametrize("gpus", ["8xA100-40GB", "8xA100-80GB"])
def test_they_take_no_more_than_what_the_rest_leaves(gpus: str) -> None:
    logits, free, capacity = held(gpus)
    assert free <= max(0, capacity - logits)
