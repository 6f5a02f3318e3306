"""Whether a model sees pictures is told by its shape, else by its name or by settings that only such runs have."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge.load import load_knowledge
from advisor.run.shape import find_shape, sees_by_name
from advisor.session import SessionRequest, open_session
from tests.loops import each


@each(
    "name",
    ["Qwen2-VL-7B-Instruct", "InternVL3-8B", "OpenGVLab/InternVL2_5-4B", "llava-v1.6-7b", "MiniCPM-V-2_6",
     "meta-llama/Llama-3.2-11B-Vision-Instruct", "Qwen2.5-Omni-7B", "SmolVLM-500M", "pixtral-12b", "glm-4.1v-9b"],
)  # fmt: skip
def test_a_name_tells_a_model_that_sees(name: str) -> None:
    assert sees_by_name(name)


@each("name", ["Qwen2.5-7B", "vllm-test-7b", "Llama-3.1-8B", "DeepSeek-V3", "evolve-7b", "glm-4-9b"])
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


LAUNCH = (
    "llamafactory-cli train --stage dpo --do_train --model_name_or_path acme/Qwen2.5-32B-Instruct{kind} "
    "--finetuning_type lora --per_device_train_batch_size 4 --cutoff_len 4096 --template qwen\n"
)
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.39 GiB.\n"
)


@pytest.mark.parametrize(
    ("kind", "sharded"), [("", True), ("-AWQ", False), ("-GPTQ-Int4", False), ("-bnb-4bit", False)]
)
def test_weights_that_are_packed_already_are_not_offered_to_be_sharded(
    tmp_path: Path, kind: str, sharded: bool
) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "run.log"
    script.write_text(LAUNCH.format(kind=kind))
    log.write_text(FULL)
    plan = open_session(SessionRequest(script=script, logs=(log,), gpus="4xA100-40GB")).plan
    assert ("higher-zero-stage" in {step.id for step in plan.steps}) is sharded
