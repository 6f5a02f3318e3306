"""Trains a tiny model with TRL's GRPOTrainer on the CPU: the real trainer, for `python -m tests.watch.real_death`.

The second half of the data has pages; each loader process that meets one reads the whole table of pages into memory,
as data sets with pictures do. With $LEAK_MIB the reward function keeps so much more in every step, with $LONGER it
pays for length. With $ON_RAY it is a task of a Ray cluster of one node, which Ray's memory monitor may kill.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache

from datasets import Dataset
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig, GRPOTrainer, ModelConfig, ScriptArguments, TrlParser

ROWS, FIRST_PAGE = 400, 36
"""Rows of the data, and the first one that has a page."""
TABLE_MIB = int(os.environ.get("TABLE_MIB", "200"))
LEAK_MIB = int(os.environ.get("LEAK_MIB", "0"))
kept: list[bytearray] = []


@lru_cache(maxsize=1)
def pages() -> bytearray:
    """All pages, decoded."""
    return bytearray(b"\1") * (TABLE_MIB << 20)


def with_pages(rows: dict[str, list[object]]) -> dict[str, list[object]]:
    rows["page"] = [pages()[int(str(row))] if int(str(row)) >= FIRST_PAGE else 0 for row in rows["row"]]
    return rows


def reward(completions: list[str], **_: object) -> list[float]:
    """Something that can be learnt: how often an "a" stands in the answer, or how long it is."""
    if "LONGER" in os.environ:
        return [float(len(text)) for text in completions]
    if LEAK_MIB:
        kept.append(bytearray(b"\1") * (LEAK_MIB << 20))
    return [text.count("a") + sum(map(ord, text)) % 97 / 97 for text in completions]


def train(folder: str, arguments: list[str]) -> None:
    """The whole run."""
    os.chdir(folder)
    _, config, model = TrlParser((ScriptArguments, GRPOConfig, ModelConfig)).parse_args_and_config(arguments)
    data = Dataset.from_list([{"prompt": f"count {row} of {ROWS}: ", "row": row} for row in range(ROWS)])
    data.set_transform(with_pages)
    trainer = GRPOTrainer(model=model.model_name_or_path, reward_funcs=reward, args=config, train_dataset=data)
    trainer.train(resume_from_checkpoint=os.path.isdir(config.output_dir) and get_last_checkpoint(config.output_dir))


def task(folder: str, arguments: list[str]) -> None:
    """The same in a worker of Ray, which has this file as a module."""
    from train_grpo import train as train_here

    train_here(folder, arguments)


if __name__ == "__main__":
    if os.environ.get("ON_RAY"):
        import ray

        ray.init(num_cpus=2, include_dashboard=False, object_store_memory=100 << 20)
        ray.get(ray.remote(max_retries=0)(task).remote(os.getcwd(), sys.argv[1:]))
    else:
        train(os.getcwd(), sys.argv[1:])
