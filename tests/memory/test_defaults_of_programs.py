"""A default belongs to a program: OpenRLHF's trainers on given answers have a batch and a length of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from advisor.units import GIB
from tests.loops import each

from .launches import Estimate, estimate

RUN = "deepspeed --num_gpus 8 --module openrlhf.cli.train_{program} --pretrain Qwen/Qwen2.5-7B --zero_stage 3 {more}\n"


def launch(program: str, more: str = "") -> Estimate:
    return estimate(RUN.format(program=program, more=more), "8xA100-80GB")


@each(
    ("program", "rows", "length"),
    [("sft", 8, 2048), ("dpo", 8, 512), ("rm", 1, 512), ("kto", 8, 2048), ("kd", 8, 2048), ("prm", 1, 2048)],
)
def test_what_is_left_out_is_as_that_program_has_it(program: str, rows: int, length: int) -> None:
    said = launch(program, f"--micro_train_batch_size {rows} --max_len {length}")
    left_out = launch(program).gib()
    assert left_out == pytest.approx(said.gib(), rel=0.001)
    assert launch(program, "--micro_train_batch_size 16").gib() > left_out


def test_rows_of_megatron_swift_are_padded_where_it_is_told_so() -> None:
    run = "megatron rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B-Instruct --tensor_model_parallel_size 4 "
    run += "--max_length 8192 --micro_batch_size 4 {more}\n"
    free, padded = (estimate(run.format(more=more), "4xH100-80GB").gib() for more in ("", "--padding_free false"))
    assert padded > 1.2 * free


def test_fsdp_of_accelerates_file_shards_ms_swifts_weights(tmp_path: Path) -> None:
    (tmp_path / "fsdp2.json").write_text('{"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 2}}')
    script = tmp_path / "run.sh"
    script.write_text(
        "NPROC_PER_NODE=8 accelerate launch --config_file ./fsdp2.json swift/cli/sft.py --tuner_type lora "
        "--model Qwen/Qwen2.5-7B-Instruct --torch_dtype bfloat16\n"
    )
    ledger = open_session(SessionRequest(script=script, gpus="8xA100-80GB")).ledger
    phase = ledger.phase("gpu", "actor_update") if ledger is not None else None
    assert phase is not None
    assert phase.of("weights") < 2.5 * GIB  # 15.2 GB over 8 cards
