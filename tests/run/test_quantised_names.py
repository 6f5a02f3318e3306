"""A checkpoint that its name says is quantised stays so under adapters."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.run.shape import bits_in_name
from advisor.session import SessionRequest, open_session


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", 4), ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", 8), ("x/Y-7B-gptq_int4", 4),
        ("unsloth/Llama-3.1-8B-bnb-4bit", 4), ("Qwen/Qwen3-8B-FP8", 8), ("Qwen/Qwen2.5-7B", None),
        ("x/awqa-7B", None), ("x/Y-4B", None),
    ],
)  # fmt: skip
def test_the_name_tells_the_bits(name: str, bits: int | None) -> None:
    assert bits_in_name(name) == bits


@pytest.mark.parametrize(("tuner", "bits"), [("lora", 4), ("full", None)])
def test_only_a_base_that_is_not_trained_stays_quantised(tmp_path: Path, tuner: str, bits: int | None) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"swift sft --model Qwen/Qwen2.5-7B-Instruct-AWQ --tuner_type {tuner}\n")
    assert open_session(SessionRequest(script, gpus="8xH100-80GB")).run.number("actor.quantized_bits") == bits
