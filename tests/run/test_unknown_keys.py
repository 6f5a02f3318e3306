"""Keys of a launch that nobody understood are named, those that are the user's own are not."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

import pytest

from advisor.cli import main
from advisor.knowledge import load_knowledge
from advisor.knowledge.key_space import key_space
from advisor.run.run import Run
from advisor.session import SessionRequest, open_session
from tests.loops import each

OPENRLHF = "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path Qwen/Qwen2.5-7B --train.batch_size 128"
TRL = "accelerate launch train_grpo.py --model_name_or_path Qwen/Qwen3-4B --per_device_train_batch_size 4"
Opened = Callable[[str], Run]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    def read(command: str) -> Run:
        script = tmp_path / "run.sh"
        script.write_text(f"{command}\n")
        return open_session(SessionRequest(script, gpus="8xA100-80GB", host_ram="900GB", planned=False)).run

    return read


def told(run: Run) -> list[tuple[str, str]]:
    return [(one.key, one.meant) for one in run.unknown_keys]


def test_a_slip_is_told_with_the_key_that_is_meant(opened: Opened) -> None:
    run = opened(f"{OPENRLHF} --train.micro_batchsize 4 --vllm.gpu_memory_utilisation 0.5")
    assert told(run) == [
        ("--train.micro_batchsize", "train.micro_batch_size"),
        ("--vllm.gpu_memory_utilisation", "vllm.gpu_memory_utilization"),
    ]
    assert any("2 keys are not known here and not counted: " in note for note in run.notes)


def test_a_framework_that_refuses_what_it_does_not_know_has_every_such_key_named(opened: Opened) -> None:
    run = opened(f"{OPENRLHF} --my.flag 3")
    assert told(run) == [("--my.flag", "")]
    assert "1 key is not known here and not counted: --my.flag." in run.notes


def test_keys_of_the_framework_that_move_no_memory_are_not_named(opened: Opened) -> None:
    keys = "--actor.adam.lr 1e-6 --logger.wandb.project x --data.input_key prompt --eval.steps -1"
    assert told(opened(f"{OPENRLHF} {keys}")) == []


def test_keys_of_a_users_own_program_are_not_named_unless_they_are_slips(opened: Opened) -> None:
    keys = "--num_generations 8 --max_completion_length 512 --my_reward math --dataset_dir x --no_remove_unused_columns"
    assert told(opened(f"{TRL} {keys}")) == []
    assert told(opened(f"{TRL} {keys} --gradient_acumulation_steps 4")) == [
        ("--gradient_acumulation_steps", "gradient_accumulation_steps")
    ]


def test_a_longer_name_is_another_setting_and_no_slip(opened: Opened) -> None:
    keys = "--num_generations 8 --max_completion_length 512 --my_num_generations 4"
    assert told(opened(f"{TRL} {keys}")) == []


SFT_TOML = '[model]\nname = "Qwen/Qwen3-8B"\n\n[data]\nseq_len = 4096\nbatch_size = 64\n{slip} = 4\n'
RL_TOML = '[trainer.model]\nname = "Qwen/Qwen3-8B"\n{slip} = 4096\n\n[orchestrator]\nbatch_size = 64\ngroup_size = 8\n'
VERL_SFT = "torchrun -m verl.trainer.sft_trainer data.train_batch_size=64 {slip}=4"
SKYRL_SFT = "python3 -m skyrl.train.main_sft model.path=Qwen/Qwen3-4B batch_size=64 {slip}=4"
OWN = "torchrun train.py --output_dir out --num_train_epochs 1 --per_device_train_batch_size 4 --seed_data x {slip} 4"
NOTEBOOK = """from unsloth import FastLanguageModel
model, tokenizer = FastLanguageModel.from_pretrained(model_name="unsloth/Qwen3-4B", {slip}=0.6, fast_inference=True)
model = FastLanguageModel.get_peft_model(model, r=16)
trainer = GRPOTrainer(model=model, args=GRPOConfig(num_generations=8, max_completion_length=512, my_note="x"))
"""


@pytest.mark.parametrize(
    ("name", "text", "slip", "meant"),
    [
        ("run.sh", VERL_SFT, "data.micro_batchsize_per_gpu", "data.micro_batch_size_per_gpu"),
        ("run.sh", SKYRL_SFT, "micro_train_batchsize_per_gpu", "micro_train_batch_size_per_gpu"),
        ("sft.toml", SFT_TOML, "micro_batchsize", "data.micro_batch_size"),
        ("rl.toml", RL_TOML, "seq_lenn", "trainer.model.seq_len"),
        ("run.sh", OWN, "--gradient_acumulation_steps", "gradient_accumulation_steps"),
        ("train.py", NOTEBOOK, "gpu_memory_utilisation", "from_pretrained.gpu_memory_utilization"),
    ],
)
def test_a_slip_is_told_in_files_and_programs_of_every_kind(
    name: str, text: str, slip: str, meant: str, tmp_path: Path
) -> None:
    script = tmp_path / name
    script.write_text(text.format(slip=slip) + "\n")
    run = open_session(SessionRequest(script, gpus="8xA100-80GB", host_ram="900GB", planned=False)).run
    assert [one.meant for one in run.unknown_keys] == [meant]


def test_settings_name_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"{OPENRLHF} --train.micro_batchsize 4\n")
    assert main(["settings", str(script)]) == 0
    assert "--train.micro_batchsize (train.micro_batch_size?)" in " ".join(capsys.readouterr().out.split())


@each("dialect", load_knowledge().frameworks, ids=lambda dialect: dialect.framework)
def test_a_list_of_keys_has_those_of_the_dialect(dialect) -> None:  # type: ignore[no-untyped-def]
    space = key_space(dialect.framework)
    if space is None:
        return
    eras = {era.id for era in dialect.eras}
    assert {era.era for era in space.eras} <= eras | {""}
    ever, keys = space.ever(), [key for key, fact in dialect.settings.items() if not fact.only_in]
    listed = [key for key in keys if key in ever or any(fnmatch(key, pattern) for pattern in space.open)]
    assert len(listed) >= 0.75 * len(keys), sorted(set(keys) - set(listed))
