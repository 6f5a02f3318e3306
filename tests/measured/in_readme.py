"""Accuracy in the README, from docs/accuracy.md: `python -m tests.measured.in_readme`; `--write` puts it there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.knowledge.systems import CHINESE, FILE, in_words, put
from tests.measured.accuracy import FILE as ACCURACY
from tests.measured.accuracy import OURS

BEGINS, ENDS = "<!-- accuracy: python -m tests.measured.in_readme --write -->\n", "<!-- /accuracy -->\n"
_CLAIMED = re.compile(
    r"^### (?P<kind>.+)\n\n(?P<rows>\d+) rows: mean absolute error (?P<mean>[\d.]+%), worst (?P<worst>[\d.]+%); "
    r"(?P<inside>\d+) readings lie in",
    re.MULTILINE,
)
_OURS = re.compile(
    r"(?P<rows>\d+) readings of small random-weight models.*?\nMedian error: (?P<errors>[^\n]*)\.\n", re.DOTALL
)
IN_CHINESE = {
    "measured peaks | readings | mean error | worst | inside the range":
    "实测峰值 | 条数 | 平均误差 | 最大误差 | 在区间内",
    "published: dense, one GPU, DDP, ZeRO and FSDP": "公开实测：稠密模型，单卡、DDP、ZeRO、FSDP",
    "published: dense, Megatron": "公开实测：稠密模型，Megatron",
    "published: mixtures of experts": "公开实测：混合专家模型",
    "TRL's trainers, measured by us on one NVIDIA H200": "TRL 的训练器，我们在一张 NVIDIA H200 上实测",
    "Our own ": "我们自己的 ",
    " readings of small models (taken as told there): median error ": " 条小模型读数（测法见该页）：误差中位数 ",
    " of ": " / ",
    "optimizer step": "优化器更新",
    "actor update": "actor 更新",
    "log prob ": "log-prob ",
    ", all ": "，全部 ",
}  # fmt: skip


def text() -> str:
    """Peaks that others published, and readings of our own."""
    page = ACCURACY.read_text(encoding="utf-8")
    lines = ["| measured peaks | readings | mean error | worst | inside the range |", "|---|---:|---:|---:|---:|"]
    for row in _CLAIMED.finditer(page):
        kind = row["kind"]
        if OURS.partition("{")[0] not in kind:
            kind = f"published: {kind[0].lower()}{kind[1:]}"
        inside = f"{row['inside']} of {row['rows']}"
        lines.append(f"| {kind} | {row['rows']} | {row['mean']} | {row['worst']} | {inside} |")
    ours = _OURS.search(page)
    assert len(lines) > 2, "docs/accuracy.md has another form now"
    assert ours is not None, "docs/accuracy.md has another form now"
    lines += [
        "",
        f"Our own {ours['rows']} readings of small models (taken as told there): median error {ours['errors']}.",
    ]
    return "\n".join(lines) + "\n"


def tables() -> dict[Path, str]:
    """README → its figures."""
    return {FILE: text(), CHINESE: in_words(text(), IN_CHINESE)}


if __name__ == "__main__":
    put(sys.argv[1:], BEGINS, ENDS, tables())
