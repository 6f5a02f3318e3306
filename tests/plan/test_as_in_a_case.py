"""What a documented case changed is the second step where all that is known of it here agrees and it would be news."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, changes

VERL = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=64 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
    "trainer.n_gpus_per_node=8 trainer.nnodes=1 actor_rollout_ref.rollout.name=vllm "
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.45 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.02 GiB is free. Process 7 has 78.10 GiB memory in use. Of the allocated memory 76.20 GiB is allocated "
    "by PyTorch, and 0.30 GiB is reserved by PyTorch but unallocated.\n"
)
WAKE = "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
LOADING = ("--answer", "phase=model_load", "--lib", "verl=0.4.1")


def test_it_stands_right_behind_what_is_switched_on_under_the_keys_of_this_launch(planned: Planned) -> None:
    steps = planned(f"{VERL} actor_rollout_ref.actor.strategy=fsdp2\n", OOM, *LOADING, "--lib", "torch=2.6.0")
    assert next(name for name, step in steps.items() if not step["selected"]) == "as-in-verl-2464"
    assert changes(steps["as-in-verl-2464"]) == {"actor_rollout_ref.actor.strategy": ("fsdp2", "fsdp")}
    assert not steps["as-in-verl-2464"]["caveats"]


def test_it_says_what_of_the_case_is_not_known_here(planned: Planned) -> None:
    steps = planned(f"{VERL} actor_rollout_ref.actor.strategy=fsdp2\n", OOM, *LOADING)
    assert any("version torch ==2.6.0" in caveat for caveat in steps["as-in-verl-2464"]["caveats"])


@pytest.mark.parametrize(
    ("script", "more"),
    [
        ("actor_rollout_ref.actor.strategy=fsdp", ("--lib", "torch=2.6.0")),  # in force already
        ("actor_rollout_ref.actor.strategy=fsdp2", ("--lib", "torch=2.8.0")),  # another version
    ],
)
def test_what_is_in_force_or_of_another_version_is_no_step(
    planned: Planned, script: str, more: tuple[str, ...]
) -> None:
    assert "as-in-verl-2464" not in planned(f"{VERL} {script}\n", OOM, *LOADING, *more)


@pytest.mark.parametrize(("share", "offered"), [("0.8", True), ("0.3", False)])
def test_a_number_only_moves_where_it_asks_for_less(planned: Planned, share: str, offered: bool) -> None:
    steps = planned(f"{VERL} actor_rollout_ref.rollout.gpu_memory_utilization={share}\n", WAKE, "--lib", "verl=0.4.1")
    told = [step for name, step in steps.items() if not name.startswith("not:") and "verl-302" in str(step)]
    assert any("actor_rollout_ref.rollout.gpu_memory_utilization" in changes(step) for step in told) == offered


def test_advice_that_nobody_confirmed_is_a_step_that_says_so(planned: Planned) -> None:
    log = (
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.1, ID: dbef7e7a822f) where the task (task ID: 9238c22acd58, name=main_task, "
        "pid=3103112, memory used=0.87GB) was running was 726.33GB / 760.00GB (0.955698), which exceeds the memory "
        "usage threshold of 0.95.\n"
    )
    script = "python3 -m verl.trainer.main config=mine.yaml worker.actor.model.model_path=Qwen/Qwen2.5-VL-7B-Instruct\n"
    steps = planned(script, log, "--gpus", "8xA100-40GB")
    texts = " ".join(str(step.get("documented")) for step in steps.values())
    assert "easyr1-59 (plausible)" in texts
