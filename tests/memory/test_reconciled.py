"""The ledger and the crash agree, or it is said that they do not: on the GPU as on the host, by log or by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.told import tell_both

SWIFT = (
    "NPROC_PER_NODE=8 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-1.5B-Instruct --use_vllm true --vllm_mode "
    "colocate --vllm_gpu_memory_utilization 0.3 --max_length 1024 --max_completion_length 512 "
    "--per_device_train_batch_size 2 --gradient_accumulation_steps 4 --num_generations 8 --deepspeed zero3 "
    "--torch_dtype bfloat16\n"
)
TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of 79.11 "
    "GiB of which {free} GiB is free. Process 9 has {used} GiB memory in use. Of the allocated memory {used} GiB is "
    "allocated by PyTorch, and 0.10 GiB is reserved by PyTorch but unallocated.\n"
)
IN_UPDATE = '  File "/w/verl/verl/workers/actor/dp_actor.py", line 301, in update_policy\n    loss.backward()\n'
IN_BACKWARD = IN_UPDATE + (
    '  File "/p/torch/_tensor.py", line 581, in backward\n    torch.autograd.backward(\n'
    '  File "/p/torch/autograd/graph.py", line 825, in _engine_run_backward\n    return Variable._execution_engine\n'
)
VERL = (
    "python3 -m verl.trainer.main_ppo data.train_batch_size=64 data.max_prompt_length=1024 "
    "data.max_response_length=3072 actor_rollout_ref.model.path=Qwen/Qwen2.5-32B-Instruct "
    "actor_rollout_ref.actor.ppo_mini_batch_size=64 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 "
    "actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=4 trainer.n_gpus_per_node=8 trainer.nnodes=1\n"
)
CARDS = ("--gpus", "8xA100-80GB", "--host-ram", "2000GB")


@pytest.fixture
def diagnosed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """(script, log, words) → the diagnosis as JSON, and as text."""
    monkeypatch.chdir(tmp_path)

    def run(script: str, log: str, *words: str) -> tuple[dict, str]:  # type: ignore[type-arg]
        given = []
        for name, text in (("run.sh", script), ("train.log", log)):
            if text:
                Path(name).write_text(text)
                given += ["--log", name] if name == "train.log" else [name]
        told, text, _ = tell_both(["diagnose", *given, *words], capsys)
        return told, " ".join(text.split())

    return run


def test_what_only_the_user_says_ran_out_is_held_against_the_ledger(diagnosed) -> None:  # type: ignore[no-untyped-def]
    said = ("--answer", "memory=gpu", "--answer", "phase=actor_update")
    told, text = diagnosed(SWIFT, "", *CARDS, *said)
    assert told["outcome"]["fits"] is None
    assert told["outcome"]["fit"]["reason"] == "unexplained"
    assert "are explained by no setting" in text
    assert "expected to fit" not in text
    assert "What holds most of the card in that phase? The rollout engine" not in text


def test_a_message_whose_sum_the_settings_explain_promises_as_before(diagnosed) -> None:  # type: ignore[no-untyped-def]
    log = "step 3 done\n" + TORCH.format(tried="1.00", free="0.50", used="78.10")
    told, _ = diagnosed(VERL, IN_UPDATE + log, *CARDS)
    assert told["outcome"]["fit"]["reason"] != "unexplained"


def test_a_message_far_above_the_settings_is_never_answered_by_a_promise(diagnosed) -> None:  # type: ignore[no-untyped-def]
    small = VERL.replace("32B", "0.5B").replace("per_gpu=4", "per_gpu=1")
    told, text = diagnosed(small, IN_UPDATE + TORCH.format(tried="4.00", free="1.00", used="78.00"), *CARDS)
    assert told["outcome"]["fits"] is None
    assert "expected to fit" not in text


def test_a_backward_pass_that_held_half_of_the_prediction_scales_it_down(diagnosed) -> None:  # type: ignore[no-untyped-def]
    log = TORCH.format(tried="9.00", free="5.10", used="74.00")
    told, text = diagnosed(VERL.replace("per_gpu=4", "per_gpu=16"), IN_BACKWARD + log, *CARDS)
    update = next(p for p in told["memory"]["gpu"]["phases"] if p["phase"] == "actor_update")
    assert update["expected_bytes"] == pytest.approx(83.01 * 2**30, rel=0.01)
    assert "something is counted too large" in text


def test_a_forward_pass_that_failed_on_its_way_says_nothing_against_a_larger_prediction(diagnosed) -> None:  # type: ignore[no-untyped-def]
    log = TORCH.format(tried="9.00", free="5.10", used="74.00")
    _, text = diagnosed(VERL.replace("per_gpu=4", "per_gpu=16"), IN_UPDATE + log, *CARDS)
    assert "something is counted too large" not in text


def test_a_ledger_of_defaults_alone_is_no_verdict(diagnosed) -> None:  # type: ignore[no-untyped-def]
    log = IN_UPDATE + TORCH.format(tried="9.00", free="5.10", used="74.00")
    told, text = diagnosed("", log, "--gpus", "8xA100-80GB", "--model", "Qwen2.5-32B")
    assert told["outcome"]["fits"] is None
    assert told["outcome"]["fit"]["reason"] == "launch"
    assert "too much on each card" not in text


def test_the_engines_share_of_a_log_without_a_launch_is_the_frameworks_and_said(diagnosed) -> None:  # type: ignore[no-untyped-def]
    log = IN_UPDATE + TORCH.format(tried="9.00", free="5.10", used="74.00")
    _, text = diagnosed("", log, "--gpus", "8xA100-80GB", "--model", "Qwen2.5-7B")
    assert "rollout.memory_share = 0.5" in text


def test_a_fit_beside_a_side_of_unknown_size_that_nothing_moves_to_is_one(diagnosed) -> None:  # type: ignore[no-untyped-def]
    small = VERL.replace("32B", "7B").replace("per_gpu=4", "per_gpu=16")
    log = IN_UPDATE + TORCH.format(tried="9.00", free="1.00", used="78.00")
    told, text = diagnosed(small, log, "--gpus", "8xA100-80GB")
    assert told["outcome"]["fits"] is None
    assert "With these the cards may suffice." in text  # how long the rows are decides


def test_phases_after_the_crash_and_runs_without_a_log_were_not_lived_with(diagnosed) -> None:  # type: ignore[no-untyped-def]
    offloaded = VERL.strip() + " actor_rollout_ref.actor.fsdp_config.optimizer_offload=True\n"
    said = ("--answer", "memory=gpu")
    told, _ = diagnosed(offloaded, "", "--gpus", "8xA100-80GB", "--host-ram", "64GB", *said)
    assert told["outcome"]["fits"] is False
    assert told["outcome"]["fit"]["lived_through"] == []
