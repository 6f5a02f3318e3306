"""The scan finds the same whatever the pieces are that it reads, and its memory and time stay bounded."""

import bz2
import gzip
import io
import lzma
import os
import threading
import time
import tracemalloc
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.crash import scan as scanning
from advisor.crash.patterns import Catalogue
from advisor.crash.scan import Scanned, scan
from advisor.crash.sources import LogSource, open_sources
from tests.heavy import examples, sampled

from .known import SIGNATURES

READY = Catalogue(SIGNATURES)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 9.00 GiB "
    "of which 1.00 GiB is free."
)
SAMPLES = [entry.sample for entry in SIGNATURES.signatures]
PREFIXES = ["", "(WorkerDict pid=1) ", "\x1b[36m(A pid=2, ip=1.1.1.1)\x1b[0m ", "[rank3]: "]
FILLERS = [
    "step:1 - actor/loss:0.1\n" * 40,
    "".join(f"\r{done}%|##| {done}/99" for done in range(60)),
    "x" * 3_000,
    "out of memory " * 200,
    "the run may go out of memory\n" * 30,
    "Out of \x1b[31mmemory\x1b[0m: Killed\x1b[0m process 12 (python)\n",
]


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """A few messages behind prefixes, between ordinary and less ordinary lines."""
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 10))):
        prefix = draw(st.sampled_from(PREFIXES))
        text = draw(st.one_of(st.sampled_from(SAMPLES), st.sampled_from(FILLERS)))
        parts += [f"{prefix}{line}" for line in text.split("\n")]
    return draw(st.sampled_from(["\n", "\r\n"])).join(parts).encode()


def scanned(data: bytes, chunk: int, monkeypatch: pytest.MonkeyPatch) -> Scanned:
    with monkeypatch.context() as patched:
        patched.setattr(scanning, "CHUNK", chunk)
        return scan(LogSource("made", lambda: io.BytesIO(data)), READY)


@settings(max_examples=examples(40), deadline=None)
@given(data=logs(), chunk=st.integers(1, 4_000))
def test_all_is_the_same_wherever_the_log_is_cut(data, chunk):
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert scanned(data, chunk, monkeypatch) == scanned(data, len(data) + 1, monkeypatch)


def test_a_long_log_is_the_same_wherever_it_is_cut(monkeypatch):
    block = "".join(
        f"{PREFIXES[i % 4]}{SAMPLES[i % len(SAMPLES)]}\n{FILLERS[i % 5]}\n" for i in range(len(SAMPLES))
    ).encode()
    data = block + b"an ordinary line\n" * 60_000 + block[:150_000] + OOM.encode()
    assert scanned(data, 70_001, monkeypatch) == scanned(data, len(data) + 1, monkeypatch)


def test_line_numbers_are_those_of_a_simple_count(monkeypatch):
    lines = [OOM if number % 7_001 == 0 else f"\r{number}%\r line {number}" for number in range(1, 50_001)]
    found = scanned("\n".join(lines).encode(), 60_000, monkeypatch)
    assert [find.first.number for find in found.finds] == [7_001 * i for i in range(1, 8)]
    assert found.lines_read == 50_000


class _Repeated(io.RawIOBase):
    """`piece` again and again, `count` bytes in all, then `last`; nothing of it is held."""

    def __init__(self, piece: bytes, count: int, last: bytes) -> None:
        self.piece, self.left, self.last = piece, count, last

    def readable(self) -> bool:
        return True

    def readinto(self, room) -> int:
        if self.left <= 0:
            size = min(len(room), len(self.last))
            room[:size], self.last = self.last[:size], self.last[size:]
            return size
        size = min(len(room), len(self.piece))
        room[:size] = self.piece[:size]
        self.left -= size
        return size


MONSTERS = {
    "a line of anchors": b"CUDA out of memory. Tried to allocate 2.00 GiB. Killed process " * 4_096,
    "a line of nothing": b"x" * 262_144,
    "redraws": b"50%|##    | 1/2\r" * 16_384,
    "NUL bytes": b"line\n" * 900 + bytes(200_000),
    "broken UTF-8": b"\xff\xfe\xc3\x28 text\n" * 20_000,
    "empty lines": b"\n" * 100_000,
    "lines": b"(WorkerDict pid=9) step went on as usual, nothing to see here\n" * 4_000,
    "short lines of bytes": b"\0\xffab\n" * 30_000,
    "a flood of causes": b"RuntimeError: CUDA out of memory.\n" * 500,
}


WORST = "broken UTF-8"
"""What takes most memory, which is counted at three times the time that reading takes."""


@pytest.mark.parametrize(
    ("name", "counted"),
    sampled([*((name, name == WORST) for name in MONSTERS), *((name, True) for name in MONSTERS)], len(MONSTERS)),
)
def test_memory_stays_bounded_and_the_message_behind_is_found(name, counted):
    size = {"a flood of causes": 200_000, "short lines of bytes": 250_000}.get(name, (4 if counted else 1) << 20)
    last = b"\n" + OOM.encode() + b"\n"
    source = LogSource("made", lambda: _Repeated(MONSTERS[name], size, last))  # type: ignore[arg-type]
    begun = time.process_time()
    if counted:
        tracemalloc.start()
    found = scan(source, READY)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.finds[-1].signature.id == "torch-oom"
    assert size + len(last) <= found.bytes_read < size + len(MONSTERS[name]) + len(last)
    assert peak < 24 << 20
    assert time.process_time() - begun < 20


def test_an_endless_line_is_searched_only_as_far_as_it_tells_something(monkeypatch):
    searched = []
    search = scanning.Searcher.search

    def counted(self, window, at):
        searched.append(window.size - at)
        return search(self, window, at)

    monkeypatch.setattr(scanning.Searcher, "search", counted)
    line = MONSTERS["a line of anchors"]
    scan(LogSource("made", lambda: _Repeated(line, 32 << 20, b"\n" + OOM.encode())), READY)  # type: ignore[arg-type]
    assert sum(searched) < 8 << 20


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, partial(bz2.compress, compresslevel=1)], ids=["gz", "xz", "bz2"]
)
def test_a_packed_log_tells_what_the_plain_one_tells(tmp_path, pack):
    data = (f"a line\n{FILLERS[0]}" * 2_000 + OOM).encode()
    plain, packed = tmp_path / "a.log", tmp_path / "a.log.packed"
    plain.write_bytes(data)
    packed.write_bytes(pack(data))
    one, other = (scan(open_sources([path])[0], READY) for path in (plain, packed))
    assert one.finds == other.finds
    assert one.lines_read == other.lines_read


def test_a_pipe_is_read_as_slowly_as_it_is_written(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            for part in (OOM[:30], OOM[30:], "\n", "more\n" * 5):
                pipe.write(part.encode())
                time.sleep(0.01)

    writer = threading.Thread(target=write)
    writer.start()
    found = scan(open_sources([path])[0], READY)
    writer.join()
    assert [find.signature.id for find in found.finds] == ["torch-oom"]
    assert found.lines_read == 6
