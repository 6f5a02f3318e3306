# ruff: noqa: E501  (log lines as they are printed)
"""The phase comes from the frames of the first failure; where there are none, from weaker witnesses in a fixed order."""

import json

import pytest

from advisor.crash.read import read_text
from advisor.knowledge.schema import FrameRule
from tests.loops import each

from .known import SIGNATURES, judge

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
VLLM, VERL = "/x/site-packages/vllm", "/x/verl"


def log(*frames, error=OOM, before="", prefix=""):
    """A traceback from (file, function) pairs, outermost first."""
    lines = [before, "Traceback (most recent call last):"]
    for number, (file, function) in enumerate(frames, 1):
        lines += [f'  File "{file}", line {number}, in {function}', "    call()"]
    return "\n".join(prefix + line for line in [*lines, error])


FRAMES = [
    ("actor_update", [(f"{VERL}/workers/fsdp_workers.py", "update_actor"), (f"{VERL}/workers/actor/dp_actor.py", "update_policy"), ("/x/torch/_tensor.py", "backward")]),
    ("log_prob", [(f"{VERL}/workers/fsdp_workers.py", "compute_log_prob"), (f"{VERL}/workers/actor/dp_actor.py", "_forward_micro_batch")]),
    ("log_prob", [(f"{VERL}/workers/fsdp_workers.py", "generate_sequences"), (f"{VERL}/workers/actor/dp_actor.py", "compute_log_prob")]),
    ("rollout_generate", [(f"{VERL}/workers/rollout/vllm_rollout/vllm_rollout.py", "generate_sequences"), (f"{VLLM}/worker/model_runner.py", "execute_model")]),
    ("validation", [(f"{VERL}/trainer/ppo/ray_trainer.py", "_validate"), (f"{VERL}/workers/fsdp_workers.py", "generate_sequences")]),
    ("checkpoint", [(f"{VERL}/trainer/ppo/ray_trainer.py", "_save_checkpoint"), (f"{VERL}/workers/fsdp_workers.py", "save_checkpoint")]),
    ("optimizer_step", [(f"{VERL}/workers/actor/dp_actor.py", "update_policy"), (f"{VERL}/workers/actor/dp_actor.py", "_optimizer_step"), ("/x/torch/optim/adamw.py", "_init_group")]),
    ("critic_update", [(f"{VERL}/workers/fsdp_workers.py", "update_critic"), (f"{VERL}/workers/critic/dp_critic.py", "update_critic"), ("/x/torch/_tensor.py", "backward")]),
    ("weight_sync", [(f"{VERL}/workers/fsdp_workers.py", "generate_sequences"), (f"{VERL}/workers/sharding_manager/fsdp_vllm.py", "__enter__"), (f"{VLLM}/device_allocator/cumem.py", "wake_up")]),
    ("rollout_init", [(f"{VERL}/workers/fsdp_workers.py", "init_model"), (f"{VERL}/workers/fsdp_workers.py", "_build_rollout"), (f"{VLLM}/worker/worker.py", "determine_num_available_blocks")]),
    ("model_load", [(f"{VERL}/workers/fsdp_workers.py", "init_model"), ("/x/transformers/modeling_utils.py", "from_pretrained")]),
    ("actor_update", [("/x/openrlhf/trainer/ray/ppo_actor.py", "ppo_train"), ("/x/openrlhf/utils/deepspeed/deepspeed.py", "backward"), ("/x/deepspeed/runtime/engine.py", "backward")]),
    ("log_prob", [("/x/trl/trainer/grpo_trainer.py", "_generate_and_score_completions"), ("/x/trl/trainer/grpo_trainer.py", "_get_per_token_logps")]),
    ("actor_update", [("/x/transformers/trainer.py", "training_step"), ("/x/trl/trainer/grpo_trainer.py", "compute_loss"), ("/x/trl/trainer/grpo_trainer.py", "_get_per_token_logps")]),
    ("rollout_generate", [("/x/swift/trainers/rlhf_trainer/grpo_trainer.py", "_fast_infer"), (f"{VLLM}/entrypoints/llm.py", "_run_engine")]),
    ("weight_sync", [("/x/swift/trainers/rlhf_trainer/grpo_trainer.py", "_move_full_model_to_vllm")]),
    ("optimizer_step", [("/x/deepspeed/runtime/engine.py", "step"), ("/x/deepspeed/runtime/zero/stage3.py", "step")]),
    ("model_load", [("/x/deepspeed/runtime/zero/stage3.py", "initialize_optimizer_states"), ("/x/deepspeed/ops/adam/cpu_adam.py", "step")]),
    ("log_prob", [("/x/openrlhf/trainer/ray/launcher.py", "forward"), ("/x/openrlhf/models/actor.py", "forward"), ("/x/torch/autograd/function.py", "apply")]),
    ("log_prob", [("/x/openrlhf/trainer/ray/ppo_critic.py", "forward"), ("/x/openrlhf/models/model.py", "forward")]),
    ("critic_update", [("/x/openrlhf/trainer/ray/ppo_critic.py", "ppo_train"), ("/x/openrlhf/trainer/ray/ppo_critic.py", "training_step")]),
    ("actor_update", [(f"{VERL}/workers/fsdp_workers.py", "update_actor"), (f"{VERL}/workers/sharding_manager/fsdp_ulysses.py", "preprocess_data")]),
    ("weight_sync", [("/x/slime/backends/megatron_utils/update_weight/update_weight_from_tensor.py", "update_weights"), ("/x/megatron/core/utils.py", "gather")]),
    ("actor_update", [("/x/slime/backends/megatron_utils/actor.py", "train_actor"), ("/x/megatron/core/pipeline_parallel/schedules.py", "forward_step")]),
    ("log_prob", [("/x/slime/backends/megatron_utils/actor.py", "compute_log_prob"), ("/x/slime/backends/megatron_utils/model.py", "forward_only")]),
    ("optimizer_step", [("/x/slime/backends/megatron_utils/model.py", "train_one_step"), ("/x/megatron/core/optimizer/distrib_optimizer.py", "step")]),
    ("weight_sync", [("/x/trl/extras/vllm_client.py", "update_named_param")]),
    ("rollout_init", [("/x/trl/trainer/grpo_trainer.py", "__init__"), ("/x/trl/generation/vllm_generation.py", "_init_vllm")]),
    ("model_load", [("/x/accelerate/accelerator.py", "prepare"), ("/x/torch/nn/modules/module.py", "to")]),
    ("rollout_generate", [(f"{VLLM}/model_executor/models/qwen2_5_vl.py", "forward"), ("/x/flash_attn/layers/rotary.py", "forward")]),
    ("model_load", [("/x/transformers/modeling_utils.py", "_load_state_dict_into_meta_model"), ("/x/bitsandbytes/nn/modules.py", "_quantize"), ("/x/bitsandbytes/functional.py", "quantize_4bit")]),
    ("checkpoint", [("/x/peft/tuners/lora/bnb.py", "merge"), ("/x/bitsandbytes/nn/modules.py", "_quantize")]),
    ("model_load", [("/x/accelerate/big_modeling.py", "dispatch_model"), ("/x/torch/nn/modules/module.py", "to")]),
    ("checkpoint", [("/srv/mine/train.py", "main"), ("/x/torch/distributed/fsdp/_state_dict_utils.py", "_full_pre_state_dict_hook")]),
    ("weight_sync", [("/x/verl/workers/sharding_manager/fsdp_vllm.py", "__enter__"), ("/x/torch/distributed/fsdp/_state_dict_utils.py", "_full_pre_state_dict_hook")]),
    ("actor_update", [("/srv/mine/train.py", "main"), ("/x/torch/distributed/fsdp/_runtime_utils.py", "_post_backward_hook")]),
    ("weight_sync", [("/x/rlinf/workers/actor/fsdp_actor_worker.py", "sync_model_to_rollout"), ("/x/torch/distributed/fsdp/_state_dict_utils.py", "_full_pre_state_dict_hook")]),
    ("weight_sync", [("/x/skyrl/backends/skyrl_train/workers/fsdp/fsdp_worker.py", "broadcast_to_inference_engines")]),
]  # fmt: skip


@pytest.mark.parametrize(("phase", "frames"), FRAMES)
@pytest.mark.parametrize("prefix", ["", "(WorkerDict pid=9) "])
def test_frames_name_the_phase(phase, frames, prefix):
    crash = judge(log(*frames, prefix=prefix))
    assert crash.phase == phase, crash.phase_because
    assert crash.phase_because.startswith("frame ")
    assert [frame.function for frame in crash.frames] == [function for _, function in frames]


def test_lines_of_other_ranks_inside_the_traceback_are_skipped():
    mine = log((f"{VERL}/workers/actor/dp_actor.py", "update_policy"), prefix="[rank1]: ").splitlines()
    other = log((f"{VERL}/workers/actor/dp_actor.py", "compute_log_prob"), prefix="[rank2]: ").splitlines()
    woven = [line for pair in zip(mine, other, strict=True) for line in pair]
    crash = judge("\n".join(woven))
    assert (crash.evidence[0].process, crash.phase) == ("rank1", "actor_update")


def test_the_critics_own_process_trains_the_critic():
    frames = [("/x/openrlhf/trainer/ppo_trainer.py", "ppo_train"), ("/x/torch/_tensor.py", "backward")]
    assert judge(log(*frames, prefix="(CriticModelRayActor pid=4) ")).phase == "critic_update"
    assert judge(log(*frames, prefix="(ActorModelRayActor pid=4) ")).phase == "actor_update"


def test_optimizer_states_made_while_deepspeed_starts_belong_to_loading():
    frames = [
        ("/x/deepspeed/runtime/zero/stage3.py", "initialize_optimizer_states"),
        ("/x/torch/optim/adamw.py", "step"),
    ]
    assert judge(log(*frames)).phase == "model_load"


def test_a_notebook_traceback_is_read():
    crash = judge(
        "File /x/deepspeed/runtime/engine.py:1474, in DeepSpeedEngine._configure_zero_optimizer(self, optimizer)\n"
        "   1472         log_dist(f'Creating')\n-> 1474         optimizer = Stage3(\n" + OOM
    )
    assert crash.phase == "model_load"


def test_without_frames_the_ray_task_decides():
    crash = judge(f"{OOM}\nUnhandled error: ray::WorkerDict.actor_rollout_compute_log_prob() (pid=3)")
    assert (crash.phase, crash.phase_because[:8]) == ("log_prob", "Ray task")


def test_without_a_task_the_message_itself_decides():
    assert judge("ValueError: No available memory for the cache blocks. Try increasing").phase == "rollout_init"


def test_without_anything_else_the_last_progress_mark_decides():
    crash = judge(f"Compute log probs: 100%|##| 8/8\n(pid=4) Update policy:  31%|###   | 5/16 [00:10<00:22]\r{OOM}")
    assert crash.phase == "actor_update"
    assert "progress" in crash.phase_because


def test_a_finished_step_clears_the_progress_marks_before_it():
    assert judge(f"Update policy: 100%|##| 8/8\n(TaskRunner pid=1) step:4 - actor/lr:0.1\n{OOM}").phase == "unknown"


def test_rules_of_a_framework_file_take_part():
    rule = FrameRule(frame="my_trainer\\.py:squeeze$", phase="critic_update", tier="stage")
    crash = read_text(log(("/x/my_trainer.py", "squeeze")), "x", SIGNATURES, frames=[rule])
    assert crash.phase == "critic_update"


def test_frames_under_rays_wrapper_are_read_where_none_stand_above_it():
    crash = judge(
        "ray.exceptions.RayTaskError(OutOfMemoryError): ray::main_task() (pid=5, ip=10.0.0.1)\n"
        '  File "/x/verl/workers/fsdp_workers.py", line 3, in update_actor\n    metrics = self.actor.update_policy(data)\n'
    )
    assert (crash.phase, len(crash.frames)) == ("actor_update", 1)


def test_the_framed_tracebacks_of_rich_are_read():
    crash = judge(
        "│ C:\\x\\lib\\site-packages\\torch\\optim\\adamw.py:171 in step                              │\n"
        "│                                                                                  │\n"
        "│ ❱ 171 │   │   │   │   params_with_grad,                                          │\n"
        "╰──────────────────────────────────────────────────────────────────────────────────╯\n" + OOM
    )
    assert (crash.phase, crash.frames[0].line) == ("optimizer_step", 171)


def test_frames_behind_sruns_labels_belong_to_their_task():
    crash = judge(log((f"{VERL}/workers/actor/dp_actor.py", "update_policy"), prefix="3: "))
    assert (crash.evidence[0].process, crash.phase) == ("task 3", "actor_update")


def test_what_the_message_says_outranks_the_engines_own_frames_and_the_trainers_loop():
    frames = [(f"{VERL}/trainer/ppo/ray_trainer.py", "fit"), (f"{VLLM}/v1/executor/abstract.py", "call")]
    assert judge(log(*frames, error="ValueError: No available memory for the cache blocks.")).phase == "rollout_init"


@each(
    ("line", "phase"),
    [
        (
            "(WorkerDict pid=3) before init cache memory allocated: 5.96926464GB, reserved: 6.079643648GB",
            "rollout_init",
        ),
        ("(MegatronTrainRayActor pid=3) timer.py:32 - Timer actor_train start", "actor_update"),
        ("(MegatronTrainRayActor pid=3) timer.py:32 - Timer ref_log_probs start", "log_prob"),
        ("Rollout generation:  40%|####      | 102/256 [29:15<00:00,  1.52s/it]", "rollout_generate"),
        ("[rank-6]: Saving optimizer to /x/global_step_50/actor/optim_rank_6.pt", "checkpoint"),
    ],
)
def test_progress_lines_of_several_frameworks_name_the_phase(line, phase):
    assert judge(f"{line}\n  exitcode  : -9 (pid: 1234)\n").phase == phase


def test_the_traceback_in_an_error_file_of_torchrun_is_read():
    frames = '  File "/x/trl/trainer/grpo_trainer.py", line 900, in compute_loss\n    loss = 1\n'
    message = {"message": OOM, "extraInfo": {"py_callstack": f"Traceback (most recent call last):\n{frames}{OOM}\n"}}
    crash = judge(json.dumps({"message": message}))
    assert (crash.phase, crash.frames[0].line) == ("actor_update", 900)


def test_a_higher_tier_wins_over_a_deeper_frame_and_within_one_the_deepest():
    frames = [("/x/outer.py", "run"), ("/x/inner.py", "go")]
    rules = {
        tier: [
            FrameRule(frame="outer\\.py:run$", phase="checkpoint", tier=tier),
            FrameRule(frame="inner\\.py:go$", phase="validation", tier="worker"),
        ]
        for tier in ("call", "worker", "operation")
    }
    phases = {tier: read_text(log(*frames), "x", SIGNATURES, frames=rules[tier]).phase for tier in rules}
    assert phases == {"call": "validation", "worker": "validation", "operation": "checkpoint"}


def test_of_two_rules_for_a_frame_the_one_that_asks_for_its_caller_wins():
    rules = [
        FrameRule(frame="inner\\.py:go$", phase="validation"),
        FrameRule(frame="inner\\.py:go$", under="outer", phase="checkpoint"),
    ]
    texts = [log(("/x/outer.py", "run"), ("/x/inner.py", "go")), log(("/x/inner.py", "go"))]
    phases = [read_text(text, "x", SIGNATURES, frames=rules).phase for text in texts]
    assert phases == ["checkpoint", "validation"]
