"""A process that sees several cards and has no others beside it lays its layers over them (device_map)."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from tests.loops import each

from .launches import estimate

SFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora --torch_dtype bfloat16 --max_length 2048"
BOX = "4xA100-80GB"


@each(
    ("variables", "options", "ways"),
    [
        ("CUDA_VISIBLE_DEVICES=0 ", "", 1),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 ", "", 4),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=2 ", "", 2),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 ", "", 1),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 ", " --deepspeed zero2", 1),
    ],
)
def test_weights_are_divided_by_the_cards_of_a_process_and_logits_are_not(
    variables: str, options: str, ways: int
) -> None:
    found = estimate(variables + SFT + options + "\n", BOX)
    assert found.of("weights") == pytest.approx(14.26 / ways, rel=0.02)
    assert found.of("logits") == pytest.approx(12 * 152064 * 0.55 * 2048 / 2**30, rel=0.02)


SCRIPT = """\
from transformers import AutoModelForCausalLM
from trl import SFTConfig, SFTTrainer
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct", {keywords})
trainer = SFTTrainer(model=model, args=SFTConfig(output_dir="out", max_length=2048), train_dataset=data)
trainer.train()
"""


@pytest.mark.parametrize(
    ("keywords", "gib"),
    [
        ('device_map="auto"', 4 * 7.616e9 / 2**30 / 4),  # float32, as from_pretrained loads it, over four cards
        ('device_map={"": 0}', 2 * 7.616e9 / 2**30),  # as without it: DeepSpeed is assumed, in bfloat16
        ("", 2 * 7.616e9 / 2**30),
    ],
)
def test_a_python_file_that_lays_its_model_over_the_cards_is_one_process(keywords: str, gib: float) -> None:
    found = estimate(SCRIPT.format(keywords=keywords), BOX, name="train.py")
    assert found.of("weights", "model_load") == pytest.approx(gib, rel=0.05)


def test_states_that_are_laid_over_cards_go_to_no_host_ram(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(keywords='device_map="auto"'))
    answers = {"memory": "gpu", "phase": "optimizer_step"}
    state = open_session(SessionRequest(tmp_path / "train.py", gpus=BOX, answers=answers))
    offered = {step.id for step in state.plan.steps}
    assert "process-per-card" in offered
    assert not offered & {"cpu-optimizer", "full-cpu-offload"}
