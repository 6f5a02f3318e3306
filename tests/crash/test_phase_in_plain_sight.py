# ruff: noqa: E501  (log lines as they are printed)
"""What a log says of the phase in so many words is read: classes of workers, hooks of backward, moving a module, a mark that is over."""

from advisor.crash.read import read_text
from advisor.knowledge.load import load_knowledge
from tests.loops import each

from .known import judge

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.\n"


@each(
    ("stack", "phase"),
    [
        (
            "MegatronPolicyWorker.train\n  → loss → get_next_token_logprobs_from_logits (model_utils.py:1383)\n",
            "actor_update",
        ),
        ("DTensorPolicyWorkerV2.get_logprobs\n  → model.forward\n", "log_prob"),
        ("FSDPCriticWorker.ppo_train -> forward\n", "critic_update"),
        ("ray::lm_policy:DTensorPolicyWorker.train()\n", "actor_update"),
        ("RolloutWorker.generate\n", "unknown"),
    ],
)
def test_the_name_of_a_worker_and_its_method_name_the_phase(stack: str, phase: str) -> None:
    assert judge(stack + OOM).phase == phase


def frames(*calls: str) -> str:
    stack = "".join(
        f'  File "/env/lib/python3.10/site-packages/{path}.py", line 1{i}, in {name}\n    call()\n'
        for i, (path, _, name) in enumerate(call.partition(":") for call in calls)
    )
    return "Traceback (most recent call last):\n" + stack


@each(
    "name",
    [
        "__reduce_and_partition_ipg_grads",
        "partition_grads",
        "reduce_ready_partitions_and_remove_grads",
        "__avg_scatter_grads",
        "average_tensor",
    ],
)
def test_the_hooks_of_backward_are_the_update(name: str) -> None:
    assert judge(frames(f"deepspeed/runtime/zero/stage3:{name}") + OOM).phase == "actor_update"


def test_actions_that_ppo_scores_with_gradients_are_its_update() -> None:
    assert judge(frames("rl4lms/ppo:train", "rl4lms/policy:evaluate_actions") + OOM).phase == "actor_update"


def test_a_module_that_moves_to_the_card_is_being_loaded_where_nothing_else_is_known() -> None:
    moving = ("torch/nn/modules/module:_apply", "torch/nn/modules/module:convert")
    assert judge(frames(*moving) + OOM).phase == "model_load"
    assert judge(frames("verl/workers/fsdp_workers:update_actor", *moving) + OOM).phase == "actor_update"


def test_a_traceback_that_is_wrapped_and_cut_before_its_error_names_the_phase() -> None:
    whole = frames(
        "transformers/trainer:_inner_training_loop",
        "transformers/trainer:training_step",
        "accelerate/accelerator:backward",
        "torch/_tensor:backward",
    )
    wrapped = "".join(
        f"[rank0]: {line}"[i : i + 100] + "\n" for line in whole.splitlines() for i in range(0, len(line) + 9, 100)
    )
    crash = judge("{'loss': 2.4432, 'grad_norm': 1.6, 'learning_rate': 5e-07, 'epoch': 0.0}\n" + wrapped)
    assert (crash.verdict, crash.phase) == ("unclear", "actor_update")


SYNC = """(WorkerDict pid=8) After sync model weights in sharding manager: 37.92 GB / 47.53 GB.
(WorkerDict pid=8) After del state_dict and empty_cache in sharding manager: 27.33 GB / 47.53 GB.
"""
OVER = "(WorkerDict pid=8) After vllm offload in sharding manager: 20.73 GB / 47.53 GB.\n"


def test_a_mark_that_is_over_closes_its_phase() -> None:
    assert (
        judge(SYNC + "(WorkerDict pid=8) Before vllm offload in sharding manager: 23.76 GB / 47.53 GB.\n").phase
        == "weight_sync"
    )
    crash = judge(SYNC + OVER)
    assert (crash.verdict, crash.phase) == ("unclear", "log_prob")
    assert any(reading.bytes == round(20.73 * 2**30) for reading in crash.readings)


def test_a_frameworks_own_words_go_before_those_of_all() -> None:
    known = load_knowledge()
    progress = [one for each in known.frameworks for one in each.progress]
    log = "EasyR1: verl.trainer.main\n(WorkerDict pid=8) After vllm wake up in sharding manager: 70.12 GB / 79.10 GB.\n"
    assert read_text(log, "run.log", known.signatures, progress=progress).phase == "rollout_generate"
