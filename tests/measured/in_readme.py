"""Accuracy in the README, from docs/accuracy.md: `python -m tests.measured.in_readme`; `--write` puts it there."""

from __future__ import annotations

import re
import sys

from tests.knowledge.systems import FILE
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


def main(arguments: list[str]) -> None:
    """Print the table, or put it into the README."""
    if "--write" in arguments:
        before, _, rest = FILE.read_text(encoding="utf-8").partition(BEGINS)
        FILE.write_text(before + BEGINS + text() + ENDS + rest.partition(ENDS)[2], encoding="utf-8")
    else:
        print(text(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
