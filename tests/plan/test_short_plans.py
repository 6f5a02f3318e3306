"""A plan is short, says so where nothing suffices, and switches nothing on where nothing is known."""

from __future__ import annotations

from pathlib import Path

from advisor.plan.plan import PlanStep
from advisor.session import SessionRequest, State, open_session

BARE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB "
    "of which 1.00 GiB is free. Process 1 has 78.00 GiB memory in use. Of the allocated memory 70.00 GiB is allocated "
    "by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
)
RAYLET = (
    "(raylet) node_manager.cc:3100: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed "
    "due to other reasons at node (ID: ab, IP: 10.0.0.1) over the last time period.\n"
)
SWIFT = (
    "NPROC_PER_NODE={gpus} swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-{size}-Instruct --use_vllm true "
    "--vllm_mode colocate --torch_dtype bfloat16 --max_length 2048 "
)
RING = (
    "python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen2.5-7B-Instruct --actor_num_nodes 1 "
    "--actor_num_gpus_per_node 8 --ref_num_nodes 1 --ref_num_gpus_per_node 8 --vllm_num_engines 8 "
    "--vllm_tensor_parallel_size 1 --colocate_all_models --zero_stage 3 --micro_train_batch_size 8 "
    "--micro_rollout_batch_size 32 --train_batch_size 128 --rollout_batch_size 128 --n_samples_per_prompt 8 "
    "--prompt_max_len 1024 --generate_max_len 8192 --bf16 --flash_attn --vllm_gpu_memory_utilization 0.5 "
    "--vllm_enable_sleep --deepspeed_enable_sleep --adam_offload --gradient_checkpointing "
    "--advantage_estimator group_norm\n"
)


def planned(folder: Path, script: str, log: str = "", gpus: str | None = "8xH100-80GB", **more: object) -> State:
    """The session of a script and a log."""
    (folder / "run.sh").write_text(script)
    logs = ()
    if log:
        (folder / "train.log").write_text(log)
        logs = (folder / "train.log",)  # type: ignore[assignment]
    return open_session(
        SessionRequest(script=folder / "run.sh" if script else None, logs=logs, gpus=gpus, **more)  # type: ignore[arg-type]
    )


def on(state: State) -> list[PlanStep]:
    return list(state.plan.selected())


def test_where_nothing_suffices_few_are_on_none_changes_results_and_what_would_do_is_computed(tmp_path: Path) -> None:
    script = SWIFT.format(gpus=8, size="72B") + (
        "--vllm_gpu_memory_utilization 0.5 --train_type full --max_completion_length 8192 "
        "--per_device_train_batch_size 8 --num_generations 8 --deepspeed zero2\n"
    )
    state = planned(tmp_path, script, BARE)
    assert state.plan.fits is False
    assert 1 <= len(on(state)) <= 3
    assert all(step.results == "unchanged" for step in on(state))
    assert "None of those listed is enough" in state.plan.shortfall
    assert "a smaller model, such as" in state.plan.shortfall


def test_a_change_that_costs_where_it_died_is_taken_with_the_one_that_gives_it_back(tmp_path: Path) -> None:
    script = SWIFT.format(gpus=2, size="32B") + (
        "--train_type lora --vllm_gpu_memory_utilization 0.3 --vllm_tensor_parallel_size 2 --max_completion_length 512 "
        "--per_device_train_batch_size 1 --num_generations 2 --sleep_level 1 --offload_model true\n"
    )
    answers = {"memory": "gpu", "phase": "weight_sync"}
    state = planned(tmp_path, script, gpus="2xA100-80GB", host_ram="1000GB", answers=answers)
    assert {step.id for step in on(state)} == {"higher-zero-stage", "sync-in-pieces", "raise-rollout-share"}
    assert state.plan.fits


def test_ring_attention_brings_the_packing_that_it_needs(tmp_path: Path) -> None:
    state = planned(
        tmp_path, RING, BARE, answers={"phase": "log_prob"}, libraries=("openrlhf=0.6.4",), host_ram="1500GB"
    )
    ring = [step for step in state.plan.steps if any("ring_attn_size" in change.key for change in step.changes)]
    assert all(any("packing_samples" in change.key for change in step.changes) for step in ring)
    assert state.plan.fits
    assert len(on(state)) <= 3


def test_a_later_kill_is_never_on(tmp_path: Path) -> None:
    state = planned(tmp_path, "", RAYLET, gpus=None)
    assert not any(step.id == "ray-threshold" for step in on(state))


def test_with_the_phase_unknown_and_nothing_computed_only_what_relieves_every_phase_is_on(tmp_path: Path) -> None:
    script = (
        "deepspeed --num_gpus 8 --module openrlhf.cli.train_dpo --pretrain /models/unknown --zero_stage 2 "
        "--micro_train_batch_size 4 --train_batch_size 64 --max_len 8192 --bf16\n"
    )
    state = planned(tmp_path, script, BARE)
    assert [step.id for step in on(state)] in ([], ["higher-zero-stage"])
    assert "Nothing is switched on" not in state.plan.shortfall  # the steps below are in order all the same


def test_where_nothing_can_be_computed_a_pass_shrinks_until_the_request_would_have_found_room(tmp_path: Path) -> None:
    log = BARE.replace("Tried to allocate 2.00 GiB", "Tried to allocate 7.00 GiB")
    script = (
        "python3 -m openrlhf.cli.train_ppo_ray --pretrain /models/unknown --zero_stage 3 --micro_train_batch_size 16 "
        "--micro_rollout_batch_size 16 --train_batch_size 128 --bf16 --flash_attn --gradient_checkpointing\n"
    )
    state = planned(tmp_path, script, log, answers={"phase": "actor_update"})
    step = next(step for step in state.plan.steps if step.id == "lower-actor-micro-batch")
    change = next(change for change in step.changes if "micro_train" in change.key)
    assert (change.old, change.new) == ("16", "2")


def test_a_librarys_own_setting_in_an_unknown_script_beats_its_default(tmp_path: Path) -> None:
    woken = (
        'Traceback (most recent call last):\n  File "/x/vllm/worker/worker.py", line 79, in wake_up\n'
        "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
    )
    state = planned(tmp_path, "python train_it.py --gpu_memory_utilization 0.8 --lr 1e-6\n", woken)
    share = next(step for step in state.plan.steps if step.id == "lower-rollout-share").changes[0]
    assert (share.old, share.new) == ("0.8", "0.5")


def test_the_amount_that_stands_for_a_step_is_a_saving_where_there_is_one(tmp_path: Path) -> None:
    state = planned(tmp_path, RING, BARE, answers={"phase": "log_prob"}, libraries=("openrlhf=0.6.4",))
    for step in state.plan.steps:
        if any(size > 0 for size in step.saves.values()):
            assert step.headline is not None
            assert step.saves[step.headline] > 0
