"""A checkpoint that its name says is quantised stays so under adapters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.run.shape import bits_in_name, find_shape, served_bits
from advisor.session import SessionRequest, open_session
from tests.loops import each


@each(
    ("name", "bits"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", 4), ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", 8), ("x/Y-7B-gptq_int4", 4),
        ("unsloth/Llama-3.1-8B-bnb-4bit", 4), ("Qwen/Qwen3-8B-FP8", 8), ("Qwen/Qwen2.5-7B", None),
        ("x/Qwen3-30B-A3B-INT4", 4), ("x/Qwen3-8B-quantized.w4a16", 4), ("x/Qwen3-8B-w8a8", 8), ("x/Y-8B-NVFP4", 4),
        ("mlx/Qwen3-8B-4bit", 4), ("x/awqa-7B", None), ("x/Y-4B", None), ("x/point4-7B", None),
    ],
)  # fmt: skip
def test_the_name_tells_the_bits(name: str, bits: int | None) -> None:
    assert bits_in_name(name) == bits


@pytest.mark.parametrize(("tuner", "bits"), [("lora", 4), ("full", None)])
def test_only_a_base_that_is_not_trained_stays_quantised(tmp_path: Path, tuner: str, bits: int | None) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"swift sft --model Qwen/Qwen2.5-7B-Instruct-AWQ --tuner_type {tuner}\n")
    assert open_session(SessionRequest(script, gpus="8xH100-80GB")).run.number("actor.quantized_bits") == bits


@each(
    ("name", "bits"),
    [
        ("openai/gpt-oss-20b", 4), ("unsloth/gpt-oss-20b-BF16", 16), ("deepseek-ai/DeepSeek-R1", 8),
        ("x/DeepSeek-V3-bf16", 16), ("x/Qwen3-8B-INT4", 4), ("Qwen/Qwen3-8B", 16),
    ],
)  # fmt: skip
def test_an_engine_serves_a_checkpoint_in_the_bits_that_it_is_published_in(name: str, bits: int) -> None:
    shape = find_shape(name, load_knowledge().models, lambda _: None)
    assert shape is not None
    assert served_bits(name, shape) == bits


@pytest.mark.parametrize(
    ("said", "under_adapters", "served"),
    [
        ({"quant_method": "awq", "bits": 4}, 4, 4),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4, 4),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, None, 8),
        (None, None, 16),
    ],
)
def test_a_config_json_tells_the_bits_that_a_name_does_not(
    tmp_path: Path, said: dict[str, object] | None, under_adapters: int | None, served: int
) -> None:
    sizes = {"hidden_size": 1024, "num_hidden_layers": 8, "intermediate_size": 4096, "num_attention_heads": 8}
    config = {"model_type": "llama", **sizes, "num_key_value_heads": 8, "vocab_size": 32000}
    folder = tmp_path / "own-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config | ({"quantization_config": said} if said else {})))
    script = tmp_path / "run.sh"
    script.write_text(f"swift sft --model {folder} --tuner_type lora\n")
    run = open_session(SessionRequest(script, gpus="8xH100-80GB")).run
    assert run.number("actor.quantized_bits") == under_adapters
    assert run.model is not None
    assert served_bits(run.model_name or "", run.model) == served
