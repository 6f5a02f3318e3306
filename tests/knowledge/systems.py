"""The README table of systems, from the knowledge: `python -m tests.knowledge.systems`; `--write` puts it there."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework

FILE = Path(__file__).resolve().parents[2] / "README.md"
CHINESE = FILE.with_name("README.zh-CN.md")
BEGINS, ENDS = "<!-- systems: python -m tests.knowledge.systems --write -->\n", "<!-- /systems -->\n"
SYNTAX = {
    "hydra": "shell with Hydra overrides",
    "dotlist": "YAML, shell with `key=value`",
    "argparse": "shell with flags",
    "yaml": "YAML",
    "dataclass": "Python dataclasses",
}
"""How a launch is written. All are followed through shell variables, arrays, loops, `source`, `ray job submit`."""
IN_CHINESE = {
    "system | launch | versions told apart | read up to | settings | documented cases": (
        "框架 | 启动方式 | 区分的版本 | 读到的版本 | 设置数 | 案例数"
    ),
    "shell with Hydra overrides": "shell，Hydra 覆盖项",
    "YAML, shell with `key=value`": "YAML，shell 中写 `key=value`",
    "shell with flags": "shell，命令行选项",
    "Python dataclasses": "Python dataclass",
    "shell, YAML, JSON, TOML, Python": "shell、YAML、JSON、TOML、Python",
    " (verl fork of January 2025)": "（2025 年 1 月的 verl 分支）",
    "transformers' Trainer": "transformers 的 Trainer",
    "anything else": "其他程序",
    "as written": "按原文",
    " to v": " 到 v", " to train-v": " 到 train-v", " to 20": " 到 20",
}  # fmt: skip


def text() -> str:
    """The table, and the line about everything else."""
    knowledge = load_knowledge()
    cases = Counter(case.situation.get("framework") for case in knowledge.cases)
    lines = [
        "| system | launch | versions told apart | read up to | settings | documented cases |",
        "|---|---|---|---|---:|---:|",
    ]
    for dialect in sorted(knowledge.frameworks, key=lambda found: (-cases[found.framework], found.title.lower())):
        lines.append(
            f"| {dialect.title} | {SYNTAX[dialect.syntax]} | {_versions(dialect)} | "
            f"{_read_up_to(dialect)} | "
            f"{len(dialect.settings) + len(dialect.environment)} | {cases[dialect.framework] or '–'} |"
        )
    others = sum(cases.values()) - sum(cases[dialect.framework] for dialect in knowledge.frameworks)
    lines.append(f"| anything else | shell, YAML, JSON, TOML, Python | – | – | as written | {others} |")
    return "\n".join(lines) + "\n"


def _versions(dialect: Framework) -> str:
    """The eras from the oldest to the newest, and how many they are."""
    ids = sorted((era.id for era in dialect.eras), key=_order)
    if not ids:
        return "–"
    return ids[0] if len(ids) == 1 else f"{len(ids)}, {ids[0]} to {ids[-1]}"


def _read_up_to(dialect: Framework) -> str:
    read = dialect.newest_read
    return f"{read.name} ({read.month})" if read is not None else "–"


def _order(era: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", era.partition("-fork")[0])]


def in_words(text: str, words: Mapping[str, str]) -> str:
    """A table in other words."""
    for ours, others in words.items():
        text = text.replace(ours, others)
    return text


def put(arguments: list[str], begins: str, ends: str, tables: Mapping[Path, str]) -> None:
    """Print the tables, or put each into its file."""
    for file, table in tables.items():
        if "--write" in arguments:
            before, _, rest = file.read_text(encoding="utf-8").partition(begins)
            file.write_text(before + begins + table + ends + rest.partition(ends)[2], encoding="utf-8")
        else:
            print(table, end="")


def tables() -> dict[Path, str]:
    """README → its table."""
    return {FILE: text(), CHINESE: in_words(text(), IN_CHINESE)}


if __name__ == "__main__":
    put(sys.argv[1:], BEGINS, ENDS, tables())
