"""Long and hostile logs: bounded work, the end of a log first, and a timeline of memory readings."""

import gzip
import os
import time

import pytest

from advisor.crash import sources
from advisor.crash.log_reader import LogReader
from advisor.crash.read import read_ends, read_logs
from advisor.crash.sources import LogError, open_sources
from advisor.units import GIB, MIB

from .known import SIGNATURES, judge

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 9.00 GiB "
    "of which 1.00 GiB is free."
)
STEP = "(WorkerDict pid=9) the step went on as usual\n"


@pytest.mark.parametrize(
    "filler",
    [b"x" * (4 << 20), b"CUDA out of memory " * 300_000, b"50%|#  | 1/2\r" * 200_000, b"\0" * (3 << 20), b"\n" * 10**6],
    ids=["one line", "a line of anchors", "redraws", "NUL bytes", "empty lines"],
)
def test_the_message_after_a_monstrous_stretch_is_found_soon(tmp_path, filler):
    path = tmp_path / "run.log"
    path.write_bytes(STEP.encode() * 500 + filler + f"\n{OOM}\n".encode())
    begun = time.process_time()
    crash = read_logs([path], SIGNATURES)
    assert crash.verdict == "oom"
    assert time.process_time() - begun < 12


def read_whole(path, between=lambda: None) -> int:
    """Bytes read in pieces of 1000; `between` happens after each."""
    room, read = memoryview(bytearray(1000)), 0
    with LogReader(open_sources([path])[0]) as reader:
        while count := reader.read_into(room):
            read += count
            between()
    return read


def test_a_log_that_grows_without_end_is_read_as_far_as_it_went(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(STEP * 100)

    def grow():
        with path.open("a") as more:
            more.write(STEP * 50)

    assert read_whole(path, grow) == len(STEP) * 100


def test_a_log_cut_short_while_it_is_read_ends_there(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(STEP * 100)
    assert read_whole(path, lambda: os.truncate(path, 10)) == 1000


def test_a_log_replaced_while_it_is_read_is_read_on(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(STEP * 100)

    def rotate():
        (tmp_path / "new").write_text("new")
        os.replace(tmp_path / "new", path)

    assert read_whole(path, rotate) == len(STEP) * 100


def test_a_pipe_that_nobody_writes_to_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "PATIENCE", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LogError, match="nobody writes to this pipe"):
        read_logs([tmp_path / "pipe"], SIGNATURES)


def test_a_preview_reads_the_end_and_says_that_it_is_preliminary(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(f"ValueError: No available memory for the cache blocks.\n{STEP * 4000}{OOM}\n")
    first = read_ends([path], SIGNATURES, length=64 << 10)
    assert first is not None
    assert (first.verdict, first.signature, bool(first.preliminary)) == ("oom", "torch-oom", True)
    whole = read_logs([path], SIGNATURES)
    assert (whole.signature, bool(whole.preliminary)) == ("no-kv-blocks", False)


def test_the_end_of_a_short_log_is_all_of_it(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(OOM)
    assert read_ends([path], SIGNATURES) == read_logs([path], SIGNATURES)


def test_what_can_be_read_only_once_or_has_no_end_to_begin_with_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert read_ends([tmp_path / "pipe"], SIGNATURES) is None
    with gzip.open(tmp_path / "run.log.gz", "wb", compresslevel=0) as packed:
        packed.write(OOM.encode() * 40)
    assert read_ends([tmp_path / "run.log.gz"], SIGNATURES, length=1000) is None
    assert read_ends([tmp_path / "run.log.gz"], SIGNATURES).verdict == "oom"


def test_reading_tells_how_far_it_is(tmp_path):
    path = tmp_path / "run.log"
    path.write_text(STEP * 30_000)
    told = []
    read_logs([path], SIGNATURES, on_progress=lambda name, read, size: told.append((name, read, size)))
    assert told[-1] == (str(path), len(STEP) * 30_000, len(STEP) * 30_000)
    assert [read for _, read, _ in told] == sorted(read for _, read, _ in told)


READINGS = f"""\
(WorkerDict pid=9) INFO gpu_worker.py:360] Available KV cache memory: 41.20 GiB
(WorkerDict pid=9) Before compute_log_prob, memory allocated (GB): 12.50, memory reserved (GB): 40.00
(pid=9) INFO 02-22 21:54:10 worker.py:133] Sleep mode freed 46.50 GiB memory, 26.00 GiB memory is still in use.
MA 14.50 GB         Max_MA 14.6 GB         CA 15.00 GB         Max_CA 15 GB
| N/A   34C    P0    68W / 400W |  40536MiB / 81920MiB |     98%      Default |
| Allocated memory      |  12345 MiB |  15000 MiB |  99999 MiB |  87654 MiB |
{OOM}
"""


def test_readings_on_the_way_become_a_timeline():
    told = [(one.line, one.phase, one.kind, one.bytes) for one in judge(READINGS).readings]
    assert told == [
        (1, "rollout_init", "kv_cache", round(41.2 * GIB)),
        (2, "log_prob", "allocated", round(12.5 * GIB)),
        (2, "log_prob", "reserved", 40 * GIB),
        (3, "weight_sync", "freed", round(46.5 * GIB)),
        (3, "weight_sync", "still_used", 26 * GIB),
        (4, "unknown", "allocated", round(14.5 * GIB)),
        (4, "unknown", "reserved", 15 * GIB),
        (5, "unknown", "used", 40536 * MIB),
        (6, "unknown", "allocated", 12345 * MIB),
    ]


def test_words_of_a_shortage_on_every_line_cost_no_more_than_the_lines() -> None:
    said = "[response] the user's training died with CUDA out of memory at a batch of {}, and then it worked.\n"
    begun = time.process_time()
    judge("".join(map(said.format, range(1_000))))
    assert time.process_time() - begun < 5  # quadratic work takes several times as much
