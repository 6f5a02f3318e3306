"""A process that sees several cards and has no others beside it lays its layers over them (device_map)."""

from __future__ import annotations

import pytest

from .launches import estimate

SFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --torch_dtype bfloat16 --max_length 2048"
BOX = "4xA100-80GB"


@pytest.mark.parametrize(
    ("variables", "options", "ways"),
    [
        ("CUDA_VISIBLE_DEVICES=0 ", "", 1),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 ", "", 4),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2 ", "", 2),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 ", "", 1),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 ", " --deepspeed zero2", 1),
    ],
)
def test_weights_are_divided_by_the_cards_of_a_process_and_logits_are_not(
    variables: str, options: str, ways: int
) -> None:
    found = estimate(variables + SFT + options + "\n", BOX)
    assert found.of("weights") == pytest.approx(14.26 / ways, rel=0.02)
    assert found.of("logits") == pytest.approx(12 * 152064 * 0.55 * 2048 / 2**30, rel=0.02)
