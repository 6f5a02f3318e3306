"""Names the files of a record. `record` says what is in each."""

from __future__ import annotations

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
"""Counters of the output that count steps, the most trusted first."""
