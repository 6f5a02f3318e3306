"""Names of scripts and configs that were not found are hints: method, model, adapters and cards, told as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.knowledge import load_knowledge
from advisor.run.model_read import model_in_words
from advisor.run.shape import is_name
from advisor.script.pasted import words_in
from advisor.session import SessionRequest, open_session
from advisor.state import State


def opened(folder: Path, text: str, framework: str = "other") -> State:
    (folder / "run.sh").write_text(text + "\n")
    answers = {"memory": "gpu", "framework": framework, "phase": "actor_update"}
    return open_session(SessionRequest(folder / "run.sh", gpus="8xA100-80GB", answers=answers))


@pytest.mark.parametrize(
    ("text", "method", "model", "adapters"),
    [
        ("bash ~/Own/examples/run_all.sh robot_ppo_openvla", "ppo", None, False),
        ("sh scripts/qwen2_5_7b_instruct_dpo_lora.sh", "dpo", "Qwen2.5-7B", True),
        ("cd x && bash $HOME/train/internvl2_8b_2nd_finetune_qlora.sh 4", "sft", "InternVL2.5-8B", True),
        ("./grpo/start.sh configs/llama3-8b-grpo.yaml", "grpo", "Llama-3.1-8B", False),
    ],
)
def test_a_script_that_was_not_found_hints_by_its_name_and_words(
    tmp_path: Path, text: str, method: str, model: str | None, adapters: bool
) -> None:
    run = opened(tmp_path, text).run
    assert run.algorithm == method
    assert (None if run.model is None else run.model.name) == model
    assert run.trains_adapters is adapters
    (told,) = run.told_first
    assert "By its name and words alone:" in told
    assert run.no_launch
    assert run.missing_files


def test_a_bare_word_may_name_the_config(tmp_path: Path) -> None:
    (told,) = opened(tmp_path, "bash run.sh.missing.sh my_config_a").run.told_first
    assert told == "my_config_a may name its config: give that file, too."


def test_variables_of_ones_own_count_for_a_script_that_was_not_found(tmp_path: Path) -> None:
    run = opened(tmp_path, "GPUS=2 PER_DEVICE_BATCH_SIZE=3 sh shell/finetune_8b.sh", "transformers").run
    assert run.topology.actor_gpus == 2
    assert {setting.key: setting.text for setting in run.settings} == {"gpus": "2", "per_device_batch_size": "3"}
    assert not run.seen_whole


def test_variables_reach_a_script_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text(
        "GPUS=${GPUS:-8}\ntorchrun --nproc_per_node=$GPUS t.py --output_dir o --per_device_train_batch_size 1 "
        "--num_train_epochs 1\n"
    )
    run = opened(tmp_path, "GPUS=1 sh x.sh", "transformers").run
    assert run.topology.actor_gpus == 1
    assert not any("alone" in told for told in run.told_first)


def test_the_name_of_a_config_that_was_not_found_is_a_hint(tmp_path: Path) -> None:
    state = opened(tmp_path, "llamafactory-cli train examples/mine/qwen2.5_7b_lora_dpo.yaml", "llamafactory")
    assert (state.run.algorithm, state.run.trains_adapters) == ("dpo", True)
    assert "lora" not in [step.id for step in state.plan.steps]


def test_what_a_launch_says_counts_before_a_name(tmp_path: Path) -> None:
    command = "llamafactory-cli train mine_lora_dpo.yaml --stage sft --finetuning_type full"
    run = opened(tmp_path, command, "llamafactory").run
    assert (run.algorithm, run.trains_adapters) == ("sft", False)


def test_a_script_with_a_launch_needs_no_hints(tmp_path: Path) -> None:
    run = opened(
        tmp_path, "bash install_dpo_lora.sh\nswift sft --model Qwen/Qwen2.5-7B --train_type full", "ms-swift"
    ).run
    assert (run.algorithm, run.trains_adapters, run.told_first) == ("sft", False, ())


def test_words_name_a_model_in_parts_and_no_sentence_is_a_name() -> None:
    models = load_knowledge().models
    named = {
        "7B llama full fine-tune": "llama-7B",
        "We train Llama 3.1 8B with LoRA": "Llama-3.1-8B",
        "1.929B full fine-tune": "1.929B",
        "LLaMA-2-13B beside Llama-2-7B": "",
    }
    for text, model in named.items():
        assert model_in_words(words_in(text.encode()), models) == model, text
    for text in ("7B llama", "Mixtral 8x7B with QLoRA", "llama 3.1 8b instruct", "out/x"):
        assert is_name(text, models), text
    for text in ("It will oom (memory not cuda memory) and killed by system", "训练Baichuan2-7B-Base报OOM异常"):
        assert not is_name(text, models), text
