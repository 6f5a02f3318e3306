"""The short report says a thing once, and proposes nothing of another backend."""

from __future__ import annotations

from pathlib import Path

from advisor.report.short_report import short_report
from advisor.request import SessionRequest
from advisor.session import State, open_session

TIMEOUT = (
    "step:41 - actor/pg_loss:0.002\n"
    "[rank5]:[E515 07:11:22.119 ProcessGroupNCCL.cpp:629] [Rank 5] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=88121, OpType=_ALLGATHER_BASE, NumelIn=102400, NumelOut=819200, Timeout(ms)=600000) ran for "
    "600021 milliseconds before timing out.\n"
)
KILLED = (
    "Loading checkpoint shards:  35%|x| 6/17 [00:40<01:11,  6.5s/it]\n"
    "E0602 10:02:46.001000 991 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
    "local_rank: 1 (pid: 1022) of binary: /opt/conda/bin/python\n"
)
BY_SLURM = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=992.0. Some of the step tasks have been OOM Killed.\n"
)
SFT = (
    "torchrun --nproc_per_node 4 sft.py --model_name_or_path Qwen/Qwen2.5-32B --dataset_name tatsu-lab/alpaca "
    "--per_device_train_batch_size 2 --deepspeed ds_z3_offload.json --bf16 --output_dir out\n"
)


def opened(folder: Path, log: str, script: str = "") -> State:
    (folder / "a.log").write_text(log)
    (folder / "run.sh").write_text(script)
    asked = SessionRequest(logs=(folder / "a.log",), gpus="4xA100-80GB")
    return open_session(SessionRequest(folder / "run.sh", asked.logs, gpus=asked.gpus) if script else asked)


def flat(state: State) -> str:
    return " ".join(short_report(state).split())


def test_what_is_no_shortage_is_said_in_one_place(tmp_path: Path) -> None:
    report = flat(opened(tmp_path, TIMEOUT))
    assert report.count("This is not a shortage of memory") == 1
    assert "The other ranks waited" in report


def test_how_to_settle_a_kill_is_told_where_it_is_asked(tmp_path: Path) -> None:
    report = flat(opened(tmp_path, KILLED, SFT))
    assert report.count("killed process'") == 1
    assert "To settle it" not in report


def test_a_launch_with_deepspeed_is_offered_no_switch_of_fsdp(tmp_path: Path) -> None:
    report = flat(opened(tmp_path, KILLED + BY_SLURM, SFT))
    assert "Host RAM ran out" in report
    assert "fsdp_config" not in report
