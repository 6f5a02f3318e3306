"""The bucket of a weight sync is counted where a setting gives its size, and is the lever where its frame failed."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from advisor.session import SessionRequest, State, open_session
from advisor.units import GIB

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B "
    "trainer.n_gpus_per_node=8 data.train_batch_size=128 data.max_prompt_length=1024 data.max_response_length=2048 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 actor_rollout_ref.rollout.gpu_memory_utilization=0.15 "
)
KEY = "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"
FRAME = '  File "/x/verl/workers/rollout/vllm_rollout/bucketed_weight_transfer.py", line 200, in async_send_weights\n'
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB. GPU 3 has a total capacity of 79.1 GiB.\n"
)


def opened(folder: Path, launch: str, log: str = "") -> State:
    (folder / "run.sh").write_text(launch + "\n")
    (folder / "train.log").write_text(log)
    logs = (folder / "train.log",) if log else ()
    asked = SessionRequest(folder / "run.sh", logs=logs, gpus="8xA100-80GB", libraries=("verl=0.8.0",))
    return open_session(replace(asked, planned=bool(log)))


def test_the_bucket_is_counted_by_its_setting(tmp_path: Path) -> None:
    peaks = []
    for megabytes in (8192, 16384):
        phases = opened(tmp_path, f"{VERL}{KEY}={megabytes}").ledger.gpu
        peaks.append(next(phase for phase in phases if phase.phase == "weight_sync").of("buffers"))
    assert peaks[1] - peaks[0] == 8 * GIB


def test_a_bucket_that_found_no_room_is_made_smaller_and_holds_the_embedding(tmp_path: Path) -> None:
    steps = {step.id: step for step in opened(tmp_path, f"{VERL}{KEY}=8192", FRAME + OOM).plan.steps}
    assert steps["smaller-sync-bucket"].changes[0].new in ("4096", "2048")
    steps = {step.id: step for step in opened(tmp_path, f"{VERL}{KEY}=1100", FRAME + OOM).plan.steps}
    assert "smaller-sync-bucket" not in steps  # the table of this model has 1040 MiB


def test_a_bridge_that_yields_one_tensor_after_the_other_never_gathers_the_model(tmp_path: Path) -> None:
    launch = "NPROC_PER_NODE=8 {} rlhf --rlhf_type grpo --model Qwen/Qwen3-30B-A3B --use_vllm true --vllm_mode colocate"
    gathered = []
    for program in ("megatron", "swift"):
        more = "--tensor_model_parallel_size 2" if program == "megatron" else "--deepspeed zero3"
        (tmp_path / "run.sh").write_text(f"{launch.format(program)} --tuner_type full --max_length 4096 {more}\n")
        asked = SessionRequest(tmp_path / "run.sh", gpus="8xA100-80GB", planned=False)
        phases = {phase.phase: phase for phase in open_session(asked).ledger.gpu}
        gathered.append(phases["weight_sync"].of("gathered") / GIB)
    assert gathered[0] < 3
    assert gathered[1] > 50
