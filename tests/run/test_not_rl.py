"""Programs of RL frameworks that train on given answers have no engine, no rollouts and no settings of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.told import tell

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9.27 GiB. GPU 0 has a total capacity of 79.11 GiB "
    "of which 5.10 GiB is free.\n"
)
SWIFT = f"""\
Traceback (most recent call last):
  File "/opt/ms-swift/swift/cli/sft.py", line 10, in <module>
    sft_main()
  File "/opt/ms-swift/swift/llm/train/sft.py", line 200, in train
    trainer.train(trainer.args.resume_from_checkpoint)
{OOM}"""
MODEL = "--pretrain Qwen/Qwen2.5-7B --zero_stage 3 --max_len 2048"
SCRIPTS = {
    "OpenRLHF · SFT": f"deepspeed --module openrlhf.cli.train_sft {MODEL}",
    "OpenRLHF · DPO": f"deepspeed --module openrlhf.cli.train_dpo {MODEL}",
    "OpenRLHF · RM": f"deepspeed --module openrlhf.cli.train_rm {MODEL}",
    "ms-swift · KTO": "swift rlhf --rlhf_type kto --model Qwen/Qwen2.5-7B --deepspeed zero3",
    "ms-swift · SFT": "swift sft --model Qwen/Qwen2.5-7B --deepspeed zero3",
    "NeMo-RL · SFT": "uv run examples/run_sft.py policy.model_name=Qwen/Qwen2.5-7B cluster.gpus_per_node=8",
    "NeMo-RL · DPO": "uv run examples/run_dpo.py policy.model_name=Qwen/Qwen2.5-7B cluster.gpus_per_node=8",
}


@pytest.fixture
def diagnosed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """(file, text) → the text report of it alone."""
    monkeypatch.chdir(tmp_path)

    def run(file: str, text: str) -> str:
        Path(file).write_text(text + "\n")
        given = ["--log", file] if file.endswith(".log") else [file]
        words = ["--gpus", "8xA100-80GB", "--model", "Qwen2.5-7B", "--answer", "memory=gpu"]
        _, out, _ = tell(["diagnose", *given, *words], capsys)
        return " ".join(out.split())

    return run


def test_the_program_in_a_traceback_tells_that_nothing_is_rolled_out(diagnosed) -> None:  # type: ignore[no-untyped-def]
    out = diagnosed("train.log", SWIFT)
    assert "ms-swift · SFT" in out
    assert "rollout engine" not in out.split("Not proposed")[0]
    assert "generating rollouts" not in out


@pytest.mark.parametrize("title", SCRIPTS)
def test_a_program_that_trains_on_given_answers_is_no_rl(title: str, diagnosed) -> None:  # type: ignore[no-untyped-def]
    out = diagnosed("run.sh", SCRIPTS[title])
    assert title in out
    for word in ("rollout engine", "generating rollouts", "gpu_memory_utilization"):
        assert word not in out.split("Not proposed")[0]
