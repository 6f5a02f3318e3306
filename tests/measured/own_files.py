"""Sizes the claimed rows from upstream's own files as they stand: `MIRRORS=FOLDER python -m tests.measured.own_files`
prints them, `--write` records them in own_files.yaml, which docs/accuracy.md shows.

MIRRORS holds git folders named owner+name/repo with their history. What the file's header says that a row differs by
(`variant` in published.yaml) is added behind the command, where it wins, as a user would.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from advisor.cli import main as run
from advisor.units import GIB
from tests.measured.published import Row, rows
from tests.plain_yaml import plain_yaml

FILE = Path(__file__).with_name("own_files.yaml")
_SOURCE = re.compile(
    r"(?P<owner>[\w-]+)/(?P<name>[\w-]+)@(?P<commit>[0-9a-f]{7,40}) .*?(?P<file>[\w./-]+\.(?:sh|yaml))$"
)


@dataclass(frozen=True, slots=True)
class OwnFile:
    """What `estimate` says of a row's own file: its fullest phase, GiB."""

    id: str
    phase: str
    low: float
    expected: float
    high: float
    exit: int


def recorded() -> list[OwnFile]:
    """own_files.yaml."""
    return [OwnFile(**{**each, "id": str(each["id"])}) for each in plain_yaml(FILE)]


def measure(mirrors: Path) -> Iterator[OwnFile]:
    """Every row whose source names a file at a commit and whose settings are that file's."""
    for row in rows():
        source = _SOURCE.match(row.source)
        if source is not None and row.variant is not None:
            git = mirrors / f"{source['owner']}+{source['name']}" / "repo"
            yield _estimated(row, git, source["commit"], source["file"])


def _estimated(row: Row, git: Path, commit: str, file: str) -> OwnFile:
    with tempfile.TemporaryDirectory() as folder:
        top = file.split("/", 1)[0]
        tree = subprocess.run(["git", "--git-dir", git, "archive", commit, top], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=tree, check=True)
        script = Path(folder) / file
        script.write_text(as_variant(script.read_text(), row.variant or {}))
        asked = ["--gpus", row.run["gpus"], "--nodes", str(row.run.get("nodes", 1)), "--host-ram", "2000GB"]
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            code = run(["estimate", str(script), *asked, "--format", "json"])
    phases = json.loads(out.getvalue())["memory"]["gpu"]["phases"]
    top_phase = max(phases, key=lambda each: each["expected_bytes"])
    low, expected, high = (round(top_phase[key] / GIB, 1) for key in ("low_bytes", "expected_bytes", "high_bytes"))
    return OwnFile(row.id, top_phase["phase"], low, expected, high, code)


def as_variant(script: str, variant: Mapping[str, Any]) -> str:
    """The script with other values of some of its options, which stand last."""
    more = "".join(f" \\\n    --{key} {value}" for key, value in variant.items())
    body = "".join(line for line in script.splitlines(True) if not re.match(r"#.*GI?B", line, re.IGNORECASE))
    return body.rstrip() + more + "\n"


def main() -> None:
    """Print the rows, or record them."""
    of_row = {row.id: row for row in rows()}
    found = list(measure(Path(os.environ["MIRRORS"])))
    for own in found:
        row = of_row[own.id]
        held = "in" if own.low <= row.reading <= own.high else "OUT"
        numbers = f"{row.reading:8.1f} {own.low:6.1f} {own.expected:8.1f} {own.high:6.1f}"
        error = f"{own.expected / row.reading - 1:+7.1%}"
        print(f"{own.id:>4} {row.kind:8} {numbers} {error} {held:4} {own.phase}: {row.what} (exit {own.exit})")
    if sys.argv[1:] == ["--write"]:
        head = "# Written by `python -m tests.measured.own_files --write`: GiB on the fullest GPU.\n"
        FILE.write_text(head + "".join(f"- {json.dumps(asdict(own))}\n" for own in found))


if __name__ == "__main__":
    main()
