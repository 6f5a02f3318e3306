"""A default belongs to a program: OpenRLHF's trainers on given answers have a batch and a length of their own."""

from __future__ import annotations

import pytest

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
    assert launch(program).gib() == pytest.approx(said.gib(), rel=0.001)
    assert launch(program, "--micro_train_batch_size 16").gib() > launch(program).gib()
