"""OpenRLHF: no key of another program or that images forbid is proposed; what a key needs goes along."""

from __future__ import annotations

import pytest

from tests.plan.planned import Planned, changes

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.45 GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 1.02 GiB is free. Process 7 has 78.10 GiB memory in use. Of the allocated memory 76.20 GiB is allocated "
    "by PyTorch, and 0.30 GiB is reserved by PyTorch but unallocated.\n"
)
SIZES = "--pretrain Qwen/Qwen2.5-7B --micro_train_batch_size 2 --micro_rollout_batch_size 4 --max_len 8192"
RAY = f"python3 -m openrlhf.cli.train_ppo_ray {SIZES} --actor_num_gpus_per_node 8 --actor_num_nodes 1 --zero_stage 3"
OLD = f"deepspeed --module openrlhf.cli.train_ppo {SIZES} --zero_stage 3"
UPDATE = ("--answer", "phase=actor_update")


def keys(planned: Planned, script: str, version: str) -> set[str]:
    steps = planned(f"{script}\n", OOM, *UPDATE, "--lib", f"openrlhf={version}")
    return {key for name, step in steps.items() if not name.startswith("not:") for key in changes(step)}


@pytest.mark.parametrize(
    ("script", "version", "packs"),
    [(RAY, "0.10.0", True), (f"{RAY} --max_images_per_prompt 1", "0.10.0", False), (OLD, "0.5.9", False)],
)
def test_samples_are_packed_only_where_the_parser_takes_it(
    planned: Planned, script: str, version: str, packs: bool
) -> None:
    found = keys(planned, script, version)
    assert found
    assert ("packing_samples" in found) == packs
    if not packs:
        assert not {"ring_attn_size", "use_dynamic_batch"} & found or "train_ppo " in script
