"""Whether a model sees pictures is told by its shape, else by its name or by settings that only such runs have."""

from __future__ import annotations

import pytest

from advisor.knowledge.load import load_knowledge
from advisor.run.shape import find_shape, sees_by_name


@pytest.mark.parametrize(
    "name",
    ["Qwen2-VL-7B-Instruct", "InternVL3-8B", "OpenGVLab/InternVL2_5-4B", "llava-v1.6-7b", "MiniCPM-V-2_6",
     "meta-llama/Llama-3.2-11B-Vision-Instruct", "Qwen2.5-Omni-7B", "SmolVLM-500M", "pixtral-12b", "glm-4.1v-9b"],
)  # fmt: skip
def test_a_name_tells_a_model_that_sees(name: str) -> None:
    assert sees_by_name(name)


@pytest.mark.parametrize("name", ["Qwen2.5-7B", "vllm-test-7b", "Llama-3.1-8B", "DeepSeek-V3", "evolve-7b", "glm-4-9b"])
def test_a_name_of_a_text_model_does_not(name: str) -> None:
    assert not sees_by_name(name)


def test_an_unknown_model_that_sees_is_estimated_from_one_that_sees() -> None:
    models = load_knowledge().models
    shape = find_shape("acme-VL-7B", models, lambda _: None)
    assert shape is not None
    assert shape.vision_parameters
    plain = find_shape("acme-7B", models, lambda _: None)
    assert plain is not None
    assert not plain.vision_parameters
