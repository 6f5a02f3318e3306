"""Writes what a run needs: its training script as people write it, its model with random weights, its data."""

from __future__ import annotations

import json
import random
import string
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
ROWS = 256


@dataclass(frozen=True, slots=True)
class TrainerRun:
    """One run of a trainer: as many arguments as a user would state."""

    name: str
    trainer: str
    model: str
    args: dict[str, Any]
    gib: float
    lora: int = 0
    prompt: int = 0
    scores: bool = False
    load: dict[str, str] = field(default_factory=dict)

    @property
    def row(self) -> int:
        """Tokens of the longest row, prompt and answer."""
        return int(self.args.get("max_length", 0)) or self.prompt + int(self.args["max_completion_length"])

    def script(self) -> str:
        """The training script."""
        given = {
            "output_dir": f"out-{self.name}",
            "max_steps": 2,
            "bf16": True,
            "report_to": "none",
            "save_strategy": "no",
        }
        lines = ["from datasets import load_dataset"]
        lines += ["from peft import LoraConfig"] if self.lora else []
        lines += [f"from trl import {self.trainer}Config, {self.trainer}Trainer", ""]
        lines += [f'dataset = load_dataset("json", data_files="{self.data}.jsonl", split="train")', ""]
        if self.answers_itself:
            lines += [
                "def reward_len(completions, **kwargs):",
                "    return [float(len(str(c)) % 7) for c in completions]",
                "",
            ]
        lines += [f"training_args = {self.trainer}Config("]
        lines += [f"    {key}={value!r}," for key, value in {**given, **self.args}.items()]
        if self.load:
            lines += [f"    model_init_kwargs={self.load!r},"]
        lines += [")", f"trainer = {self.trainer}Trainer(", f'    model="{self.model}",', "    args=training_args,"]
        lines += ["    reward_funcs=reward_len,"] if self.answers_itself else []
        lines += ["    train_dataset=dataset,"]
        if self.lora:
            lines += [f'    peft_config=LoraConfig(r={self.lora}, lora_alpha=32, target_modules="all-linear"),']
        return "\n".join([*lines, ")", "trainer.train()", ""])

    @property
    def answers_itself(self) -> bool:
        """Whether the run generates what it trains on."""
        return self.trainer in ("GRPO", "RLOO")

    @property
    def data(self) -> str:
        """Name of its data file: what a row holds, and how many tokens."""
        return f"{self.trainer.lower()}-{self.prompt or self.row}"

    def write_script(self, folder: Path) -> Path:
        """Lay the script alone into a folder; returns it."""
        file = folder / f"{self.name}.py"
        file.write_text(self.script())
        return file

    def write(self, folder: Path) -> Path:
        """Lay script and data into a folder; returns the script."""
        file = self.write_script(folder)
        rows = folder / f"{self.data}.jsonl"
        if not rows.exists():
            rows.write_text("".join(json.dumps(self._row(n)) + "\n" for n in range(ROWS)))
        return file

    def _row(self, seed: int) -> dict[str, Any]:
        drawn = random.Random(seed)

        def words(count: int) -> str:
            return "".join(drawn.choices(string.ascii_lowercase, k=count))

        if self.answers_itself:
            return {"prompt": words(self.prompt)}
        if self.trainer == "SFT":
            return {"text": words(self.row + 8)}
        if self.trainer == "Reward":  # rows beyond max_length are left out
            return {"chosen": words(self.row - 1), "rejected": words(self.row - 1)}
        half = self.row // 2 + 8
        if self.trainer == "KTO":
            return {"prompt": words(half), "completion": words(half), "label": bool(seed % 2)}
        return {"prompt": words(half), "chosen": words(half), "rejected": words(half)}


def runs() -> list[TrainerRun]:
    """runs.yaml."""
    return [TrainerRun(**each) for each in yaml.safe_load((HERE / "runs.yaml").read_text())]


def make_model(name: str, folder: Path) -> None:
    """Save a model of that name's shape with random weights in bf16, and a tokenizer to which a letter is a token."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

    place = folder / name
    stated = dict(yaml.safe_load((HERE / "models.yaml").read_text())[name])
    config = AutoConfig.for_model(stated.pop("model_type"), **stated, max_position_embeddings=32768, dtype="bfloat16")
    config.bos_token_id, config.eos_token_id, config.pad_token_id = 1, 2, 0
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(place)
    letters = [*pre_tokenizers.ByteLevel.alphabet(), "▁"]
    vocabulary = {word: n for n, word in enumerate(["<pad>", "<s>", "</s>", "<unk>", *sorted(letters)])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(place)
