"""What is written when a run ends: words that are read as logs, Ray's own, and who belonged to the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from advisor.crash.read import read_logs
from advisor.knowledge.load import load_knowledge
from advisor.report.phrases import killed_likely
from advisor.request import SessionRequest, read_crash_of
from advisor.session import open_session
from advisor.watch import end_of_run_log
from advisor.watch.end_of_run_log import RunEnd, write_end_logs
from advisor.watch.gauges import Gauge, HostGauges, Pace
from advisor.watch.gpu_gauges import GpuGauges
from advisor.watch.process_tree import ProcessTree, role_in
from advisor.watch.progress import OutputProgress
from advisor.watch.record import Record, Ring
from advisor.watch.record_files import RAY_LOGS as FOLDER
from advisor.watch.sampler import Sampler
from advisor.watch.system_logs import KernelLog, KillCounts, keep_ends, kills_of_the_node, of_workers
from tests.loops import each

TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of 39.38 GiB \
of which 1.10 GiB is free. Including non-PyTorch memory, this process has 38.27 GiB memory in use.\n"
)
DIED = "ray.exceptions.ActorDiedError: The actor died.\nWorker exit type: SYSTEM_ERROR Worker exit detail: Worker \
unexpectedly exits with a connection error code 2. End of file.\n"


def sampler_in(folder, used_share):
    """A sampler whose host was that full in the last moments."""
    record = Record.create(folder, {"began": 1.7e9, "command": ["run"]})
    sampler = Sampler(record, HostGauges(), GpuGauges(), ProcessTree(os.getpid()), OutputProgress(), 0.0)
    sampler.gauges = sampler.host.gauges
    values = [None if gauge.total is None else int(gauge.total * used_share) for gauge in sampler.gauges]
    sampler.recent.append(values)
    sampler.peaks = {column: value for column, value in enumerate(values) if value is not None}
    return sampler


@pytest.mark.parametrize(("share", "verdict"), [(0.97, "oom"), (0.40, "unclear")])
def test_a_kill_without_the_kernels_word_is_a_shortage_only_where_memory_was_nearly_full(tmp_path, share, verdict):
    write_end_logs(tmp_path / "r", sampler_in(tmp_path / "r", share), RunEnd(int(signal.SIGKILL), KernelLog(), None))
    crash = read_logs([tmp_path / "r/watch.log"], load_knowledge().signatures)
    assert crash.verdict == verdict
    assert "could not be read" in (tmp_path / "r/watch.log").read_text()


class Log(KernelLog):
    """A kernel's log of two kills."""

    def lines(self):
        of = "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg={},task=python,pid={},uid=0"
        kill = "Memory cgroup out of memory: Killed process {} (python) anon-rss:1kB"
        told = [("/job/ours", 501), ("/job/ours/below", 502)]
        return [line for path, pid in told for line in (of.format(path, pid), kill.format(pid))]


def test_of_the_kernels_log_only_what_was_killed_in_the_runs_own_group_is_kept(tmp_path):
    sampler = sampler_in(tmp_path / "r", 0.5)
    sampler.before, sampler.oom_kills = KillCounts(paths=frozenset({"/job/ours"})), 1
    write_end_logs(tmp_path / "r", sampler, RunEnd(9, Log(0), None))
    kept = (tmp_path / "r/kernel.log").read_text()
    assert "501" in kept
    assert "502" not in kept


def test_a_kill_that_every_group_above_counts_too_is_one_kill(tmp_path):
    sampler = sampler_in(tmp_path / "r", 0.5)
    counts = [3, 10]
    sampler.host = SimpleNamespace(kills=counts.__getitem__, groups=[SimpleNamespace(folder="/own"), None], charged=2)
    sampler._kills = counts.copy()
    counts[0] += 1
    counts[1] += 1
    sampler._count_kills(own_only=True)
    sampler._count_kills()
    assert sampler.oom_kills == 1


def test_rays_own_logs_are_kept_newest_first_and_bounded(tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    for number in range(80):
        (logs / f"worker-{number:03d}.err").write_bytes(b"x" * 100_000)
    (logs / "dashboard.log").write_text("no")
    old = logs / "worker-000.err"
    os.utime(old, (1, 1))
    kept = keep_ends(logs, tmp_path / "kept", since=1000.0)
    files = list((tmp_path / "kept").iterdir())
    assert kept == len(files) <= 48
    assert sum(file.stat().st_size for file in files) <= 2 << 20
    assert not {"dashboard.log", "worker-000.err"} & {file.name for file in files}


def test_a_worker_that_only_died_in_the_drivers_log_is_explained_by_its_own(tmp_path):
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "worker-1.err").write_text(TORCH)
    (tmp_path / "output.log").write_text(DIED)
    knowledge = load_knowledge()
    alone = read_crash_of(SessionRequest(logs=(tmp_path / "output.log",)), knowledge, lambda _: None)
    fuller = read_crash_of(SessionRequest(logs=(tmp_path / "output.log",), record=tmp_path), knowledge, lambda _: None)
    assert alone.verdict == "unclear"
    assert (fuller.verdict, fuller.signature) == ("oom", "torch-oom")


def test_the_log_of_a_dead_worker_is_found_by_its_id_and_no_other(tmp_path):
    logs = tmp_path / "session_2026-01-01_10-00-00_1_1" / "logs"
    logs.mkdir(parents=True)
    worker = "3b48b94a78098fb175a1b716f9e13538b3c63c96dadf72c978a35eee"
    (logs / f"worker-{worker}-ffffffff-77.err").write_text(TORCH)
    (logs / f"worker-{worker[::-1]}-ffffffff-78.err").write_text(TORCH)
    found = of_workers([f"A worker died. Worker ID: {worker} Node ID: 73a9 Worker PID: 77"], tmp_path)
    assert [file.name for file in found] == [f"worker-{worker}-ffffffff-77.err"]


@each(
    ("words", "role"),
    [
        (["ray::WorkerDict.actor_rollout_update_actor"], "ray::WorkerDict"),
        (["ray::IDLE"], "ray::IDLE"),
        (["/usr/bin/python3", "-m", "verl.trainer.main_ppo", "a=b"], "main_ppo"),
        (["python", "-u", "/home/x/train.py"], "train.py"),
        (["bash", "run.sh"], "run.sh"),
        (["/opt/ray/raylet/raylet", "--x"], "raylet"),
        (["VLLM::EngineCore_0"], "VLLM::EngineCore_0"),
        (["python", "-c", "print()"], "python"),
        ([], "a process without a name"),
    ],
)
def test_processes_are_called_by_what_they_are_to_the_run(words, role):
    assert role_in(words) == role


def test_the_tree_of_a_run_is_found_with_what_each_holds():
    code = "import subprocess, sys; x = bytearray(64 << 20); subprocess.run(['sleep', '60'])"
    run = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        tree, until = ProcessTree(run.pid), time.monotonic() + 30
        while "sleep" not in tree.names.values() and time.monotonic() < until:
            tree.refresh()
            time.sleep(0.02)
        assert "sleep" in tree.names.values()
        assert tree.held()[run.pid] >= 64 << 20
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()


def test_what_costs_more_than_its_share_is_done_less_often():
    pace = Pace(0.1, share=0.001)
    pace.ran(10.0, 0.00005)
    assert pace.due == pytest.approx(10.1, abs=0.06)
    for _ in range(30):
        pace.ran(10.0, 0.01)
    assert pace.due > 15.0


def test_the_host_gauges_are_near_what_the_system_says():
    gauges = HostGauges()
    values = dict(zip([gauge.kind for gauge in gauges.gauges], gauges.read(slow=True), strict=True))
    assert 0 < values["host"] < gauges.gauges[0].total
    gauges.close()


def test_the_kernels_count_never_falls():
    before = kills_of_the_node()
    assert before is None or kills_of_the_node() >= before


def test_a_ring_is_made_readable_for_its_owner_only(tmp_path):
    Ring.create(tmp_path, 3).close()
    assert (tmp_path / "ring.bin").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("boot", "kills", "share", "verdict"),
    [
        ("this", 8, 0.97, "oom"),
        ("this", 8, 0.4, "unclear"),
        ("this", 9, 0.4, "oom"),  # as many as there were, and the watcher
        ("this", 7, 0.97, None),
        ("other", 8, 0.97, None),
    ],
)
def test_of_a_watcher_that_was_killed_with_its_run_the_kernels_counter_tells(
    tmp_path, monkeypatch, boot, kills, share, verdict
):
    about = {"began": 1.7e9, "command": ["run"], "boot": "this", "node_kills": 7, "grouped": True}
    record = Record.create(tmp_path / "r", about)
    column = record.column(Gauge("limit", "memory of the group /x", 1000 << 20))
    record.sample(1.0, {column: 100 << 20, record.column(Gauge("rss", "python", None, 5)): 50 << 20})
    record.sample(9.0, {column: int(share * 1000) << 20})
    record.close()
    monkeypatch.setattr(end_of_run_log, "boot", lambda: boot)
    monkeypatch.setattr(end_of_run_log, "kills_of_the_node", lambda: kills)
    end_of_run_log.write_lost_end(tmp_path / "r")
    words = tmp_path / "r/watch.log"
    assert words.exists() == (verdict is not None)
    if verdict is not None:
        logs = [words, *(tmp_path / "r").glob("kernel.log")]
        assert read_logs(logs, load_knowledge().signatures).verdict == verdict


@pytest.mark.parametrize(("kills", "cause"), [(0, "not-memory"), (1, "host-too-small")])
def test_a_kill_beside_free_memory_is_somebody_elses_where_the_kernel_counted_none(tmp_path, kills, cause):
    record = Record.create(tmp_path / "r", {"began": 1.7e9, "command": ["run"]})
    record.mark(9.0, node_kills=kills)
    record.mark(9.0, end={"signal": 9})
    record.close()
    words = [*end_of_run_log.fullest_words([(2 << 30, 24 << 30)]), end_of_run_log.ended_words(9, 9.0, None)]
    end_of_run_log.write_words(tmp_path / "r", words)
    state = open_session(SessionRequest(logs=(tmp_path / "r/watch.log",), record=tmp_path / "r"))
    assert state.diagnosis.cause == cause
    assert killed_likely(state) == (cause != "not-memory")
