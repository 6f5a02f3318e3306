"""Two crashes on a card that trainer and engine share: an engine that kept its memory, an evaluation that scored."""

from pathlib import Path

from advisor import session
from advisor.session import SessionRequest, State

OPENRLHF = (
    "python3 -m openrlhf.cli.train_ppo_ray --ref_num_nodes 1 --ref_num_gpus_per_node 8 --actor_num_nodes 1 "
    "--actor_num_gpus_per_node 8 --vllm_num_engines 8 --vllm_tensor_parallel_size 1 --colocate_all_models "
    "--vllm_gpu_memory_utilization 0.5 --vllm_enable_sleep --deepspeed_enable_sleep "
    "--pretrain Qwen/Qwen2.5-7B-Instruct --micro_train_batch_size 1 --train_batch_size 128 "
    "--micro_rollout_batch_size 2 --rollout_batch_size 128 --prompt_max_len 1024 --generate_max_len 1024 "
    "--zero_stage 3 --bf16 --n_samples_per_prompt 4 --gradient_checkpointing --flash_attn\n"
)
UPDATE = """(LLMRayActor pid=3478) INFO 05-10 12:05:37 [worker.py:145] Sleep mode freed 2.10 GiB memory, 38.00 GiB \
memory is still in use.
(ActorModelRayActor pid=3489) Traceback (most recent call last):
(ActorModelRayActor pid=3489)   File "/opt/lib/openrlhf/trainer/ray/ppo_actor.py", line 220, in training_step
(ActorModelRayActor pid=3489)     self.strategy.backward(loss, self.actor, self.actor_optim)
(ActorModelRayActor pid=3489) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a \
total capacity of 79.15 GiB of which 1.50 GiB is free. Process 3478 has 40.10 GiB memory in use. Including \
non-PyTorch memory, this process has 37.55 GiB memory in use. Of the allocated memory 36.00 GiB is allocated by \
PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated.
"""
TRL = (
    "accelerate launch --num_processes 8 -m trl.scripts.grpo --model_name_or_path Qwen/Qwen2.5-0.5B-Instruct "
    "--per_device_train_batch_size 4 --per_device_eval_batch_size 32 --num_generations 8 --max_prompt_length 512 "
    "--max_completion_length 2048 --use_vllm true --vllm_mode colocate --vllm_gpu_memory_utilization 0.3 "
    "--eval_strategy steps\n"
)
EVALUATION = """[rank0]: Traceback (most recent call last):
[rank0]:   File "/opt/lib/transformers/trainer.py", line 4200, in evaluate
[rank0]:   File "/opt/lib/trl/trainer/grpo_trainer.py", line 1290, in prediction_step
[rank0]:   File "/opt/lib/trl/trainer/grpo_trainer.py", line 760, in _get_per_token_logps
[rank0]:   File "/opt/lib/trl/trainer/utils.py", line 1460, in selective_log_softmax
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 18.55 GiB. GPU 0 has a total capacity of \
79.15 GiB of which 4.11 GiB is free. Including non-PyTorch memory, this process has 75.03 GiB memory in use. Of the \
allocated memory 73.00 GiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated.
"""


def opened(folder: Path, launch: str, log: str) -> State:
    (folder / "run.sh").write_text(launch)
    (folder / "train.log").write_text(log)
    asked = SessionRequest(
        script=folder / "run.sh", logs=(folder / "train.log",), gpus="8xA100-80GB", host_ram="1000GB"
    )
    return session.open_session(asked)


def test_an_engine_that_kept_its_memory_is_named_and_not_counted_as_a_stranger_too(tmp_path: Path) -> None:
    diagnosis = opened(tmp_path, OPENRLHF, UPDATE).diagnosis
    (told,) = [remark for remark in diagnosis.remarks if "40.10 GiB" in remark]
    assert "rollout engine (LLMRayActor pid=3478) still held 40.10 GiB of the card in the actor update" in told
    assert "other processes" not in told
    (step,) = [step for step in diagnosis.path if step.question == "others"]
    assert (step.answer, step.source) == ("engine", "log")
    assert diagnosis.cause == "engine-beside-trainer"


def test_an_evaluation_that_died_scoring_is_cut_by_its_own_batch_size(tmp_path: Path) -> None:
    state = opened(tmp_path, TRL, EVALUATION)
    assert state.diagnosis.phase == "validation"
    assert state.diagnosis.cause == "logits-too-big"
    steps = {step.id: step for step in state.plan.steps}
    assert steps["lower-evaluation-batch"].selected


def test_where_nobody_knows_of_an_engine_none_is_blamed_for_the_validation(tmp_path: Path) -> None:
    asked = SessionRequest(answers={"memory": "gpu", "phase": "validation"}, gpus="8xA100-80GB")
    assert session.open_session(asked).diagnosis.cause == "evaluation-too-big"
