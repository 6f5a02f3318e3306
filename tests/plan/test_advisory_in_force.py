"""An advisory in force about where the run died: its safe version is the first step, and what it idles is no step."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, changes

SWIFT = (
    "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-32B-Instruct --use_vllm true "
    "--vllm_mode colocate --vllm_gpu_memory_utilization 0.4 --vllm_tensor_parallel_size 4 "
    "--per_device_train_batch_size 1 --num_generations 8 --deepspeed zero3 --torch_dtype bfloat16\n"
)
LOG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.45 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.02 GiB is free. Process 7 has 78.10 GiB memory in use. Of the allocated memory 76.20 GiB is allocated "
    "by PyTorch, and 0.30 GiB is reserved by PyTorch but unallocated.\n"
)
SYNC = ("--answer", "phase=weight_sync", "--answer", "sync=gather")


def test_the_version_is_changed_first_with_the_line_that_does_it(planned: Planned) -> None:
    steps = planned(SWIFT, LOG, *SYNC, "--lib", "ms-swift=3.12.4")
    assert next(iter(steps)) == "use-ms-swift-3.12.6"
    step = steps["use-ms-swift-3.12.6"]
    assert changes(step) == {"ms-swift": ("3.12.4", ">=3.12.6")}
    assert 'pip install "ms-swift>=3.12.6"' in step["why"]


@pytest.mark.parametrize(
    ("version", "proposed"),
    [("3.11.3", True), ("3.12.0", False), ("3.12.1", False), ("3.12.5", False), ("4.0.1", True)],
)
def test_a_setting_is_proposed_only_in_versions_in_which_it_works(
    planned: Planned, version: str, proposed: bool
) -> None:
    steps = planned(SWIFT, LOG, *SYNC, "--lib", f"ms-swift={version}")
    assert ("sync-in-pieces" in steps) == proposed


def test_an_advisory_that_does_not_speak_of_where_it_died_makes_no_step(planned: Planned) -> None:
    stage_two = SWIFT.replace("zero3", "zero2")
    steps = planned(stage_two, LOG, *SYNC[:2], "--lib", "ms-swift=3.12.6", "--lib", "deepspeed=0.18.0")
    assert not [name for name in steps if name.startswith("use-deepspeed")]  # gradients that are too small are no OOM
