"""unsloth: a Python file or a notebook's, whose loader and adapter hold the settings, and what its logs bear."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from tests.plan.planned import Planned, changes

NOTEBOOK = """from unsloth import FastLanguageModel
max_seq_length = 1024
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "unsloth/Qwen2.5-7B-Instruct", max_seq_length = max_seq_length{load})
model = FastLanguageModel.get_peft_model(model, r = 32, target_modules = ["q_proj", "v_proj"])
from trl import {name}Config, {name}Trainer
trainer = {name}Trainer(model = model, args = {name}Config({config}), train_dataset = data)
trainer.train()
if False:
    model, tokenizer = FastLanguageModel.from_pretrained(model_name = "my_lora", max_seq_length = max_seq_length)
"""
TRACEBACK = (
    '  File "/content/unsloth_compiled_cache/UnslothGRPOTrainer.py", line 150, in grpo_accumulated_loss\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.06 GiB. GPU 0 has a total capacity of 14.74 GiB "
    "of which 508.12 MiB is free. Process 1 has 14.24 GiB memory in use. Of the allocated memory 13.21 GiB is "
    "allocated by PyTorch, and 405.92 MiB is reserved by PyTorch but unallocated.\n"
)


def notebook(name: str, config: str = "", load: str = "") -> str:
    return NOTEBOOK.format(name=name, config=config, load=load)


@pytest.mark.parametrize(("name", "method"), [("SFT", "sft"), ("DPO", "dpo"), ("GRPO", "grpo"), ("ORPO", "orpo")])
def test_loader_adapter_and_trainer_are_one_run(name: str, method: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(notebook(name, "per_device_train_batch_size = 2"))
    run = open_session(SessionRequest(tmp_path / "train.py", gpus="4xA100-80GB")).run
    assert (run.framework, run.algorithm) == ("unsloth", method)
    assert run.model is not None
    assert run.model.parameters > 7e9  # not what is loaded again after the training
    knobs = {
        name: run.knobs[name].value for name in ("actor.lora_rank", "actor.quantized_bits", "actor.full_finetuning")
    }
    assert knobs == {"actor.lora_rank": 32, "actor.quantized_bits": 4, "actor.full_finetuning": False}


def test_a_batch_that_holds_no_group_is_raised_to_one(tmp_path: Path) -> None:
    for accumulation, version, held in ((1, "2026.1.3", 6), (6, "2026.1.3", 1), (6, "2025.9.8", 6)):
        config = f"per_device_train_batch_size = 1, gradient_accumulation_steps = {accumulation}, num_generations = 6"
        (tmp_path / "train.py").write_text(notebook("GRPO", config))
        asked = SessionRequest(tmp_path / "train.py", libraries=(f"unsloth=={version}",))
        assert open_session(asked).run.knobs["actor.micro_batch"].value == held


def test_an_engine_in_the_process_gives_its_share_back_under_its_own_keys(planned: Planned) -> None:
    script = notebook("GRPO", "num_generations = 8", ", fast_inference = True, gpu_memory_utilization = 0.9")
    steps = planned(script, TRACEBACK, name="train.py")
    assert changes(steps["lower-rollout-share"])["from_pretrained.gpu_memory_utilization"][0] == "0.9"
    assert changes(steps["engine-sleep"]) == {"UNSLOTH_VLLM_STANDBY": ("0", "1")}
    assert "expandable-segments" not in steps


def test_its_traceback_alone_tells_framework_and_method(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(TRACEBACK)
    run = open_session(SessionRequest(logs=(tmp_path / "x.log",))).run
    assert (run.framework, run.algorithm) == ("unsloth", "grpo")
