"""The README table of systems, from the knowledge: `python -m tests.knowledge.systems`; `--write` puts it there."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from advisor.knowledge import load_knowledge
from advisor.knowledge.schema import Framework

FILE = Path(__file__).resolve().parents[2] / "README.md"
BEGINS, ENDS = "<!-- systems: python -m tests.knowledge.systems --write -->\n", "<!-- /systems -->\n"
SYNTAX = {
    "hydra": "shell with Hydra overrides",
    "dotlist": "YAML, shell with `key=value`",
    "argparse": "shell with flags",
    "yaml": "YAML",
    "dataclass": "Python dataclasses",
}
"""How a launch is written. All are followed through shell variables, arrays, loops, `source`, `ray job submit`."""


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


def main(arguments: list[str]) -> None:
    """Print the table, or put it into the README."""
    if "--write" in arguments:
        before, _, rest = FILE.read_text(encoding="utf-8").partition(BEGINS)
        FILE.write_text(before + BEGINS + text() + ENDS + rest.partition(ENDS)[2], encoding="utf-8")
    else:
        print(text(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
