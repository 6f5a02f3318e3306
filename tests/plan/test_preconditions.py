"""A lever stands in the plan only where it can help: by version, by what is in force, by what others cost."""

from __future__ import annotations

from tests.plan.planned import Planned
from tests.plan.test_usual_ways_out import BARE, UPDATE, first, sft

FULL = (
    "deepspeed --include localhost:0,1,2,3 src/train.py --stage sft --do_train --model_name_or_path Qwen/Qwen2.5-14B"
    " --dataset x --template qwen --finetuning_type full --output_dir out --per_device_train_batch_size 1"
    " --bf16 --deepspeed ds_mine.json\n"
)
PICTURES = """python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 trainer.nnodes=1 \\
  data.image_key=images data.max_prompt_length=1024 data.max_response_length=2048 \\
  actor_rollout_ref.model.use_remove_padding=True \\
  actor_rollout_ref.model.path=Qwen/Qwen2.5-VL-7B-Instruct actor_rollout_ref.actor.ppo_mini_batch_size=32 \\
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 trainer.n_gpus_per_node=8 actor_rollout_ref.rollout.n=4
"""
CARDS = ("--gpus", "4xA100-80GB")


def test_what_hands_can_do_without_another_result_comes_before_lora(planned: Planned) -> None:
    steps = planned(FULL, BARE, "--answer", "phase=optimizer_step", *CARDS)
    assert not steps["lora"]["selected"]
    assert list(steps).index("higher-zero-stage") < list(steps).index("lora")


def test_pictures_are_not_split_by_tokens_in_a_version_that_cannot(planned: Planned) -> None:
    eight = ("--gpus", "8xA100-80GB")
    assert "token-budget" not in planned(PICTURES, BARE, *UPDATE, *eight, "--lib", "verl=0.4.0")
    assert "token-budget" in planned(PICTURES, BARE, *UPDATE, *eight, "--lib", "verl=0.5.0")


def test_frozen_weights_in_four_bits_do_not_go_with_zero_3(planned: Planned) -> None:
    with_zero = [
        planned(sft("Qwen/Qwen2.5-7B", f"--train_type lora --deepspeed zero{n}"), BARE, *UPDATE) for n in (2, 3)
    ]
    assert ["quantize-base" in steps for steps in with_zero] == [True, False]


def test_a_line_that_may_end_the_command_is_looked_at_first(planned: Planned) -> None:
    cut = FULL.replace(" --bf16 ", " \\\n --bf16\n ").replace(" --dataset", " \\\n --dataset")
    assert first(planned(cut, BARE, *CARDS), 1) == ["mend-command"]
    assert "mend-command" not in planned(FULL, BARE, *CARDS)


def test_a_version_that_nobody_knows_is_offered_with_its_condition_and_not_first(planned: Planned) -> None:
    steps = planned(FULL.replace("ds_mine", "ds_z3_config"), BARE, *CARDS)
    versions = [name for name, step in steps.items() if step.get("kind") == "version"]
    assert all(str(steps[name]["title"]).startswith("If ") for name in versions)
    assert not set(versions) & set(first(steps, 2))
