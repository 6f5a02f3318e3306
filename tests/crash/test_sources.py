"""Which files of a folder are logs, and how several of them, packed or not, are opened."""

import gzip
import os
import sys
from pathlib import Path

import pytest

from advisor.crash import sources
from advisor.crash.read import read_logs
from advisor.crash.sources import LogError, open_sources, tail_source

from .known import SIGNATURES

OOM = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 79.15 GiB total capacity)\n"
LAYOUTS = {
    "ray": (
        ["logs/worker-ab-01-77.err", "logs/raylet.out", "logs/old/worker-cd-01-78.out"],
        ["logs/dashboard.log", "logs/python-core-worker-a_1.log", "logs/gcs_server.out", "logs/monitor.err"],
    ),
    "torchelastic": (
        ["none_x/attempt_0/0/stderr.log", "none_x/attempt_0/0/error.json", "none_x/attempt_0/1/stdout.log"],
        ["none_x/attempt_0/0/snapshot.pkl"],
    ),
    "hydra": (["2025-01-01/10-00-00/main.log"], ["2025-01-01/10-00-00/.hydra/config.yaml", ".hydra/hydra.log"]),
    "wandb": (
        ["run-1/files/output.log"],
        [
            "run-1/files/requirements.txt",
            "run-1/logs/debug.log",
            "run-1/logs/debug-internal.log",
            "run-1/files/wandb.json",
        ],
    ),
    "slurm": (["slurm-77.out", "slurm-77.err", "verl-78.out"], ["job.sbatch", "README.txt"]),
    "a story": (["train.log"], ["run.sh", "expected.verl.plan.txt", "notes.txt", "plan.txt", "train.patch"]),
    "the kernel": (["dmesg.txt", "kern.log.1", "journal.txt"], ["README"]),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_logs_of_a_folder_are_read_and_nothing_else(name, tmp_path):
    logs, others = LAYOUTS[name]
    for place in (*logs, *others):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(OOM)
    found = {os.path.relpath(source.name, tmp_path) for source in open_sources([tmp_path])}
    assert found == set(logs)


def test_plain_texts_are_read_where_a_folder_has_no_log(tmp_path):
    (tmp_path / "what_it_said.txt").write_text(OOM)
    (tmp_path / "requirements.txt").write_text("torch")
    assert [source.name for source in open_sources([tmp_path])] == [str(tmp_path / "what_it_said.txt")]
    assert read_logs([tmp_path], SIGNATURES).verdict == "oom"


def test_a_folder_of_very_many_logs_is_read_newest_first_and_not_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "FILES_IN_FOLDER", 3)
    for number in range(10):
        path = tmp_path / f"{number}.log"
        path.write_text(OOM)
        os.utime(path, (7200 * number, 7200 * number))  # runs of other hours
    assert [source.name[-5:] for source in open_sources([tmp_path])] == ["9.log", "8.log", "7.log"]


def test_several_logs_and_a_folder_are_read_in_the_order_given(tmp_path):
    (tmp_path / "folder").mkdir()
    for name in ("a.log", "folder/b.log"):
        (tmp_path / name).write_text(OOM)
    with gzip.open(tmp_path / "c.log.gz", "wb") as packed:
        packed.write(OOM.encode())
    found = open_sources([tmp_path / "c.log.gz", tmp_path / "folder", tmp_path / "a.log"])
    assert [os.path.basename(source.name) for source in found] == ["c.log.gz", "b.log", "a.log"]
    assert read_logs([tmp_path], SIGNATURES).lines_read == 3


def test_standard_input_is_a_log(tmp_path):
    (tmp_path / "run.log").write_text(OOM * 3)
    stdin, sys.stdin = sys.stdin, (tmp_path / "run.log").open()
    try:
        assert read_logs([Path("-")], SIGNATURES).lines_read == 3
    finally:
        sys.stdin.close()
        sys.stdin = stdin


@pytest.mark.parametrize("hole", [100_000, 5_000, 100])
def test_a_log_whose_beginning_is_a_hole_is_a_log(tmp_path, hole):
    """As it is left where a log was cut to nothing under the program that wrote to it."""
    path = tmp_path / "run.log"
    with path.open("wb") as file:
        file.seek(hole)
        file.write(b"\n" + OOM.encode())
    assert read_logs([path], SIGNATURES).verdict == "oom"


def test_the_end_of_a_long_binary_is_no_log_either(tmp_path):
    path = tmp_path / "model.log"
    path.write_bytes(b"PK\x03\x04" + b"x" * 10_000)
    with pytest.raises(LogError, match="not a log"):
        tail_source(open_sources([path])[0], 100)


def test_of_many_ranks_the_one_that_died_first_is_read_and_the_rest_is_counted(tmp_path: Path) -> None:
    for rank in range(200):
        died = rank in (7, 130)
        file = tmp_path / f"rank{rank}.log"
        file.write_text("CUDA out of memory\n" if died else "waiting for the others\n")
        written = 1_000_000 + (0 if rank == 130 else 5 if rank == 7 else 60 + rank)
        os.utime(file, (written, written))
    found = open_sources([tmp_path])
    assert [Path(source.name).name for source in found[:2]] == ["rank130.log", "rank7.log"]
    assert len(found) + sum(source.left_out for source in found) == 200
