"""A request for much of a card in a pass is logits, where nobody knows the model: their steps stand behind the pass."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, State, open_session

ASKED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB. GPU 0 has a total capacity of 79.15 GiB "
    "of which 11.20 GiB is free. Of the allocated memory 60.10 GiB is allocated by PyTorch\n"
)
CHAIN = (
    "MegatronPolicyWorker.train\n"
    "  → LossWrapper.__call__ → prepare_loss\n"
    "  → from_parallel_logits_to_logprobs   (model_utils.py:1012, un-chunked branch)\n"
    "  → DistributedLogprob.forward → _compute_distributed_log_softmax (model_utils.py:59)\n"
)


def opened(folder: Path, log: str, **answers: str) -> State:
    (folder / "run.log").write_text(log)
    return open_session(SessionRequest(logs=(folder / "run.log",), answers=answers))


def first(state: State) -> list[str]:
    return [step.id for step in state.plan.steps[:3]]


def test_a_large_request_after_steps_is_logits_and_a_small_one_or_one_at_the_start_is_not(tmp_path: Path) -> None:
    large = opened(tmp_path, ASKED.format(size="24.50"), first_step="no")
    assert large.diagnosis.cause == "logits-too-big"
    assert first(large)[:2] == ["lower-actor-micro-batch", "fused-loss"]
    assert opened(tmp_path, ASKED.format(size="2.50"), first_step="no").diagnosis.cause == "long-sequence"
    assert opened(tmp_path, ASKED.format(size="24.50")).diagnosis.cause != "logits-too-big"


def test_a_chain_of_calls_names_holder_and_backend(tmp_path: Path) -> None:
    state = opened(tmp_path, CHAIN + ASKED.format(size="12.60"), framework="nemo-rl")
    assert state.diagnosis.cause == "logits-too-big"
    keys = {change.key for step in state.plan.steps for change in step.changes}
    assert any("megatron_cfg" in key for key in keys)
    assert not any("dtensor_cfg" in key for key in keys)
