"""Counts what `redact` hides in public scripts: `python -m tests.trust.harmless_values FOLDER... [--most 1500]`.

Prints each line that loses something, for a person to say whether it held a secret.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

from advisor.redact import redact

_VALUE = re.compile(r"[\w\]\"']\s*[=:]\s*[\"']?[^\s\"',]")
_ENDINGS = {".sh", ".yaml", ".yml", ".py", ".json", ".md"}


def main() -> None:
    """Read a random sample of the folders' scripts and configs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found = (file for folder in asked.folders for file in folder.rglob("*") if file.suffix in _ENDINGS)
    files = sorted(file for file in found if file.is_file())
    read = random.Random(asked.seed).sample(files, min(asked.most, len(files)))
    values, hidden = 0, 0
    for file in read:
        text = file.read_text(encoding="utf-8", errors="replace")[:200_000]
        values += len(_VALUE.findall(text))
        for before, after in zip(text.split("\n"), redact(text).split("\n"), strict=False):
            if before != after:
                hidden += 1
                print(f"{file}: {before.strip()[:120]}")
    print(f"{len(read)} files, {values} values, {hidden} lines with something hidden")


if __name__ == "__main__":
    main()
