"""Ray kills at a threshold of its own: the one that it printed is the wall that plans are held against."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, open_session
from advisor.units import GIB

SCRIPT = """python train.py --model_name_or_path Qwen/Qwen2.5-0.5B --per_device_train_batch_size 8 \\
  --num_generations 8 \\
  --max_completion_length 256 --use_cpu true --dataloader_num_workers 4
"""
NEW = "Memory on the node (IP: 10.0.0.1, ID: f2) was {used}GB used / {total}GB limit ({part})"
OLD = NEW.replace(" used /", " /").replace(" limit", "") + ", which exceeds the memory usage threshold of {threshold}"


@pytest.mark.parametrize(
    ("line", "part", "wall"),
    [(NEW, 0.25, 0.25), (NEW, 0.957, 0.95), (OLD, 0.81, 0.8)],
    ids=["lowered, not named", "as by default", "named"],
)
def test_the_wall_is_the_threshold_that_the_message_shows(tmp_path: Path, line: str, part: float, wall: float) -> None:
    script, log = tmp_path / "run.sh", tmp_path / "train.log"
    script.write_text(SCRIPT)
    told = line.format(used=f"{100 * part:.2f}", total="100.00", part=part, threshold=wall)
    log.write_text(f"ray.exceptions.OutOfMemoryError: 1 worker(s) were killed. {told}\n")
    ledger = open_session(SessionRequest(script=script, logs=(log,), host_ram="100GiB")).ledger
    assert ledger.host_limit == int(100 * GIB * wall)
