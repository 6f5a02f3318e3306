"""Generation by the trainer's own model: its cache, the segments behind it, and weights gathered for it."""

from __future__ import annotations

from tests.measured.published import ledger_of

GRPO = {
    "framework": "trl",
    "model": "Qwen/Qwen2.5-7B",
    "libraries": {"trl": "0.21.0"},
    "settings": {"use_vllm": False, "max_prompt_length": 512, "max_completion_length": 3584, "num_generations": 8},
}
ZERO3 = {"deepspeed_config.zero_stage": 3, "distributed_type": "DEEPSPEED", "num_processes": 8}


def cells(owner: str, gpus: int = 8, **settings: object) -> list[int]:
    """Expected bytes of `owner` while the trainer generates."""
    run = {**GRPO, "gpus": f"{gpus}xH100-80GB", "settings": {**GRPO["settings"], **settings}}  # type: ignore[dict-item]
    phase = ledger_of(run).phase("gpu", "rollout_generate")
    assert phase is not None
    return [cell.expected for cell in phase.cells if cell.owner == owner]


def test_under_zero3_all_weights_are_gathered_on_every_card() -> None:
    assert cells("gathered", **ZERO3) == [2 * 7_615_616_512]


def test_not_so_where_the_setting_says_no_or_nothing_is_sharded() -> None:
    assert cells("gathered", **ZERO3, ds3_gather_for_generation=False) == []
    assert cells("gathered", **{**ZERO3, "deepspeed_config.zero_stage": 2}) == []


def test_a_growing_cache_leaves_segments_that_are_no_need_but_count_as_used() -> None:
    run = {**GRPO, "gpus": "1xH100-80GB", "settings": {**GRPO["settings"], "per_device_train_batch_size": 8}}  # type: ignore[dict-item]
    phase = ledger_of(run).phase("gpu", "rollout_generate")
    assert phase is not None
    grown = [cell for cell in phase.cells if "at every 2 MiB" in cell.formula]
    assert [cell.expected for cell in grown] == [0]
    # A layer's keys grow to 8 x 4096 x 512 x 2 B = 32 MiB: the segments of 10 to 32 MiB in steps of two.
    steps = sum(range(12, 33, 2)) * 2**20 * 2 * 28
    assert abs(grown[0].high / steps - 1) < 0.1
    quiet = {**run, "settings": {**run["settings"], "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}  # type: ignore[dict-item]
    calm = ledger_of(quiet).phase("gpu", "rollout_generate")
    assert calm is not None
    assert not any("at every 2 MiB" in cell.formula for cell in calm.cells)
