"""A command runs a Python file with its own settings: the file is read and changed, the command says how it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.request import SessionRequest
from advisor.script.edit import EditRequest, rewrite
from advisor.script.proof import differences
from advisor.session import State, open_session

TRAIN = """from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(
    output_dir="out",
    per_device_train_batch_size=16,
)
GRPOTrainer(model="Qwen/Qwen2.5-3B-Instruct", args=args).train()
"""
ZERO3 = "distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 3\n"


def opened(folder: Path, command: str, train: str = TRAIN) -> State:
    (folder / "train_grpo.py").write_text(train)
    (folder / "z.yaml").write_text(ZERO3)
    (folder / "run.sh").write_text(command + "\n")
    return open_session(SessionRequest(script=folder / "run.sh", gpus="8xA100-80GB"))


@pytest.mark.parametrize(
    ("launcher", "processes", "stage"),
    [
        ("accelerate launch --config_file z.yaml", 4, 3),
        ("accelerate launch --num_processes 2", 2, None),
        ("torchrun --nproc_per_node 8", 8, None),
        ("python", 1, None),
    ],
)
def test_settings_are_the_files_and_processes_the_launchers(
    tmp_path: Path, launcher: str, processes: int, stage: int | None
) -> None:
    run = opened(tmp_path, f"{launcher} train_grpo.py").run
    assert (run.framework, run.model_name) == ("trl", "Qwen/Qwen2.5-3B-Instruct")
    assert run.knobs["actor.micro_batch"].value == 16
    assert run.topology.actor_gpus == processes
    found = run.knobs.get("actor.zero_stage")
    assert (found.value if found is not None else None) == stage


def test_a_change_is_written_into_the_file_and_proved_beside_what_its_command_says(tmp_path: Path) -> None:
    state = opened(tmp_path, "accelerate launch --config_file z.yaml train_grpo.py")
    assert state.script is not None
    wanted = [EditRequest("per_device_train_batch_size", "2")]
    rewrites = rewrite(state.script, 0, wanted)
    assert [item.document.path.name for item in rewrites] == ["train_grpo.py"]
    assert rewrites[0].new == TRAIN.replace("=16", "=2").encode()
    assert differences(state.script, 0, wanted, rewrites)[0] == []


def test_a_program_that_is_given_settings_on_its_command_keeps_them(tmp_path: Path) -> None:
    state = opened(tmp_path, "python train_grpo.py --per_device_train_batch_size 2 --num_generations 4")
    assert state.script.documents[0].path.name == "run.sh"


def test_a_file_that_configures_no_trainer_is_not_followed(tmp_path: Path) -> None:
    state = opened(tmp_path, "accelerate launch train_grpo.py", "import torch\nprint(torch.ones(2))\n")
    assert state.script.documents[0].path.name == "run.sh"


OPTIONS = """import argparse
from trl import GRPOConfig, GRPOTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B-Instruct")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--env-host", required=True)
parser.add_argument("--colocate", action="store_true")
args = parser.parse_args()
config = GRPOConfig(per_device_train_batch_size=args.batch, num_generations=4, use_vllm=args.colocate)
GRPOTrainer(model=args.model, args=config).train()
"""


def test_options_of_the_files_own_parser_are_worth_what_the_command_gives_them(tmp_path: Path) -> None:
    command = "torchrun --nproc_per_node 8 train_grpo.py --batch 2 --env-host=http://a --colocate"
    state = opened(tmp_path, command, OPTIONS)
    assert (state.run.framework, state.run.model_name) == ("trl", "Qwen/Qwen2.5-0.5B-Instruct")
    assert state.run.knobs["actor.micro_batch"].value == 2
    assert state.run.knobs["rollout.engine"].value == "vllm"
    assert state.script is not None
    assert rewrite(state.script, 0, [EditRequest("num_generations", "2")])[0].document.path.name == "train_grpo.py"


def test_an_option_that_the_file_does_not_have_leaves_the_command_as_it_is(tmp_path: Path) -> None:
    state = opened(tmp_path, "torchrun --nproc_per_node 8 train_grpo.py --batch 2 --gradient_checkpointing", OPTIONS)
    assert state.script.documents[0].path.name == "run.sh"


PARSED = """from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, ModelConfig, ScriptArguments, TrlParser

script, config, model = TrlParser((ScriptArguments, {trainer}Config, ModelConfig)).parse_args_and_config()
{trainer}Trainer(model=model.model_name_or_path, args=config).train()
"""


@pytest.mark.parametrize(("trainer", "method"), [("GRPO", "grpo"), ("DPO", "dpo")])
def test_the_trainer_that_a_file_builds_tells_framework_and_method_of_its_command(
    tmp_path: Path, trainer: str, method: str
) -> None:
    command = "python train_grpo.py --model_name_or_path Qwen/Qwen2.5-3B-Instruct --per_device_train_batch_size 4"
    state = opened(tmp_path, command, PARSED.format(trainer=trainer))
    assert (state.run.framework, state.run.algorithm) == ("trl", method)
    assert state.run.knobs["actor.micro_batch"].value == 4
    assert state.script is not None
    wanted = [EditRequest("--per_device_train_batch_size", "2")]
    rewrites = rewrite(state.script, 0, wanted)
    assert rewrites[0].document.path.name == "run.sh"
    assert differences(state.script, 0, wanted, rewrites)[0] == []


OWN_OPTIONS = """from dataclasses import dataclass
from transformers import HfArgumentParser, TrainingArguments
from trl import SFTTrainer
from unsloth import FastLanguageModel

@dataclass
class Own:
    rank: int = 16
    adapters: bool = True

training, own = HfArgumentParser((TrainingArguments, Own)).parse_args_into_dataclasses()
model, tok = FastLanguageModel.from_pretrained(model_name="Qwen/Qwen2.5-7B", max_seq_length=1024)
if own.adapters:
    model = FastLanguageModel.get_peft_model(model, r=own.rank)
SFTTrainer(model=model, args=training).train()
"""


def test_what_the_file_loads_and_wraps_is_the_launchs(tmp_path: Path) -> None:
    for option, rank in (("--rank 8", 8), ("--adapters False", None)):
        run = opened(tmp_path, f"python train_grpo.py --per_device_train_batch_size 2 {option}", OWN_OPTIONS).run
        held = run.value("actor.lora_rank") if any(one.key == "get_peft_model.r" for one in run.settings) else None
        assert (run.framework, run.value("actor.quantized_bits"), held) == ("unsloth", 4, rank)


LOADED = """import argparse, torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
p = argparse.ArgumentParser()
p.add_argument("--model", default="Qwen/Qwen2.5-7B-Instruct")
p.add_argument("--batch-size", type=int, default=8)
p.add_argument("--out")
args = p.parse_args()
model = AutoModelForCausalLM.from_pretrained(args.model, torch_dtype=torch.bfloat16)
"""
TRL = (
    LOADED
    + """from trl import SFTConfig, SFTTrainer
cfg = SFTConfig(output_dir="o", per_device_train_batch_size=args.batch_size)
SFTTrainer(model=model, args=cfg, peft_config=LoraConfig(r=16)).train()
"""
)
LOOP = (
    LOADED
    + """model = get_peft_model(model, LoraConfig(r=16))
for batch in torch.utils.data.DataLoader(rows, batch_size=args.batch_size):
    model(**batch).loss.backward()
"""
)
STARTED = (
    ("accelerate launch --num_processes 1 {}.py", "8"),
    ("python -m {} --batch-size 4", "4"),
    ("nohup python -u {}.py --out /x/$(date +%s) > log 2>&1 &", "8"),
)


@pytest.mark.parametrize(("train", "key"), [(TRL, "per_device_train_batch_size"), (LOOP, "DataLoader.batch_size")])
def test_what_the_file_alone_tells_holds_behind_every_launcher(tmp_path: Path, train: str, key: str) -> None:
    (tmp_path / "mine.py").write_text(train)
    for command, batch in STARTED:
        (tmp_path / "go.sh").write_text(command.format("mine") + "\n")
        state = open_session(SessionRequest(script=tmp_path / "go.sh", gpus="1xA100-80GB"))
        assert state.launch is not None, command
        own = {one.key: one.value for one in state.launch.settings}
        assert (own["LoraConfig.r"], own["from_pretrained.torch_dtype"], own[key]) == ("16", "bfloat16", batch), command
        assert state.run.model_name == "Qwen/Qwen2.5-7B-Instruct", command


def test_options_of_other_parsers_and_variables_count(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, click\nfrom trl import SFTConfig, SFTTrainer\n"
        "@click.command()\n@click.option('--rows', default=512)\ndef main(rows):\n"
        "    cfg = SFTConfig(max_length=rows, per_device_train_batch_size=int(os.environ.get('B', 8)))\n"
        "    SFTTrainer(model='Qwen/Qwen2.5-7B', args=cfg).train()\nmain()\n"
    )
    (tmp_path / "go.sh").write_text("B=2 python mine.py --rows 1024\n")
    state = open_session(SessionRequest(script=tmp_path / "go.sh", gpus="1xA100-80GB"))
    assert state.launch is not None
    own = {one.key: one.value for one in state.launch.settings}
    assert (own["max_length"], own["per_device_train_batch_size"]) == ("1024", "2")
