"""Messages of the newest engines and libraries, read in their own sources: is it a shortage, and of which memory?"""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.session import SessionRequest, State, open_session

GPU, HOST, NEITHER = ("oom", "gpu"), ("oom", "host"), ("unclear", "unknown")
SAID = [
    (
        "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (612). Each decode sequence requires one",
        GPU,
    ),
    (
        "ValueError: Free memory on device cuda:0 (21.10/79.11 GiB) on startup is less than the engine's budget after "
        "excluding external process's weights (0.6, 33.10 GiB). Decrease GPU memory utilization",
        GPU,
    ),
    (
        "ValueError: Externally held weights on device cuda:0 (61.03/79.11 GiB) exceed the desired GPU memory "
        "utilization (0.6, 47.47 GiB). Increase GPU memory utilization",
        GPU,
    ),
    ("ValueError: HiSparse pinned host pool needs ~512 GiB but only 380 GiB of RAM is available. Lower the", HOST),
    ("ValueError: Not enough host memory available. Requesting 412.50 GB but only have 380.11 GB free.", HOST),
    ("RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed", GPU),
    (
        "RuntimeError: SWA pool cap (524288 tokens, 18.21 GiB) leaves no room for the full KV pool within the "
        "available 17 GiB",
        GPU,
    ),
    ("AssertionError: Memory pool size is too small", GPU),
    ("ERROR 11-20 10:00:00 Not enough host memory for request 7f3a", NEITHER),
]


def read(said: str, tmp_path: Path) -> State:
    log = tmp_path / "train.log"
    log.write_text(f'Traceback (most recent call last):\n  File "/x/engine.py", line 1, in start\n    x()\n{said}\n')
    return open_session(SessionRequest(logs=(log,), planned=False))


@pytest.mark.parametrize(("said", "found"), SAID)
def test_what_the_newest_engines_say_is_read(said: str, found: tuple[str, str], tmp_path: Path) -> None:
    crash = read(said, tmp_path).crash
    assert (crash.verdict, crash.memory) == found


def test_a_refused_mapping_is_no_crash_by_itself(tmp_path: Path) -> None:
    said = "expandable_segments: memory mapping failed with OOM on device 0 while trying to map 20971520 bytes"
    assert read(f"[W1120 10:00:00 CUDACachingAllocator.cpp:480] {said}", tmp_path).crash.verdict != "not_oom"


@pytest.mark.parametrize("said", [SAID[0][0], SAID[2][0], SAID[5][0], SAID[6][0]])
def test_no_room_beside_the_engines_reserves_asks_for_a_larger_share(said: str, tmp_path: Path) -> None:
    assert read(said, tmp_path).diagnosis.cause == "no-room-for-kv"
