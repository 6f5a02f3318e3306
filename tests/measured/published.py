"""Published peaks beside what the ledger says of the same runs; `python -m tests.measured.published` prints them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from advisor import run_file as run_files
from advisor.crash.evidence import NOTHING
from advisor.knowledge import load_knowledge
from advisor.memory.cells import Ledger
from advisor.memory.ledger import build_ledger
from advisor.run.build import build_run
from advisor.run.run import Run
from advisor.session import SessionRequest
from advisor.units import GIB
from tests.plain_yaml import plain_yaml

FILE = Path(__file__).with_name("published.yaml")


@dataclass(frozen=True, slots=True)
class Row:
    """One reading, and the run it was taken of."""

    id: str
    what: str
    kind: str
    reading: float
    source: str
    run: Mapping[str, Any]
    doubt: str = ""
    variant: Mapping[str, Any] | None = None
    """Options by which it differs from the file that `source` names; None: it has no such file."""
    same: bool = True
    """The file says nothing more that moves its fullest phase."""


@dataclass(frozen=True, slots=True)
class Sized:
    """The fullest phase of a run, GiB."""

    run: Run
    phase: str
    low: float
    expected: float
    high: float
    by_data: bool = False
    """Lengths of rows or sizes of images, which nobody gave, move it."""


def rows() -> Iterator[Row]:
    """The rows in the order of the file."""
    for row in plain_yaml(FILE):
        yield Row(**{**row, "id": str(row["id"])})


def _built(run: Mapping[str, Any]) -> tuple[Run, Ledger]:
    knowledge, asked = load_knowledge(), SessionRequest()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.yaml"
        file.write_text(yaml.safe_dump(dict(run)))
        stated = run_files._read(file)
    machine = run_files._machine(stated, asked, knowledge)
    built = build_run(run_files._inputs(stated, asked, machine, knowledge, "run.yaml")).run
    return built, build_ledger(built, machine, NOTHING)


def ledger_of(run: Mapping[str, Any]) -> Ledger:
    """The ledger of a run file, as `rl-oom-advisor estimate --run` computes it."""
    return _built(run)[1]


def size(run: Mapping[str, Any]) -> Sized:
    """What `rl-oom-advisor estimate --run` says of it (without its search for other sizes)."""
    built, ledger = _built(run)
    peak = ledger.peak("gpu")
    if peak is None:
        raise ValueError(f"nothing can be computed of {run}")
    moved = max(abs(end / peak.expected - 1) for end in peak.by_data) > 0.01
    return Sized(built, peak.phase, peak.low / GIB, peak.expected / GIB, peak.high / GIB, moved)


def in_knobs(row: Row) -> dict[str, Any]:
    """The same run in canonical knobs: what its settings say, and nothing of the framework's own keys."""
    if "settings" not in row.run:
        return dict(row.run)
    built = size(row.run).run
    told = {k.name: k.value for k in built.knobs.values() if k.source in ("script", "environment") and k.key}
    return {**{key: value for key, value in row.run.items() if key != "settings"}, "knobs": told}


def main() -> None:
    """Print the table."""
    print(f"{'#':>4} {'kind':8} {'measured':>8} {'low':>6} {'expected':>8} {'high':>6} {'error':>7} {'':4} phase, run")
    for row in rows():
        found = size(row.run)
        error = found.expected / row.reading - 1
        held = "in" if found.low <= row.reading <= found.high else "OUT"
        numbers = f"{row.reading:8.1f} {found.low:6.1f} {found.expected:8.1f} {found.high:6.1f} {error:+7.1%} {held:4}"
        wide = f"[{found.low / found.expected - 1:+.0%} {found.high / found.expected - 1:+.0%}]"
        doubt = f" ({row.doubt})" if row.doubt else ""
        print(f"{row.id:>4} {row.kind:8} {numbers} {wide} {found.phase}: {row.what}{doubt}")


if __name__ == "__main__":
    main()
