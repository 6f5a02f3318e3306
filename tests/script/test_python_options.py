"""A Python program's own options are worth their defaults where nobody gives them, and those it never reads nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.script.reader import read_script

FILLED = """
from dataclasses import dataclass, field
from transformers import HfArgumentParser, TrainingArguments
from trl import SFTTrainer

@dataclass
class Options:
    model: str = field(default="Qwen/Qwen2.5-7B")
    rows: int = 6
    checkpointing: bool = True

{parse}
training = TrainingArguments(per_device_train_batch_size={options}.rows, output_dir="out")
trainer = SFTTrainer(model={options}.model, args=training, max_seq_length=None)
"""
FLAGS = """
import argparse
from trl import GRPOConfig, GRPOTrainer

def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", "--batch-size", type=int, default=6)
    parser.add_argument("--length", dest="tokens", default=900)
    parser.add_argument("--checkpointing", action="store_true")
    return parser.parse_args()

args = parse_args()
config = GRPOConfig(per_device_train_batch_size=args.batch_size, max_completion_length=args.tokens,
                    gradient_checkpointing=args.checkpointing)
GRPOTrainer(model="Qwen/Qwen2.5-7B", args=config)
"""


def settings(folder: Path, text: str) -> dict[str, object]:
    file = folder / "train.py"
    file.write_text(text)
    return {key: one.value for key, one in read_script(file).launches[0].effective().items() if one.resolved}


@pytest.mark.parametrize(
    ("parse", "options"),
    [
        ("args = HfArgumentParser(Options).parse_args_into_dataclasses()[0]", "args"),
        ("parser = HfArgumentParser(Options)\nargs = parser.parse_args_into_dataclasses()[0]", "args"),
        ("parser = HfArgumentParser((Options, TrainingArguments))\na, b = parser.parse_args_into_dataclasses()", "a"),
        ("parser = TrlParser((TrainingArguments, Options))\na, b = parser.parse_args_and_config()", "b"),
        ("args = tyro.cli(Options)", "args"),
    ],
)  # fmt: skip
def test_a_field_of_the_options_is_what_the_config_gets(tmp_path: Path, parse: str, options: str) -> None:
    found = settings(tmp_path, FILLED.format(parse=parse, options=options))
    assert found["per_device_train_batch_size"] == "6"
    assert found["Trainer.model"] == "Qwen/Qwen2.5-7B"
    assert "checkpointing" not in found, "nothing reads it, so it has no effect"
    assert "Trainer.max_seq_length" not in found, "None is what the trainer takes without it"
    assert found["Trainer.args"] == "TrainingArguments"


def test_flags_of_argparse_are_their_defaults(tmp_path: Path) -> None:
    found = settings(tmp_path, FLAGS)
    assert found["per_device_train_batch_size"] == "6"
    assert found["max_completion_length"] == "900"
    assert found["gradient_checkpointing"] == "False"


def test_an_option_of_two_parsers_or_none_is_not_guessed(tmp_path: Path) -> None:
    found = settings(tmp_path, FLAGS.replace("args = parse_args()", "args = load()"))
    assert "per_device_train_batch_size" not in found


def test_defaults_of_a_loop_of_ones_own_are_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "pretrain.py"
    file.write_text(
        "import argparse, torch\np = argparse.ArgumentParser()\n"
        "p.add_argument('--batch_size', type=int, default=64)\np.add_argument('--max_seq_len', default=512)\n"
        "p.add_argument('--lr', type=float, default=1e-4)\np.add_argument('--debug', action='store_true')\n"
        "args = p.parse_args()\nargs.max_seq_len = 256\n"
    )
    (launch,) = read_script(file).launches
    assert {one.key: one.text for one in launch.settings} == {"batch_size": "64", "lr": "1e-4"}
