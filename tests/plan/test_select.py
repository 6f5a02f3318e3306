"""Which steps come first, which are switched on, and which never stand together."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from tests.plan.planned import Planned, changes, out_of_memory, selected, swift

NEW = out_of_memory("swift/rlhf_trainers/grpo_trainer.py", "4.5.2")
OLD = out_of_memory("swift/trainers/rlhf_trainer/grpo_trainer.py", "3.1.1")
EXCLUDED = ("--use_liger_kernel", "--padding_free", "--sequence_parallel_size")


def grpo(**more: Any) -> str:
    """Seven billion weights, trained in full, the engine on other machines."""
    return swift(
        **{
            "model": "Qwen/Qwen2.5-7B-Instruct",
            "tuner_type": "full",
            "torch_dtype": "bfloat16",
            "use_vllm": "true",
            "vllm_mode": "server",
            "max_length": 2048,
            "max_completion_length": 2048,
            "per_device_train_batch_size": 2,
            "gradient_accumulation_steps": 2,
            "num_generations": 8,
            "deepspeed": "zero2",
            "NPROC": 6,
            **more,
        }
    )


def old_grpo(**more: Any) -> str:
    """The same for 3.1.1, whose engine has a card of its own."""
    settings = {"train_type": "full", "deepspeed": "zero3", "vllm_device": "auto", "gradient_accumulation_steps": 8}
    script = grpo(**{**settings, "per_device_train_batch_size": 8, "NPROC": 3, "CARDS": 4, **more})
    return script.replace("--tuner_type full ", "").replace("--vllm_mode server ", "")


def test_what_the_rest_fits_without_is_not_switched_on(planned: Planned) -> None:
    steps = planned(grpo(), NEW, "--lib", "deepspeed=0.18.0")
    assert selected(steps) == ["higher-zero-stage"]
    small = steps["fused-loss"]
    assert not small["selected"]
    assert small["saves_bytes"]["actor_update"] < steps["higher-zero-stage"]["saves_bytes"]["actor_update"]


def test_the_swift_settings_that_stop_each_other_are_never_on_together_and_say_so(planned: Planned) -> None:
    steps = planned(grpo(max_completion_length=8192, deepspeed="zero3"), NEW, "--lib", "deepspeed=0.18.0")
    on = {change["key"] for name in selected(steps) for change in steps[name]["changes"]}
    assert not any(
        {one, other} <= on for one, other in combinations(EXCLUDED, 2) if "--use_liger_kernel" in (one, other)
    )
    assert {"remove-padding", "sequence-parallel"} <= set(steps["fused-loss"]["conflicts"])
    assert steps["remove-padding"]["conflicts"] == ["fused-loss"]


def test_liger_is_not_offered_where_padding_free_is_on_already(planned: Planned) -> None:
    steps = planned(grpo(padding_free="true", attn_impl="flash_attn"), NEW)
    assert "fused-loss" not in steps


def test_padding_free_brings_the_flash_attention_that_swift_demands(planned: Planned) -> None:
    assert changes(planned(grpo(), NEW)["remove-padding"])["attn_impl"] == (None, "flash_attn")
    assert "attn_impl" not in changes(planned(grpo(attn_impl="flash_attention_2"), NEW)["remove-padding"])


def test_an_optimizer_in_host_ram_is_chosen_before_results_change_where_the_host_has_the_room(planned: Planned) -> None:
    steps = planned(old_grpo(), OLD, "--host-ram", "1000GB", "--lib", "deepspeed=0.18.0")
    step = steps["cpu-optimizer"]
    assert changes(step) == {"deepspeed": ("zero3", "zero3_offload")}
    assert step["results"] == "unchanged"
    assert any("also moves the weights" in caveat for caveat in step["caveats"])
    assert selected(steps) == ["cpu-optimizer"]


def test_an_optimizer_in_host_ram_is_not_chosen_where_the_host_is_known_to_lack_the_room(planned: Planned) -> None:
    steps = planned(old_grpo(), OLD, "--host-ram", "100GB", "--lib", "deepspeed=0.18.0")
    assert "cpu-optimizer" not in selected(steps)
    assert selected(steps)


def test_torn_memory_is_first_answered_by_growing_segments(planned: Planned) -> None:
    torn = out_of_memory("swift/trainers/rlhf_trainer/grpo_trainer.py", "3.1.1", held="66.9", idle="9.75")
    steps = planned(old_grpo(), torn, "--lib", "deepspeed=0.18.0")
    assert next(iter(steps)) == "expandable-segments"
    assert steps["expandable-segments"]["selected"]
    assert steps["expandable-segments"]["results"] == "unchanged"


def test_a_setting_that_holds_nothing_by_itself_is_not_said_to_save_something(planned: Planned) -> None:
    steps = planned(grpo(), NEW)
    assert "lower-samples" not in steps
    assert all("an unknown amount" not in step.get("why", "") for step in steps.values() if step.get("changes"))


def test_what_would_cost_memory_where_it_failed_is_not_offered(planned: Planned) -> None:
    # so few tokens that the head's gradient, which the fused loss holds twice, is larger than their logits
    steps = planned(grpo(max_length=128, max_completion_length=128, per_device_train_batch_size=1), NEW)
    assert "fused-loss" not in steps
    assert "fused-loss" in planned(grpo(), NEW)
