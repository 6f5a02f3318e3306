# ruff: noqa: E501  (log lines as they are printed)
"""Class names and banner lines decide the framework, a weak mark does not contradict the user, and cards have their vendor's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

PART = """{trainer}(
    model,
    args=TrainingArguments(output_dir="out", per_device_train_batch_size=16),
    max_length=1024,
)
"""
OWN = """from {package} import DPOTrainer
DPOTrainer(model, per_device_train_batch_size=16).train()
"""
MINE = "torchrun --nproc_per_node 8 my_train.py --model_name_or_path Qwen/Qwen2.5-7B --output_dir o --per_device_train_batch_size 4 --num_train_epochs 1\n"


def read(folder: Path, text: str, name: str = "run.py", log: str = "", **answers: str) -> State:
    file = folder / name
    file.write_text(text)
    logs: tuple[Path, ...] = ()
    if log:
        (folder / "run.log").write_text(log)
        logs = (folder / "run.log",)
    return open_session(SessionRequest(file, logs=logs, gpus="1xA100-40GB", answers=answers))


@pytest.mark.parametrize(("trainer", "method"), [("DPOTrainer", "dpo"), ("SFTTrainer", "sft"), ("KTOTrainer", "kto")])
def test_a_part_of_a_file_without_imports_is_the_library_of_its_class(
    tmp_path: Path, trainer: str, method: str
) -> None:
    run = read(tmp_path, PART.format(trainer=trainer)).run
    assert (run.framework, run.algorithm) == ("trl", method)
    assert run.number("data.total_tokens") == 1024


@pytest.mark.parametrize(("package", "framework"), [("trl", "trl"), ("openrlhf.trainer", "unknown")])
def test_a_class_that_is_imported_is_of_its_package(tmp_path: Path, package: str, framework: str) -> None:
    assert read(tmp_path, OWN.format(package=package)).run.framework == framework


def test_a_cut_file_that_imports_unsloth_is_unsloths(tmp_path: Path) -> None:
    cut = 'from unsloth import FastLanguageModel\nmax_seq_length = 2000\nmodel, t = FastLanguageModel.from_pretrained(\n    model_name="unsloth/Qwen3-4B-Base",\n    load_in_4bit=True,\n'
    assert read(tmp_path, cut).run.framework == "unsloth"


@pytest.mark.parametrize(
    ("said", "framework"), [("trl", "trl"), ("llamafactory", "llamafactory"), ("other", "transformers")]
)
def test_the_user_knows_what_is_built_on_a_library_that_serves_others(
    tmp_path: Path, said: str, framework: str
) -> None:
    state = read(tmp_path, MINE, "run.sh", memory="gpu", framework=said)
    assert state.run.framework == framework
    assert "The evidence says" not in short_report(state)


def test_a_launch_of_a_frameworks_own_program_stays_what_it_is(tmp_path: Path) -> None:
    script = "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-7B trainer.n_gpus_per_node=8\n"
    assert read(tmp_path, script, "run.sh", memory="gpu", framework="trl").run.framework == "verl"


@pytest.mark.parametrize(
    ("log", "script", "words", "never"),
    [
        (
            "Memory_Allocation_Failure(EL0004): Failed to allocate memory requested by APP module.\n",
            "",
            "Ascend-910B",
            "8xA100",
        ),
        (
            "OSError: /opt/b/libbitsandbytes_hip.so: cannot open shared object file: No such file or directory\n",
            "",
            "",
            "nvidia-smi",
        ),
        (
            "",
            "export ASCEND_RT_VISIBLE_DEVICES=0,1\npython own.py --per_device_train_batch_size 4\n",
            "Ascend-910B",
            "8xA100",
        ),
        ("", "export HIP_VISIBLE_DEVICES=0\npython own.py --per_device_train_batch_size 4\n", "MI300X", "8xA100"),
    ],
)
def test_cards_of_another_vendor_are_spoken_of_in_its_words(
    tmp_path: Path, log: str, script: str, words: str, never: str
) -> None:
    file: Path | None = None
    logs: tuple[Path, ...] = ()
    if script:
        file = tmp_path / "run.sh"
        file.write_text(script)
    if log:
        (tmp_path / "run.log").write_text(log)
        logs = (tmp_path / "run.log",)
    report = " ".join(
        short_report(open_session(SessionRequest(file, logs=logs, answers={} if log else {"memory": "gpu"}))).split()
    )
    assert words in report
    assert never not in report


@pytest.mark.parametrize(
    ("more", "rolls"),
    [("", False), ("rollout_n: 8\n", True), ("engine: vllm\n", None)],
)
def test_a_run_without_a_word_of_rollouts_has_none(tmp_path: Path, more: str, rolls: bool | None) -> None:
    text = f"train_data_path: a\nmodel_name: own/x\nseq_len: 4096\nlr: 1e-5\n{more}"
    state = read(tmp_path, text, "own.yaml", memory="gpu")
    assert state.situation is not None
    fact = state.situation.facts.get("rolls_out")
    assert (None if fact is None else fact.value) is rolls
    offered = {choice.id for step in state.diagnosis.path for choice in step.choices if step.question == "phase"}
    assert ("weight_sync" in offered) is (rolls is not False)


def test_a_log_that_speaks_of_rollouts_has_them(tmp_path: Path) -> None:
    text = "train_data_path: a\nmodel_name: own/x\nseq_len: 4096\nlr: 1e-5\n"
    state = read(tmp_path, text, "own.yaml", log="INFO vllm engine ready\nCUDA out of memory\n", memory="gpu")
    assert state.situation is not None
    assert "rolls_out" not in state.situation.facts
