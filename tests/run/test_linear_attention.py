"""Models most of whose layers keep a state in place of keys and values: Qwen3-Next, Qwen3.5."""

from __future__ import annotations

from typing import Any

from advisor.memory.layer import kv_of_token
from advisor.memory.parameters import ATTENTION, MLP, adapter_parameters
from advisor.run.config_file import kv_bytes_per_token, parameters_of, shape_in
from tests.memory.runs import shape
from tests.run.model_configs import decoder

EXPERTS = {"num_experts": 512, "num_experts_per_tok": 10}
EXPERTS |= {"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512}
LINEAR = {"linear_num_value_heads": 32, "linear_num_key_heads": 16, "full_attention_interval": 4}
LINEAR |= {"linear_key_head_dim": 128, "linear_value_head_dim": 128}
OWN = {"head_dim": 256, "tie_word_embeddings": False, **EXPERTS, **LINEAR}
NEXT: dict[str, Any] = decoder("qwen3_next", 2048, 48, 16, 2, 5120, 151936, **OWN)


def test_a_config_of_such_a_model_gives_the_shape_that_is_known() -> None:
    fact = shape_in(NEXT, "x")
    assert parameters_of(fact) == 79_674_391_296
    assert parameters_of(fact) == shape("Qwen/Qwen3-Next-80B-A3B-Instruct").parameters


def test_the_config_of_one_that_sees_has_its_tower() -> None:
    text = NEXT | {"model_type": "qwen3_5_moe_text", "num_hidden_layers": 40, "vocab_size": 248320}
    text |= {"num_experts": 256, "num_experts_per_tok": 8, "layer_types": (["linear_attention"] * 3 + ["full"]) * 10}
    del text["intermediate_size"]
    vision = {"model_type": "qwen3_5_moe", "depth": 27, "patch_size": 16}
    fact = shape_in({"model_type": "qwen3_5_moe", "text_config": text, "vision_config": vision}, "x")
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
    assert shape("GLM-4.7-Flash").kv_bytes_per_token == 2 * 47 * (512 + 64)


def test_mixtures_of_glm_have_two_norms_a_layer() -> None:
    experts = {"n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 1408}
    own = {"head_dim": 128, "first_k_dense_replace": 1, "attention_bias": True, "tie_word_embeddings": False}
    fact = shape_in(decoder("glm4_moe", 4096, 46, 96, 8, 10944, 151552, **experts, **own), "x")
    assert kv_bytes_per_token(fact) == shape("GLM-4.5-Air").kv_bytes_per_token
    assert abs(parameters_of(fact) - shape("zai-org/GLM-4.5-Air").parameters) < 1e4
