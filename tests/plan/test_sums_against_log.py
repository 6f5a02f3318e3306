"""What the sizes of a crash decide: which pass it was, whose process lies beside it, what the launch leaves open."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=256 "
    "data.max_prompt_length=1024 data.max_response_length=2048 actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct "
    "actor_rollout_ref.model.enable_gradient_checkpointing=True actor_rollout_ref.model.use_remove_padding=True "
    "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 "
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=16 actor_rollout_ref.rollout.name=sglang "
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.3 actor_rollout_ref.rollout.n=8 trainer.n_gpus_per_node=8\n"
)
SFT = (
    "deepspeed --num_gpus 8 src/train.py --stage sft --do_train --model_name_or_path Qwen/Qwen2.5-32B-Instruct "
    "--finetuning_type full --dataset x --template qwen --cutoff_len 4096 --per_device_train_batch_size 1 "
    "--gradient_accumulation_steps 8 --bf16 --output_dir o {more}\n"
)
STEPS = (
    "{'loss': 1.23, 'grad_norm': 2.1, 'learning_rate': 1e-05, 'epoch': 0.01}\n"
    "  1%|          | 5/500 [02:10<3:20:11, 24.2s/it]\n"
)


def died(folder: Path, launch: str, tried: str, free: float, beside: str = "", before: str = "") -> State:
    """A launch on eight A100 that asked for `tried`, with `free` GiB left; `beside`: other processes of the card."""
    (folder / "run.sh").write_text(launch)
    own = f"Process 7 has {79.15 - free - (float(beside.split()[3]) if beside else 0):.2f} GiB memory in use. "
    line = (
        f"{before}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of "
        f"79.15 GiB of which {free} GiB is free. {beside}{own}Of the allocated memory 44.11 GiB is allocated by "
        "PyTorch, and 2.00 GiB is reserved by PyTorch but unallocated.\n"
    )
    (folder / "train.log").write_text(line)
    asked = SessionRequest(folder / "run.sh", logs=(folder / "train.log",), gpus="8xA100-80GB")
    return open_session(asked)


def test_a_size_that_one_pass_makes_names_it_and_its_rows_lead(tmp_path: Path) -> None:
    state = died(tmp_path, VERL, "27.84 GiB", 20.35)  # 16 rows x 3072 tokens x 152064 words x 4 bytes
    assert (state.crash.phase, state.diagnosis.cause) == ("log_prob", "logits-too-big")
    first = state.plan.steps[0]
    assert (first.id, first.selected) == ("lower-logprob-micro-batch", True)
    assert not state.ledger.doubts  # what is beyond the sums are more copies of it


def test_a_size_that_no_pass_makes_names_none(tmp_path: Path) -> None:
    assert died(tmp_path, VERL, "27.80 GiB", 20.35).crash.phase == "unknown"


def test_attention_that_is_not_fused_is_told_by_heads_and_length(tmp_path: Path) -> None:
    state = died(tmp_path, SFT.format(more="--flash_attn disabled"), "1.25 GiB", 1.2)  # 40 x 4096 x 4096 x 2 bytes
    assert state.diagnosis.title.startswith("No room for attention scores")
    assert "flash-attention" in [step.id for step in state.plan.steps][:2]


def test_the_engine_of_a_colocated_run_is_no_stranger(tmp_path: Path) -> None:
    update = 'File "/v/verl/workers/actor/dp_actor.py", line 5, in update_policy\n    loss.backward()\n'
    state = died(tmp_path, VERL, "3.10 GiB", 1.35, "Process 9 has 23.73 GiB memory in use. ", update)
    assert state.diagnosis.cause == "engine-beside-trainer"
    assert "as much as the engine's share" in state.run.knobs["rollout.sleeps"].note  # 0.3 of the card
    assert "clear-leftovers" not in [step.id for step in state.plan.steps]


def test_beside_a_size_that_names_its_pass_the_engine_is_a_remark(tmp_path: Path) -> None:
    state = died(tmp_path, VERL, "27.84 GiB", 8.35, "Process 9 has 23.73 GiB memory in use. ")
    assert state.diagnosis.cause == "logits-too-big"
    assert any("no stranger" in remark for remark in state.diagnosis.remarks)


@pytest.mark.parametrize(("before", "taken"), [(STEPS, "zero3"), ("", "")])
def test_a_stage_that_nobody_says_is_taken_as_the_log_fits_it(tmp_path: Path, before: str, taken: str) -> None:
    state = died(tmp_path, SFT.format(more="--deepspeed ds_config.json"), "2.32 GiB", 1.21, before=before)
    assert state.run.unread is not None
    assert state.run.unread.choice == taken
    assert any("ZeRO stage 3" in doubt for doubt in state.ledger.doubts) is bool(taken)


def test_results_are_not_given_up_before_what_frees_enough(tmp_path: Path) -> None:
    state = died(tmp_path, SFT.format(more="--deepspeed ds_config.json"), "2.32 GiB", 1.21, before=STEPS)
    steps = [step.id for step in state.plan.steps]
    assert steps.index("cpu-optimizer") < steps.index("shorten-sequences")


def test_an_engine_that_is_awake_is_among_what_other_processes_hold(tmp_path: Path) -> None:
    scored = 'File "/v/verl-0.7/verl/workers/actor/dp_actor.py", line 5, in compute_log_prob\n    logits - logits_max\n'
    launch = VERL.replace("utilization=0.3", "utilization=0.6")  # 47 GiB of the card, of which others hold 7
    state = died(tmp_path, launch, "23.93 GiB", 5.35, "Process 9 has 7.41 GiB memory in use. ", scored)
    assert state.run.value("rollout.sleeps") is not False
    assert state.diagnosis.cause != "engine-beside-trainer"
