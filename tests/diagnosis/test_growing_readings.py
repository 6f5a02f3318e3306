"""Readings that rise from step to step are told, and a log that ends with RAM nearly full is no healthy run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from advisor.report.short_report import short_report
from advisor.session import SessionRequest, State, open_session

LINE = (
    "(TaskRunner pid=88) step:{step} - actor/pg_loss:0.01 - perf/max_memory_allocated_gb:58.2 - {host} - timing_s/gen:9"
)


def ended(folder: Path, used: list[float], ram: str = "1TB") -> State:
    host = "perf/cpu_memory_used_gb:{used:.3f}"
    lines = [LINE.format(step=step, host=host.format(used=each)) for step, each in enumerate(used, 1)]
    log, script = folder / "train.log", folder / "run.sh"
    log.write_text("\n".join(lines) + "\n")
    script.write_text("python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-14B\n")
    assert time.time() - log.stat().st_mtime < 60  # still being written, so nobody says that it stopped
    return open_session(SessionRequest(script=script, logs=(log,), gpus="8xH100-80GB", host_ram=ram))


def test_ram_that_rises_until_it_is_nearly_full_is_no_healthy_run(tmp_path: Path) -> None:
    state = ended(tmp_path, [400.0 + 10 * step for step in range(56)])
    assert (state.crash.verdict, state.plan.steps != ()) == ("unclear", True)
    told = " ".join(short_report(state).split())
    assert "Host RAM in use rose from 400.00 GiB to 950.00 GiB by the log (line 56)." in told
    assert "It grows by 10.00 GiB a reading" in told
    assert "full after 3 more" in told  # 1024 less the 5% that Ray keeps free
    assert "Right only if it was host RAM" in told


@pytest.mark.parametrize("used", [[400.0 + 3 * step for step in range(56)], [950.0] * 56])
def test_room_that_is_left_or_ram_that_does_not_rise_proves_nothing(tmp_path: Path, used: list[float]) -> None:
    assert ended(tmp_path, used).crash.verdict == "not_oom"
