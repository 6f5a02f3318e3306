"""Logs are read from wherever they lie, whatever is in them, in bounded memory."""

import contextlib
import gzip
import io
import lzma
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.crash.patterns import Catalogue
from advisor.crash.read import read_logs
from advisor.crash.scan import scan
from advisor.crash.sources import LogError, LogSource, open_sources
from tests.heavy import examples

from .known import SIGNATURES, judge

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 9.00 GiB."
TEXT = st.text(
    st.characters(
        codec="utf-8", exclude_characters=[chr(code) for code in (*range(1, 7), *range(14, 27), *range(28, 32))]
    ),
    max_size=400,
)
"""Anything but what no program prints: where that is more than a little, a file is no log."""
LINE = "(WorkerDict pid=9) step went on as usual, nothing to see here\n"


def read(*paths):
    return read_logs(paths, SIGNATURES)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress], ids=["plain", "gz", "xz"])
def test_packed_logs_are_recognised_by_their_first_bytes(tmp_path, pack):
    path = tmp_path / "run.log"
    path.write_bytes(pack((LINE * 20 + OOM + "\n").encode()))
    crash = read(path)
    assert (crash.verdict, crash.evidence[0].line, crash.lines_read) == ("oom", 21, 21)
    assert crash.evidence[0].file == str(path)


def test_a_packed_log_that_breaks_off_gives_what_was_readable(tmp_path):
    path = tmp_path / "run.log.gz"
    noise = "".join(f"{i * 7919 % 104729} {LINE}" for i in range(20_000))
    packed = gzip.compress((OOM + "\n" + noise).encode())
    path.write_bytes(packed[: len(packed) - 200])
    assert read(path).verdict == "oom"


def test_zstandard_without_its_package_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    path = tmp_path / "run.log.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"0" * 20)
    with pytest.raises(LogError, match="needs the zstandard package"):
        read(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x7fELF" + bytes(100),
        b"PK\x03\x04zip",
        bytes(1000),
        b"\x80\x04\x95pickle",
        bytes(range(256)) * 9,
        "log".encode("utf-16"),
    ],
)
def test_a_binary_file_is_refused_in_one_sentence(tmp_path, content):
    path = tmp_path / "weights.bin"
    path.write_bytes(content)
    with pytest.raises(LogError, match="not a log") as problem:
        read(path)
    assert str(path) in str(problem.value)
    assert "\n" not in str(problem.value)


def test_missing_files_and_folders_without_logs_are_named(tmp_path):
    with pytest.raises(LogError, match="no such file"):
        read(tmp_path / "nothing.log")
    (tmp_path / "picture.png").write_bytes(b"x")
    with pytest.raises(LogError, match="no log was found"):
        read(tmp_path)


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    path = tmp_path / "secret.log"
    path.write_text("x")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(LogError, match="not allowed"):
        read(path)


def test_an_empty_file_is_no_error(tmp_path):
    path = tmp_path / "empty.log"
    path.touch()
    assert (read(path).verdict, read(path).memory) == ("unclear", "unknown")


def test_a_ray_session_folder_gives_the_workers_logs_first(tmp_path):
    logs = tmp_path / "session_latest" / "logs"
    logs.mkdir(parents=True)
    for name in (
        "worker-ab-01-77.err",
        "raylet.out",
        "dashboard.log",
        "python-core-worker-a_1.log",
        "monitor.log",
        "x.log",
    ):
        (logs / name).write_text(OOM if name.startswith("worker") else LINE)
    names = [source.name.rsplit("/", 1)[-1] for source in open_sources([tmp_path])]
    assert sorted(names[:2]) == ["raylet.out", "worker-ab-01-77.err"]
    assert names[2:] == ["x.log"]
    assert read(tmp_path).evidence[0].file.endswith("worker-ab-01-77.err")


def test_several_logs_are_put_in_order_by_their_times(tmp_path):
    late, early = tmp_path / "a.log", tmp_path / "b.log"
    late.write_text(f"[2025-06-11 03:12:11] {OOM}\n")
    early.write_text(
        "[2025-06-11 03:02:11] RuntimeError: CUDA Error: out of memory at /w/csrc/cumem_allocator.cpp:62\n"
    )
    assert read(late, early).signature == "cumem-oom"


def test_the_kernels_log_confirms_and_does_not_outrank_the_runs_own_error(tmp_path):
    kernel, run = tmp_path / "dmesg.txt", tmp_path / "run.log"
    kernel.write_text("[1.0] Out of memory: Killed process 42 (chrome) total-vm:4kB, anon-rss:1kB, file-rss:1kB\n")
    run.write_text(OOM)
    assert read(kernel, run).memory == "gpu"
    assert read(kernel).memory == "host"


def test_a_fifo_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(LINE * 100 + OOM))
    writer.start()
    crash = read(path)
    writer.join()
    assert crash.verdict == "oom"


def test_line_numbers_count_newlines_across_chunks():
    crash = judge(LINE * 15_000 + OOM + "\n" + LINE * 15_000)
    assert crash.evidence[0].line == 15_001
    assert crash.lines_read == 30_001


def test_a_flood_of_one_signature_is_counted_and_not_kept():
    log = "KV cache pool is full. Retract requests. #retracted_reqs: 12\n" * 3_000 + OOM
    crash = judge(log)
    assert crash.signature == "torch-oom"
    assert len(crash.evidence) < 10


@settings(max_examples=examples(150), deadline=None)
@given(TEXT, TEXT)
def test_any_text_around_a_message_neither_hides_it_nor_breaks_the_reader(before, after):
    crash = judge(f"{before}\n\n{OOM}\n\n{after}")
    assert crash.evidence


@settings(max_examples=examples(150), deadline=None)
@given(st.binary(max_size=600))
def test_any_bytes_give_a_crash_or_one_sentence(data):
    source = LogSource("bytes", lambda: io.BytesIO(data))
    with contextlib.suppress(LogError):
        scanned = scan(source, Catalogue(SIGNATURES))
        assert scanned.bytes_read == len(data)
