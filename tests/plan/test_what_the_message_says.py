"""What the log prints decides over what is usual: how much was free, who held it, which version, how full."""

from __future__ import annotations

from tests.plan.planned import Planned, changes, selected

TORCH = "torch.OutOfMemoryError: CUDA out of memory. "
BARE = TORCH + "\n"
ENGINE = (
    "ValueError: Free memory on device (24.00/80.00 GiB) on startup is less than desired GPU memory utilization "
    "(0.92, 73.60 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
)
OPENRLHF = (
    "python3 -m openrlhf.cli.train_ppo_ray --pretrain /models/ours --zero_stage 3 --gradient_checkpointing "
    "--micro_train_batch_size 4 --micro_rollout_batch_size 8 --actor_num_nodes 1 --actor_num_gpus_per_node 4\n"
)
NEMO = (
    "python examples/run_grpo_math.py --config examples/configs/grpo_math_8B.yaml policy.model_name=Qwen/Qwen2.5-32B "
    "policy.max_total_sequence_length=8192 cluster.gpus_per_node=8 cluster.num_nodes={nodes} {more}\n"
)
CURE = "use-deepspeed-0.16.8"


def nemo(nodes: int, **more: object) -> str:
    return NEMO.format(nodes=nodes, more=" ".join(f"policy.{k.replace('__', '.')}={v}" for k, v in more.items()))


def test_two_ways_to_cut_a_batch_that_exclude_each_other_are_not_combined(planned: Planned) -> None:
    budgets = {"dynamic_batching__train_mb_tokens": 8192, "dynamic_batching__logprob_mb_tokens": 32768}
    steps = planned(nemo(16, dynamic_batching__enabled="true", **budgets), BARE)
    assert "remove-padding" not in steps
    assert changes(steps["logprob-token-budget"])["policy.dynamic_batching.logprob_mb_tokens"] == ("32768", "16384")
    assert "token-budget" not in steps


def test_the_keys_of_an_engine_that_is_not_chosen_are_not_offered(planned: Planned) -> None:
    steps = planned(nemo(1, megatron_cfg__enabled="true"), BARE)
    keys = {key for name, step in steps.items() if not name.startswith("not:") for key in changes(step)}
    assert "policy.megatron_cfg.optimizer.optimizer_cpu_offload" in keys
    assert not [key for key in keys if "dtensor" in key]


def test_states_that_leave_no_room_are_the_cause_where_nothing_else_can_be_computed(planned: Planned) -> None:
    assert selected(planned(nemo(1, megatron_cfg__enabled="true"), BARE))[:1] == ["cpu-optimizer"]
    assert "gradient-checkpointing" in planned(nemo(16, megatron_cfg__enabled="true"), BARE)


def test_a_version_that_nobody_named_and_nothing_shows_comes_after_the_levers(planned: Planned) -> None:
    steps = planned(OPENRLHF, BARE)
    order = list(steps)
    assert order.index("lower-actor-micro-batch") < order.index("cpu-optimizer") < order.index(CURE)
    assert order.index(CURE) < order.index("shorten-responses") if "shorten-responses" in order else True
    assert any("pip show deepspeed" in said for said in steps[CURE]["caveats"])


def test_where_nothing_is_proved_no_version_is_advice_and_nothing_is_switched_on(planned: Planned) -> None:
    lost = "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"
    steps = planned(OPENRLHF, lost)
    assert CURE not in steps
    assert "more-host-ram" in steps
    assert not selected(steps)


def test_the_share_follows_from_what_was_free(planned: Planned) -> None:
    shown = planned("echo\n", ENGINE)["lower-rollout-share"]
    assert changes(shown)["gpu_memory_utilization"] == ("0.92", "0.3")


def test_a_process_that_holds_nearly_all_is_looked_at_first(planned: Planned) -> None:
    log = (
        TORCH + "Tried to allocate 200.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 100.00 MiB is free. "
        "Process 71 has 78.02 GiB memory in use. Process 99 has 1.03 GiB memory in use. Of the allocated memory "
        "640.00 MiB is allocated by PyTorch, and 8.00 MiB is reserved by PyTorch but unallocated.\n"
    )
    assert next(iter(planned("echo\n", log))) == "look-at-holder"
    shared = log.replace("78.02", "30.00").replace("1.03 GiB", "49.05 GiB").replace("640.00 MiB", "48.00 GiB")
    assert "look-at-holder" not in planned("echo\n", shared)


def test_pieces_that_together_are_too_small_are_not_the_cause(planned: Planned) -> None:
    log = (
        TORCH + "Tried to allocate {asked} GiB. GPU 1 has a total capacity of 79.15 GiB of which 1.50 GiB is free. "
        "Including non-PyTorch memory, this process has 77.65 GiB memory in use. Of the allocated memory 66.00 GiB is "
        "allocated by PyTorch, and 10.00 GiB is reserved by PyTorch but unallocated.\n"
    )
    assert next(iter(planned("echo\n", log.format(asked="9.00")))) != next(
        iter(planned("echo\n", log.format(asked="30.00")))
    )
    assert "expandable-segments" not in planned(OPENRLHF, log.format(asked="30.00"))
    assert "expandable-segments" in planned(OPENRLHF, log.format(asked="9.00"))


def test_a_cast_of_all_logits_is_not_answered_by_scoring_in_chunks(planned: Planned) -> None:
    log = (
        '  File "/x/slime/backends/megatron_utils/model.py", line 9, in forward_step\n'
        '  File "/x/megatron/core/transformer/module.py", line 335, in conversion_helper\n'
        "    return conversion(val)\n"
        '  File "/x/megatron/core/transformer/module.py", line 373, in float_conversion\n'
        "    val = val.float()\n" + TORCH + "Tried to allocate 40.00 GiB. GPU 3 has a total capacity of 79.15 GiB of "
        "which 20.00 GiB is free.\n"
    )
    steps = planned("echo\n", log)
    assert "score-in-chunks" not in steps
    assert next(iter(steps)) != "lower-rollout-share"


def test_shared_memory_with_room_is_not_enlarged_and_no_gpu_lever_is_switched_on(planned: Planned) -> None:
    launch = (
        "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B --use_vllm true --vllm_mode colocate "
        "--per_device_train_batch_size 8 --max_completion_length 2048\n"
    )
    bus = "RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error.\n"
    table = "Filesystem      Size  Used Avail Use% Mounted on\ntmpfs {size}  {used}  1G  {percent}% /dev/shm\n"
    roomy = planned(launch, bus + table.format(size="400G", used="1.2G", percent=1))
    assert next(iter(roomy)) == "find-broken-mapping"
    full = planned(launch, bus + table.format(size="64M", used="64M", percent=100))
    assert next(iter(full)) == "raise-shm"
    assert "higher-zero-stage" not in full
    assert not selected(roomy) + selected(full)


def test_a_share_that_is_low_already_comes_after_what_costs_as_little(planned: Planned) -> None:
    launch = "python3 train.py --hf-checkpoint /models/ours --colocate --actor-num-gpus-per-node 8 "
    low = list(planned(launch + "--sglang-mem-fraction-static 0.45\n", BARE))
    high = list(planned(launch + "--sglang-mem-fraction-static 0.85\n", BARE))
    assert low.index("lower-rollout-share") > low.index("score-in-chunks")
    assert high.index("lower-rollout-share") < high.index("sequence-parallel")


def test_what_is_added_to_a_config_file_has_no_dashes(planned: Planned) -> None:
    config = "model_name_or_path: Qwen/Qwen3-0.6B\nmax_completion_length: 1024\nper_device_train_batch_size: 4\n"
    steps = planned(config + "trl_trainer: GRPOTrainer\nmax_prompt_length: 2048\n", BARE, name="run.yaml")
    keys = [change["key"] for change in steps["lower-actor-micro-batch"]["changes"]]
    assert keys == ["per_device_train_batch_size", "gradient_accumulation_steps"]


def test_for_a_request_larger_than_the_card_no_room_is_made(planned: Planned) -> None:
    log = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 341.70 GiB. GPU 0 has a total capacity of "
        "79.15 GiB of which 70.00 GiB is free. Of the allocated memory 8.00 GiB is allocated by PyTorch\n"
    )
    steps = planned("axolotl train config.yaml --base_model x/Mistral-7B --micro_batch_size 4\n", log)
    assert "lower-actor-micro-batch" in steps
    assert not steps.keys() & {"higher-zero-stage", "optimizer-offload", "cpu-optimizer", "lower-rollout-share"}
