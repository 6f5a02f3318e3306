"""What the numbers of a message and the sizes of a model decide where no sum over the whole run can."""

from __future__ import annotations

from pathlib import Path

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session
from advisor.units import GIB

BACKWARD = '[rank1]:   File "/x/torch/_tensor.py", line 525, in backward\n'
TWO_GIB = (
    f"{BACKWARD}[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
    "capacity of 23.67 GiB of which 1.59 GiB is free.\n"
)
OUTSIDE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.63 GiB. GPU 7 has a total capacity of 79.11 GiB "
    "of which 2.61 GiB is free. Of the allocated memory 48.15 GiB is allocated by PyTorch, and 3.49 GiB is reserved by "
    "PyTorch but unallocated.\n"
)
COLOCATED = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-32B trainer.n_gpus_per_node=8 "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.rollout.gpu_memory_utilization=0.5 $X\n"
)


def opened(folder: Path, script: str, log: str, **asked: object) -> State:
    files = [folder / "run.sh", folder / "train.log"]
    for file, text in zip(files, (script, log), strict=True):
        file.write_text(text)
    logs = (files[1],) if log else ()
    return open_session(SessionRequest(files[0] if script else None, logs=logs, **asked))  # type: ignore[arg-type]


def test_logits_come_before_attention_scores_of_the_same_size(tmp_path: Path) -> None:
    answers = {"framework": "axolotl"}
    state = opened(tmp_path, "", TWO_GIB, model="Mistral-Nemo-12B", gpus="2xRTX-3090-24GB", answers=answers)
    assert state.diagnosis.cause == "logits-too-big"


def test_rows_whose_logits_fill_the_largest_card_are_the_cause_without_any_card(tmp_path: Path) -> None:
    for cap, cause in ((120_000, True), (4096, False)):
        state = opened(tmp_path, f"llamafactory-cli train --cutoff_len {cap} --template qwen\n", "", model="Qwen2.5-7B")
        assert (state.diagnosis.cause == "logits-too-big") is cause, cap


def test_what_is_neither_free_nor_torchs_is_told(tmp_path: Path) -> None:
    assert "Held by others on the card, or outside torch: 24.86 GiB" in short_report(opened(tmp_path, "", OUTSIDE))
    assert "outside torch: " not in short_report(opened(tmp_path, "", TWO_GIB))


def test_no_share_below_the_engines_weights_is_proposed(tmp_path: Path) -> None:
    frame = '  File "/x/vllm/device_allocator/cumem.py", line 200, in wake_up\n'
    wake = f"{frame}RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
    state = opened(tmp_path, COLOCATED, wake, gpus="8xA100-80GB")
    shares = [float(c.new or 1) for s in state.plan.steps if s.id == "lower-rollout-share" for c in s.changes]
    assert all(share > 32.76e9 / (79.15 * GIB) for share in shares)


def test_a_large_rest_that_no_setting_explains_held_the_card_before_the_engine(tmp_path: Path) -> None:
    launch = (
        "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-3B --use_vllm true --vllm_mode colocate "
    )
    answers = {"memory": "gpu", "phase": "rollout_init"}
    for share, cause in ((0.2, "card-already-taken"), (0.85, "engine-start-too-big")):
        script = (
            f"{launch}--vllm_gpu_memory_utilization {share} --train_type full --deepspeed zero3 --max_length 4096\n"
        )
        state = opened(tmp_path, script, "the run died here\n", gpus="8xA100-80GB", answers=answers)
        assert state.diagnosis.cause == cause, share


def test_readings_are_read_in_pieces_and_with_blanks(tmp_path: Path) -> None:
    lines = "before vllm init,\nmemory allocated (GB): 5.59,\nmemory reserved (GB): 6.64,\n"
    lines += "device memory used/total (GB): 8.49 / 61.27\n"
    readings = {(one.kind, round(one.bytes / GIB, 2)) for one in opened(tmp_path, "", lines).crash.readings}
    assert {("allocated", 5.59), ("reserved", 6.64), ("used", 8.49)} <= readings


def test_a_gather_that_is_larger_than_the_card_leaves_only_its_own_steps_in_front(tmp_path: Path) -> None:
    frames = '  File "/x/trl/trainer/grpo_trainer.py", line 900, in _generate_and_score_completions\n'
    frames += '  File "/x/trl/models/utils.py", line 200, in unwrap_model_for_generation\n'
    frames += '  File "/x/deepspeed/runtime/zero/partition_parameters.py", line 2235, in __enter__\n'
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 464 MiB. GPU 0 has a total capacity of 39 GiB"
    answers = {"framework": "trl"}
    state = opened(tmp_path, "", frames + oom, model="Qwen2.5-72B", gpus="8xA100-40GB", answers=answers)
    assert state.plan.steps[0].id in ("no-gather-to-generate", "engine-generates")
