"""Names the files of a record, and writes those that are written at once. `record` says what is in each."""

from __future__ import annotations

import os
from pathlib import Path

SAMPLES = "samples.jsonl"
OUTPUT = "output.log"
ERRORS = "errors.log"
RING = "ring.bin"
KERNEL = "kernel.log"
WORDS = "watch.log"
COMMAND = "command.sh"
RAY_LOGS = "ray-logs"
ATTEMPT = "attempt.json"
CASE = "case.yaml"
STEP_COUNTERS = ("step", "done", "iteration")
LONGEST = "longest"
"""The counter of tokens in the longest answer of a step."""
"""Counters of the output that count steps, the most trusted first."""


def write_private(path: Path, data: bytes) -> None:
    """Write a file of a record, for its owner only, whoever may look into the folder. Raises OSError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
