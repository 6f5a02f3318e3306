"""A Python script that calls a trainer of TRL: method, model, adapter and quantisation are the run's."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.machine.inventory import Machine
from advisor.run.build import RunInputs, build_run
from advisor.run.dialect import recognise
from advisor.run.run import Run
from advisor.script.reader import read_script

KNOWN = load_knowledge()


def run_of(path: Path, text: str) -> Run:
    path.write_text("from trl import *\n" + text)
    (launch,) = read_script(path).launches
    found = recognise(launch, path.read_text(), (), {}, {}, KNOWN.frameworks)
    return build_run(RunInputs(found, launch, Machine(), KNOWN.models)).run


@pytest.mark.parametrize(
    ("trainer", "method", "reference"),
    [
        ("GRPO", "grpo", False), ("DPO", "dpo", True), ("KTO", "kto", True), ("ORPO", "orpo", False),
        ("SFT", "sft", False),
        ("PPO", "ppo", True), ("RLOO", "rloo", True), ("Reward", "rm", False), ("GKD", "gkd", False),
    ],
)  # fmt: skip
def test_the_trainers_class_is_the_method(tmp_path: Path, trainer: str, method: str, reference: bool) -> None:
    text = f'{trainer}Trainer(model="Qwen/Qwen2.5-7B", args={trainer}Config(output_dir="o"))\n'
    run = run_of(tmp_path / "train.py", text)
    assert (run.framework, run.algorithm, run.model_name) == ("trl", method, "Qwen/Qwen2.5-7B")
    assert run.is_on("reference.present") is reference


def test_an_adapter_given_to_the_trainer_is_no_full_finetuning(tmp_path: Path) -> None:
    for rank, said in (("r=32, ", 32), ("", 8)):
        text = f"GRPOTrainer(args=GRPOConfig(a=1), peft_config=LoraConfig({rank}target_modules=['q_proj', 'k_proj']))\n"
        run = run_of(tmp_path / "train.py", text)
        assert run.knobs["actor.full_finetuning"].value is False
        assert run.knobs["actor.lora_rank"].value == said
        assert run.knobs["actor.lora_targets"].value == "q_proj k_proj"
    assert run_of(tmp_path / "t.py", "GRPOTrainer(args=GRPOConfig(a=1))\n").knobs["actor.full_finetuning"].value is True


@pytest.mark.parametrize(("word", "bits"), [("load_in_4bit", 4), ("load_in_8bit", 8)])
def test_a_quantised_base_has_its_bits(tmp_path: Path, word: str, bits: int) -> None:
    for where in (f"quantization_config=BitsAndBytesConfig({word}=True)", f"{word}=True"):
        text = f'm = AutoModelForCausalLM.from_pretrained("x/Y-7B", {where})\nSFTTrainer(m, SFTConfig(a=1))\n'
        run = run_of(tmp_path / "train.py", text)
        assert (run.knobs["actor.quantized_bits"].value, run.model_name) == (bits, "x/Y-7B")


def test_a_trainer_of_ones_own_is_known_by_the_end_of_its_name(tmp_path: Path) -> None:
    run = run_of(tmp_path / "train.py", 'VisionGRPOTrainer(model="x/Y-7B", args=GRPOConfig(a=1))\n')
    assert (run.framework, run.algorithm) == ("trl", "grpo")
