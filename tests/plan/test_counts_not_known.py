"""What nobody counted forbids nothing, and what a model cannot take is no value."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

CARD = "GPU 3 has a total capacity of 79.15 GiB of which 300.00 MiB is free. Process 7 has 78.8 GiB memory in use. "
ENGINE = (
    "verl.trainer.main_ppo\n"
    '(WorkerDict pid=7)   File "/x/vllm/v1/worker/gpu_worker.py", line 200, in load_model\n'
    '(WorkerDict pid=7)   File "/x/vllm/model_executor/layers/linear.py", line 200, in create_weights\n'
    f"(WorkerDict pid=7) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 540.00 MiB. {CARD}"
    "Of the allocated memory 78.00 GiB is allocated by PyTorch, and 30.00 MiB is reserved by PyTorch but unallocated.\n"
)
LOGITS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.53 GiB. GPU 0 has a total capacity of 15.8 GiB."
)


def test_a_log_that_counts_no_cards_does_not_forbid_more_of_them_to_an_engine(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(ENGINE)
    state = open_session(SessionRequest(logs=(tmp_path / "train.log",)))
    assert state.plan.steps[0].id == "higher-rollout-tp"


def test_no_length_above_the_model_s_context_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOGITS)
    (tmp_path / "run.sh").write_text(
        "trl sft --model_name_or_path gpt2-xl --max_length 8192 --per_device_train_batch_size 8 --output_dir o\n"
    )
    state = open_session(SessionRequest(tmp_path / "run.sh", logs=(tmp_path / "train.log",)))
    step = next(step for step in state.plan.steps if step.id == "shorten-sequences")
    assert {int(change.new or 0) for change in step.changes} <= {1024, 512, 256}


def test_where_nothing_is_counted_the_share_falls_by_what_the_log_shows_to_be_missing(tmp_path: Path) -> None:
    update = '(WorkerDict pid=7)   File "/x/verl/workers/actor/dp_actor.py", line 430, in update_policy\n'
    for tried, most in (("2.50", 0.45), ("18.50", 0.28), ("60.00", 0.2)):
        (tmp_path / "train.log").write_text(
            f"verl.trainer.main_ppo\n{update}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} "
            "GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free. Process 7 has 77.0 GiB in use.\n"
        )
        state = open_session(SessionRequest(logs=(tmp_path / "train.log",)))
        step = next(step for step in state.plan.steps if step.id == "lower-rollout-share")
        assert 0.2 <= float(step.changes[0].new or 0) <= most, tried


def test_states_that_fill_a_card_are_shared_out_or_made_smaller_before_the_batch(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        '  File "/x/transformers/trainer.py", line 1900, in training_step\n'
        '  File "/x/torch/_tensor.py", line 500, in backward\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 86.00 MiB. GPU 0 has a total capacity of "
        "79.15 GiB of which 41.25 MiB is free. Process 5 has 79.1 GiB memory in use. Of the allocated memory 76.51 GiB "
        "is allocated by PyTorch\n"
    )
    keys = "--model_name_or_path meta-llama/Llama-2-7b-hf --per_device_train_batch_size 4 --bf16 True"
    led = []
    for starter in ("torchrun --nproc_per_node 4", "python"):
        words = f"{starter} train.py {keys} --gradient_checkpointing True --num_train_epochs 1 --output_dir o\n"
        (tmp_path / "run.sh").write_text(words)
        state = open_session(SessionRequest(tmp_path / "run.sh", logs=(tmp_path / "train.log",)))
        led.append([step.id for step in state.plan.steps][:2])
    assert led[0][0] == "higher-zero-stage"
    assert led[1] == ["cpu-optimizer", "lora"]  # what leaves the results alone first


def test_weights_that_are_more_than_the_cards_are_the_cause_and_no_batch_is_cut(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("[rank0]: RuntimeError: CUDA error: out of memory\n")
    logs, rows, pass_steps = (tmp_path / "train.log",), {}, {"lower-actor-micro-batch", "shorten-sequences"}
    for gpus, model, framework in (
        ("4xRTX-3090-24GB", "Llama-2-70b", "axolotl"),
        ("1xT4-16GB", "Qwen2.5-14B", "other"),
        ("4xA100-80GB", "Qwen2.5-14B", "axolotl"),
        ("1xT4-16GB", "Qwen2.5-14B-Instruct-AWQ", "other"),
    ):
        state = open_session(SessionRequest(logs=logs, gpus=gpus, model=model, answers={"framework": framework}))
        steps = [step.id for step in state.plan.steps]
        rows[gpus, model] = "qlora" in steps[:2] and not pass_steps & {*steps[:3]}
    assert list(rows.values()) == [True, True, False, False], rows
