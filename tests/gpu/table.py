"""Measured beside predicted, as knowledge/measured.yaml.

`python -m tests.gpu.table --device cuda` measures on the first GPU (`--device cpu`: counts on the CPU) and predicts;
`python -m tests.gpu.table --again knowledge/measured.yaml` keeps what was measured and predicts anew, without torch.
Both write the table to stdout.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from tests.gpu.configurations import Configuration, configurations
from tests.gpu.predicted import ledger_of, predicted

HEAD = """\
# Peaks of small random-weight models beside what the ledger says of the same runs (`python -m tests.gpu.table`).
# Bytes that torch allocates on one GPU; driver, communicators and what the allocator keeps beside them are left out.
# A phase is that of the second step, when all states exist.
"""
METERS = {
    "cuda": "torch.cuda.max_memory_allocated",
    "cpu": "every allocation of the same operators and autograd engine on the CPU, no GPU: tests/gpu/meters.py",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One phase of one configuration, in bytes."""

    configuration: str
    phase: str
    measured: int
    predicted: int = 0
    low: int = 0
    high: int = 0

    @property
    def error(self) -> float:
        """Of the prediction, relative to the measurement."""
        return self.predicted / self.measured - 1


def read(file: Path) -> tuple[dict[str, Any], list[Row]]:
    """The table's head and rows."""
    table = yaml.safe_load(file.read_bytes())
    return {key: value for key, value in table.items() if key != "rows"}, [Row(*row) for row in table["rows"]]


def predict(rows: Iterable[Row]) -> list[Row]:
    """The same rows with what the ledger says now. A row whose configuration is gone is dropped."""
    known = {c.name: c for c in configurations()}
    ledgers = {name: ledger_of(c) for name, c in known.items()}
    return [
        Row(row.configuration, row.phase, row.measured, *_ordered(predicted(ledgers[row.configuration], row.phase)))
        for row in rows
        if row.configuration in known
    ]


def _ordered(values: tuple[int, int, int]) -> tuple[int, int, int]:
    low, expected, high = values
    return expected, low, high


def measured_rows(chosen: Iterable[Configuration], device: str) -> Iterator[Row]:
    """Measure each configuration; what is compared of it is for it to say."""
    from tests.gpu.steps import measure

    for configuration in chosen:
        print(configuration.name, file=sys.stderr)
        for phase, reading in measure(configuration, device).items():
            if phase in configuration.compared:
                yield Row(configuration.name, phase, reading.peak)


def medians(rows: list[Row]) -> dict[str, float]:
    """Median absolute error by phase, and of all."""
    phases = sorted({row.phase for row in rows})
    groups = {phase: [row for row in rows if row.phase == phase] for phase in phases} | {"all": rows}
    return {name: round(median(abs(row.error) for row in group), 4) for name, group in groups.items() if group}


def written(head: dict[str, Any], rows: list[Row]) -> str:
    """The file's text."""
    told = {**head, "median_error": medians(rows)}
    lines = [HEAD, yaml.safe_dump(told, sort_keys=False, width=200), "# configuration, phase, bytes measured, "]
    lines[-1] += "predicted, low, high\nrows:\n"
    for row in rows:
        numbers = f"{row.measured}, {row.predicted}, {row.low}, {row.high}"
        lines.append(f'  - ["{row.configuration}", {row.phase}, {numbers}]  # {row.error:+.1%}\n')
    return "".join(lines)


def _about(device: str) -> dict[str, Any]:
    from importlib.metadata import version

    import torch

    card = torch.cuda.get_device_name() if device == "cuda" else "none"
    libraries = {name: version(name) for name in ("torch", "transformers", "peft")}
    return {"meter": METERS[device], "card": card, "libraries": libraries}


def main() -> int:
    """Write the table to stdout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=sorted(METERS), default="cuda")
    parser.add_argument("--again", type=Path, metavar="FILE")
    parser.add_argument("--only", default="", metavar="TEXT", help="configurations whose name holds this")
    asked = parser.parse_args()
    if asked.again is not None:
        head, rows = read(asked.again)
        head.pop("median_error", None)
    else:
        chosen = [c for c in configurations() if asked.only in c.name]
        head, rows = _about(asked.device), list(measured_rows(chosen, asked.device))
    sys.stdout.write(written(head, predict(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
