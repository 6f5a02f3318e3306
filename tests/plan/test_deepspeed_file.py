"""The DeepSpeed file that a launch names is edited where it can be read; accelerate's file is then no lever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plan.planned import Planned, Step, changes

BARE = "torch.OutOfMemoryError: CUDA out of memory. \n"
MODEL = "Qwen/Qwen2.5-32B"
LAUNCHES = {
    "trl": f"torchrun --nproc_per_node=8 src/open_r1/grpo.py --model_name_or_path {MODEL} --num_generations 8 "
    "--max_completion_length 512 --dataset_name x --output_dir o --deepspeed zero3.json\n",
    "ms-swift": f"NPROC_PER_NODE=8 swift sft --model {MODEL} --train_type full --dataset x/y --deepspeed zero3.json\n",
    "llamafactory": f"torchrun --nproc_per_node=8 src/train.py --stage sft --finetuning_type full --dataset x "
    f"--model_name_or_path {MODEL} --output_dir o --deepspeed zero3.json\n",
}
OFFLOAD = "deepspeed:zero_optimization.offload_optimizer.device"


def offload(planned: Planned, framework: str) -> Step:
    steps = planned(LAUNCHES[framework], BARE, "--answer", "phase=actor_update", "--answer", "holder=states")
    return steps["cpu-optimizer"]


@pytest.mark.parametrize("framework", LAUNCHES)
@pytest.mark.parametrize("zero", [{"stage": 3}, {"stage": 3, "offload_optimizer": {"device": "none"}}])
def test_offload_is_written_into_the_file_itself(
    planned: Planned, tmp_path: Path, framework: str, zero: dict[str, object]
) -> None:
    (tmp_path / "zero3.json").write_text(json.dumps({"zero_optimization": zero}))
    step = offload(planned, framework)
    assert {key: new for key, (_, new) in changes(step).items()} == {OFFLOAD: "cpu"}


def test_a_file_that_was_not_found_is_named_and_the_launchers_is_not(planned: Planned) -> None:
    step = offload(planned, "trl")
    assert changes(step) == {OFFLOAD: (None, "cpu")}
    assert any("the DeepSpeed file (--deepspeed)" in caveat for caveat in step["caveats"])


def test_what_is_off_in_the_file_is_not_switched_off(planned: Planned, tmp_path: Path) -> None:
    (tmp_path / "zero3.json").write_text(
        json.dumps({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none"}}})
    )
    steps = planned(LAUNCHES["trl"], "Out of memory: Killed process 7 (python)\n", "--answer", "host_growth=no")
    assert not {"cpu-optimizer-off", "param-offload-off"} & {
        name for name, step in steps.items() if step.get("changes")
    }


@pytest.mark.parametrize("framework", LAUNCHES)
def test_offload_that_fills_the_host_is_switched_off_in_the_file(
    planned: Planned, tmp_path: Path, framework: str
) -> None:
    zero = {"stage": 3, "offload_optimizer": {"device": "cpu"}}
    (tmp_path / "zero3.json").write_text(json.dumps({"zero_optimization": zero}))
    steps = planned(LAUNCHES[framework], "Out of memory: Killed process 7 (python)\n", "--answer", "host_growth=no")
    assert changes(steps["cpu-optimizer-off"]) == {OFFLOAD: ("cpu", "none")}
