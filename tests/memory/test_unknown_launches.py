"""Where nothing says how a launch holds memory, none is counted, and nothing is ruled out by what was not counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.stories.told import tell

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB "
    "of which 1.00 GiB is free. Process 1 has 78.00 GiB memory in use.\n"
)


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """(log, words) → the text report of a log alone."""
    monkeypatch.chdir(tmp_path)

    def run(log: str, *words: str) -> str:
        Path("train.log").write_text(log)
        _, out, _ = tell(["diagnose", "--log", "train.log", *words], capsys)
        return " ".join(out.split())

    return run


def test_a_launch_of_no_dialect_has_no_ledger_and_no_shortfall(text) -> None:  # type: ignore[no-untyped-def]
    out = text(OOM, "--gpus", "8xA100-80GB", "--model", "Qwen2.5-7B")
    assert "too much on each card" not in out
    assert "the count of" not in out
    assert "generating rollouts 7" not in out


def test_gpus_that_were_given_are_not_said_to_be_unknown(text) -> None:  # type: ignore[no-untyped-def]
    out = text(f"(ActorModelRayActor pid=5) {OOM}", "--gpus", "8xA100-80GB", "--answer", "framework=openrlhf")
    assert "the number of GPUs (--gpus 8xA100-80GB)" not in out


def test_the_ram_of_a_box_without_gpus_is_not_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.sh").write_text("python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B\n")
    _, out, _ = tell(["diagnose", "run.sh", "--format", "json"], capsys)
    assert json.loads(out)["machine"]["host"]["total_bytes"] is None
