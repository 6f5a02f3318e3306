"""Knobs that no single setting carries."""

from __future__ import annotations

import pytest

from advisor.run.run import Run
from advisor.script.document import Setting
from advisor.script.launch import Launch

from .test_binding import built, gpus


def swift(version: str, *settings: Setting) -> Run:
    given = {"--rlhf_type": "grpo", "--use_vllm": "true", "--vllm_mode": "colocate", "--offload_optimizer": "true"}
    made = (*(Setting(key, value, "command") for key, value in given.items()), *settings)
    environment = {"NPROC_PER_NODE": "4"}
    return built(Launch(0, "swift rlhf", (), environment, made), gpus(4), libraries={"ms-swift": version}).run


@pytest.mark.parametrize(
    ("version", "preset", "sleeps"),
    [("3.8.3", "zero3", False), ("3.8.3", "zero2", True), ("4.5.2", "zero3", True)],
)
def test_ms_swifts_offload_optimizer_does_nothing_under_zero_3_in_its_older_versions(
    version: str, preset: str, sleeps: bool
) -> None:
    assert swift(version, Setting("--deepspeed", preset, "command")).is_on("actor.state_sleep") is sleeps


def test_a_deepspeed_file_without_a_stage_means_stage_0() -> None:
    named = Setting("--deepspeed", "ds.json", "command")
    read = Setting("deepspeed:bf16.enabled", "true", "file")
    assert swift("4.5.2", named, read).number("actor.zero_stage") == 0
    assert swift("4.5.2", named).number("actor.zero_stage") is None
