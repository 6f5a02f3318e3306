"""A size that is that of attention scores alone leads to attention that never holds them."""

from __future__ import annotations

from pathlib import Path

from advisor.session import SessionRequest, open_session

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB. GPU 0 has a total capacity of 79 GiB\n"


def first_steps(folder: Path, size: str) -> list[str]:
    log = folder / "train.log"
    log.write_text(OOM.format(size=size))
    state = open_session(SessionRequest(logs=(log,), gpus="4xA100-80GB", model="Qwen2.5-7B-Instruct"))
    return [step.id for step in state.plan.steps[:4]]


def test_scores_of_all_heads_lead_to_fused_attention(tmp_path: Path) -> None:
    assert "flash-attention" in first_steps(tmp_path, "1.75")  # 28 heads x 4096 x 4096 x 4 bytes


def test_any_other_size_does_not(tmp_path: Path) -> None:
    assert "flash-attention" not in first_steps(tmp_path, "1.77")
