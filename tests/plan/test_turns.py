"""Where nothing tells what held the card, the first steps each take from another holder, what is stated first."""

from __future__ import annotations

from tests.plan.planned import Planned, changes

BARE = "torch.OutOfMemoryError: CUDA out of memory. \n"
SAVING = (
    "/opt/torch/distributed/fsdp/_state_dict_utils.py:312: UserWarning: Failed to clone() tensor on rank 1. Error: "
    "CUDA out of memory. Tried to allocate 502.00 MiB (GPU 1; 39.59 GiB total capacity; 35.54 GiB already allocated; "
    "276.19 MiB free; 37.22 GiB reserved in total by PyTorch)\n"
)
PASTED = (
    "actor_rollout_ref.actor.ulysses_sequence_parallel_size=1\n"
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=40960\n"
)


NOTHING = "# the script is lost\n"


def named(steps: dict[str, dict[str, object]]) -> list[str]:
    return [name for name in steps if not name.startswith("not:")]


def test_the_first_steps_take_from_batch_recomputing_states_and_lengths(planned: Planned) -> None:
    steps = named(planned("python train.py --model_name x --colour 3\n", BARE))
    assert steps[:4] == ["lower-actor-micro-batch", "gradient-checkpointing", "higher-zero-stage", "shorten-sequences"]


def test_a_setting_of_an_unknown_launch_is_known_by_the_name_that_dialects_give_it(planned: Planned) -> None:
    steps = planned("python train.py --micro-batch-size 8 --cutoff_len 120000 --gradient_checkpointing true\n", BARE)
    assert named(steps)[0] == "lower-actor-micro-batch"
    assert "shorten-sequences" in named(steps)[:3]  # behind what costs no results
    assert changes(steps["lower-actor-micro-batch"]) == {"micro-batch-size": ("8", "4")}
    assert changes(steps["shorten-sequences"]) == {"cutoff_len": ("120000", "60000")}
    assert "gradient-checkpointing" not in steps  # it is on


def test_the_critics_setting_is_not_taken_for_the_actors(planned: Planned) -> None:
    steps = planned("python train.py --critic.micro_batch_size 8\n", BARE)
    assert not any("critic" in change["key"] for change in steps["lower-actor-micro-batch"]["changes"])


def test_settings_that_were_not_seen_refuse_nothing_and_are_said(planned: Planned) -> None:
    steps = planned(PASTED, BARE, "--answer", "framework=verl")
    assert named(steps)[0] in ("token-budget", "sequence-parallel")
    assert changes(steps["token-budget"])["actor_rollout_ref.actor.ppo_max_token_len_per_gpu"] == ("40960", "20480")
    assert any("not seen whole" in said for said in steps["sequence-parallel"]["caveats"])


def test_an_engine_without_room_for_its_cache_gets_a_larger_share_whatever_the_method_is(planned: Planned) -> None:
    steps = planned(NOTHING, "No available memory for the cache blocks\n", "--answer", "framework=trl")
    assert named(steps)[0] == "raise-rollout-share"


def test_a_save_that_ran_out_on_the_card_is_gathered_in_host_ram(planned: Planned) -> None:
    assert named(planned(NOTHING, SAVING))[0] == "save-sharded"


def test_what_changes_results_stands_behind_what_does_not_and_the_larger_saving_first(planned: Planned) -> None:
    script = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B data.train_batch_size=512 "
        "data.max_prompt_length=4096 data.max_response_length=1024 actor_rollout_ref.rollout.n=5 "
        "actor_rollout_ref.actor.ppo_mini_batch_size=128 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 "
        "actor_rollout_ref.actor.fsdp_config.optimizer_offload=True actor_rollout_ref.rollout.name=vllm "
        "actor_rollout_ref.rollout.gpu_memory_utilization=0.6 trainer.n_gpus_per_node=8\n"
    )
    steps = planned(script, BARE)
    results = [steps[name]["results"] for name in named(steps)[:4]]
    assert results == sorted(results, key="changed".__eq__)
    assert results.count("unchanged") > 1


def test_states_that_are_too_much_only_if_nothing_shares_them_take_turns_with_the_pass(planned: Planned) -> None:
    log = f"{BARE}  loss.backward()\n"
    steps = named(planned("python train.py --model_name x\n", log, "--model", "Qwen2.5-32B", "--gpus", "8xA100-80GB"))
    assert steps[0] in ("higher-zero-stage", "cpu-optimizer")
    assert "lower-actor-micro-batch" in steps[1:3]
