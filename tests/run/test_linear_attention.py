"""Models most of whose layers keep a state in place of keys and values: Qwen3-Next, Qwen3.5."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from advisor.memory.adapters import ATTENTION, MLP, adapter_parameters
from advisor.memory.layer import kv_of_token
from advisor.run.config_file import read_config
from advisor.run.geometry import kv_bytes_per_token, parameters_of
from tests.memory.runs import shape

NEXT: dict[str, Any] = {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "intermediate_size": 5120,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "full_attention_interval": 4,
    "linear_num_value_heads": 32,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
}


def test_a_config_of_such_a_model_gives_the_shape_that_is_known(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(NEXT))
    fact = read_config(file)
    assert fact is not None
    assert parameters_of(fact) == 79_674_391_296
    assert parameters_of(fact) == shape("Qwen/Qwen3-Next-80B-A3B-Instruct").parameters


def test_the_config_of_one_that_sees_has_its_tower(tmp_path: Path) -> None:
    text = NEXT | {"model_type": "qwen3_5_moe_text", "num_hidden_layers": 40, "vocab_size": 248320}
    text |= {"num_experts": 256, "num_experts_per_tok": 8, "layer_types": (["linear_attention"] * 3 + ["full"]) * 10}
    del text["intermediate_size"]
    vision = {"model_type": "qwen3_5_moe", "depth": 27, "patch_size": 16}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "qwen3_5_moe", "text_config": text, "vision_config": vision}))
    fact = read_config(file)
    assert fact is not None
    assert parameters_of(fact) == shape("Qwen/Qwen3.5-35B-A3B").parameters


def test_only_layers_of_full_attention_are_cached_and_divided() -> None:
    model = shape("Qwen3-Next-80B-A3B")
    assert model.kv_bytes_per_token == 2 * 2 * 2 * 256 * 12
    assert kv_of_token(model, 2).value == model.kv_bytes_per_token / 2


def test_an_adapter_on_all_layers_is_on_the_linear_ones_too() -> None:
    model = shape("Qwen3.5-9B")
    everything = adapter_parameters(model, 8, (*ATTENTION, *MLP))
    attention = adapter_parameters(model, 8, ATTENTION)
    assert attention == 8 * 8 * ((4096 + 8192) + 2 * (4096 + 1024) + (4096 + 4096))
    assert everything > attention + 8 * 32 * 3 * (4096 + 12288)


def test_latent_attention_is_cached_as_before() -> None:
    assert kv_bytes_per_token_of("GLM-4.7-Flash") == 2 * 47 * (512 + 64)


def kv_bytes_per_token_of(name: str) -> int:
    return shape(name).kv_bytes_per_token


def test_mixtures_of_glm_have_two_norms_a_layer(tmp_path: Path) -> None:
    config = {
        "model_type": "glm4_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 46,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 10944,
        "moe_intermediate_size": 1408,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 1,
        "attention_bias": True,
        "vocab_size": 151552,
        "tie_word_embeddings": False,
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    fact = read_config(file)
    assert fact is not None
    assert kv_bytes_per_token(fact) == shape("GLM-4.5-Air").kv_bytes_per_token
    assert abs(parameters_of(fact) - shape("zai-org/GLM-4.5-Air").parameters) < 1e4
