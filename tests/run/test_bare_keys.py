"""A setting that is quoted without the front of its key is that setting, where only one ends so."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session


def read(folder: Path, text: str, framework: str) -> State:
    script = folder / "run.yaml"
    script.write_text(text)
    return open_session(SessionRequest(script, answers={"framework": framework, "memory": "gpu"}))


@pytest.mark.parametrize(
    ("text", "knob", "value"),
    [
        ("gpu_memory_utilization: 0.7\n", "rollout.memory_share", 0.7),
        ("micro_batch_size_per_device_for_update: 1\n", "actor.micro_batch", 1),
        ("actor:\n  offload:\n    offload_params: true\n", "actor.param_offload", True),
    ],
)
def test_a_quoted_key_is_the_one_that_ends_so_and_of_several_roles_the_trained_models(tmp_path, text, knob, value):
    found = read(tmp_path, text, "easyr1").run.knobs[knob]
    assert (found.value, found.source) == (value, "script")


def test_where_a_key_stands_in_full_none_is_guessed(tmp_path):
    state = read(tmp_path, "data:\n  max_response_length: 64\ngpu_memory_utilization: 0.7\n", "easyr1")
    assert state.run.knobs["rollout.memory_share"].source == "default"


def test_what_an_element_of_a_list_has_is_no_setting_of_another_list(tmp_path):
    part = "base_model: Qwen/Qwen2.5-7B\nadapter: qlora\nmicro_batch_size: 4\n"
    data = "datasets:\n  - path: my/data\n    type: alpaca\n"
    assert read(tmp_path, part + data, "axolotl").run.algorithm == "sft"
