"""A page on which somebody tells of a run, with or without the message pasted below, is read as log and launch."""

from __future__ import annotations

from pathlib import Path

from advisor.commands.inputs import is_log
from advisor.session import SessionRequest, State, open_session

CHINESE = (
    "我用verl跑GRPO，模型是Qwen2.5-32B-Instruct，8张A100 80G，rollout.gpu_memory_utilization设为0.8，\n"
    "ppo_micro_batch_size_per_gpu为4。"
    "第一步actor更新的时候爆显存了，把micro batch调小到1还是不行。\n"
)
HOST = (
    "We're running OpenRLHF PPO with Llama-3-8B on 2 nodes. Ray kills the worker because node memory is over 95%.\n"
    "RAM grows slowly with every step.\n"
)
WITH_A_MESSAGE = (
    "TRL SFTTrainer on a single RTX 4090, Mistral-7B, LoRA r=16, max_seq_length=4096, batch size 4.\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total capacity of 23.64 GiB "
    "of which 1.01 GiB is free.\n"
)
IN_TURN = (
    "Hi all, I'm fine-tuning Qwen2.5-VL-7B with LLaMA-Factory full SFT on 4x A100 80GB, cutoff_len 16384.\n"
    "After around 300 steps it crashes with CUDA out of memory. I already reduced the batch size to 1, it still OOMs.\n"
)


def opened(folder: Path, text: str) -> State:
    page = folder / "page.txt"
    page.write_text(text, encoding="utf-8")
    assert is_log(page)
    return open_session(SessionRequest(logs=(page,)))


def test_framework_method_model_and_memory_are_those_that_it_names(tmp_path: Path) -> None:
    found = {}
    for name, text in (("zh", CHINESE), ("host", HOST), ("message", WITH_A_MESSAGE), ("turn", IN_TURN)):
        state = opened(tmp_path, text)
        model = state.run.model.name if state.run.model is not None else ""
        found[name] = state.run.framework, state.run.algorithm, model, state.diagnosis.memory
    assert found == {
        "zh": ("verl", "grpo", "Qwen2.5-32B", "gpu"),
        "host": ("openrlhf", "ppo", "Llama-3.1-8B", "host"),
        "message": ("trl", "sft", "Mistral-7B-v0.1", "gpu"),
        "turn": ("llamafactory", "sft", "Qwen2.5-VL-7B", "gpu"),
    }


def test_its_settings_are_changed_and_what_was_in_vain_is_not_asked_for_again(tmp_path: Path) -> None:
    changes = {
        (change.key, change.old, change.new)
        for text in (CHINESE, WITH_A_MESSAGE, IN_TURN)
        for step in opened(tmp_path, text).plan.steps[:4]
        for change in step.changes
    }
    assert ("per_device_train_batch_size", "4", "2") in changes
    assert ("cutoff_len", "16384", "8192") in changes
    assert "ppo_micro_batch_size_per_gpu" not in {key for key, _, _ in changes}


def test_cards_are_counted_by_its_words(tmp_path: Path) -> None:
    cards = opened(tmp_path, IN_TURN).machine.gpus
    assert [card.total_bytes for card in cards] == [cards[0].total_bytes] * 4
    assert cards[0].total_bytes is not None
