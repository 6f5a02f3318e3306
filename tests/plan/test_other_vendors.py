"""On AMD's and Ascend's cards the plan speaks of their variables and tools, and repeats none that is set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from tests.heavy import sampled
from tests.plan.planned import Planned, Step, changes
from tests.stories.told import tell

RUN = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
    "trainer.n_gpus_per_node=8 trainer.nnodes=1 actor_rollout_ref.rollout.name=vllm\n"
)
ALONE = "trl grpo --model_name_or_path /models/ours --per_device_train_batch_size 8 --num_generations 8\n"
NPU = (
    "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity; 50.24 GiB already "
    "allocated; 50.24 GiB current active; 319.52 MiB free; 58.65 GiB reserved in total by PyTorch)\n"
)
HIP = (
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 9.00 GiB. GPU 0 has a total capacity of 191.69 GiB "
    "of which 5.10 GiB is free. Of the allocated memory 160.00 GiB is allocated by PyTorch, and 21.00 GiB is reserved "
    "by PyTorch but unallocated.\n"
)
UPDATE = ("--lib", "trl=0.22.0", "--answer", "phase=actor_update")


def variables(steps: dict[str, Step]) -> set[str]:
    return {key for step in steps.values() if step.get("kind") == "environment" for key in changes(step)}


def test_the_variable_has_the_vendors_name(planned: Planned) -> None:
    for log, own in ((NPU, "PYTORCH_NPU_ALLOC_CONF"), (HIP, "PYTORCH_HIP_ALLOC_CONF")):
        steps = planned(ALONE, log, *UPDATE, "--answer", "message=fragmented")
        assert own in variables(steps)
        assert "PYTORCH_CUDA_ALLOC_CONF" not in str(variables(steps))


def test_the_launch_alone_may_tell_whose_cards_they_are(tmp_path: Path) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text("export HIP_VISIBLE_DEVICES=0\n" + ALONE)
    log.write_text(HIP.replace("HIP out of memory", "out of memory"))
    answers = {"phase": "actor_update", "message": "fragmented"}
    state = open_session(SessionRequest(script, (log,), answers=answers))
    keys = {change.key for step in state.plan.steps for change in step.changes if step.kind == "environment"}
    assert "PYTORCH_HIP_ALLOC_CONF" in keys
    assert "PYTORCH_CUDA_ALLOC_CONF" not in keys


def test_no_word_of_nvidia_is_said_about_an_npu(planned: Planned, capsys: pytest.CaptureFixture[str]) -> None:
    planned(ALONE, NPU)
    _, out, _ = tell(["diagnose", "run.sh", "--log", "train.log", "--all"], capsys)
    assert "torch.npu." in out
    assert not [word for word in ("nvidia-smi", "torch.cuda", "CUDA_", "NCCL_") if word in out]


@pytest.mark.parametrize(
    "phase", sampled(["rollout_init", "log_prob", "weight_sync", "optimizer_step", "checkpoint"], 2)
)
def test_nor_in_any_phase_nor_where_only_the_card_is_named(
    planned: Planned, capsys: pytest.CaptureFixture[str], phase: str
) -> None:
    planned(RUN, NPU)
    card = ("--gpus", "16xAscend-910B-64GB")
    told = [
        tell(["diagnose", "run.sh", "--log", "train.log", "--all", *card, "--answer", f"phase={phase}"], capsys)[1],
        tell(["diagnose", "run.sh", "--all", *card, "--answer", f"phase={phase}"], capsys)[1],
        tell(["estimate", "run.sh", *card], capsys)[1],
    ]
    assert not [line for text in told for line in text.splitlines() if re.search(r"CUDA|nvidia|torch\.cuda|NCCL", line)]


def test_what_is_exported_already_is_no_step(planned: Planned) -> None:
    script = f"export PYTORCH_HIP_ALLOC_CONF=expandable_segments:True\n{ALONE}"
    assert "expandable-segments" not in planned(script, HIP, *UPDATE, "--answer", "message=fragmented")


def test_ascends_engine_sleeps_only_without_expandable_segments(planned: Planned) -> None:
    script = f"export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True\n{RUN}"
    steps = planned(script, NPU, "--lib", "verl=0.5.0", "--answer", "phase=weight_sync", "--answer", "sync=wake")
    assert changes(steps["expandable-off-for-sleep"]) == {
        "PYTORCH_NPU_ALLOC_CONF": ("expandable_segments:True", "expandable_segments:False")
    }
    assert "expandable-off-for-sleep" not in planned(RUN, NPU, "--lib", "verl=0.5.0", "--answer", "phase=weight_sync")
