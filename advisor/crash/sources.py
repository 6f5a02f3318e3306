"""Where logs come from: files, standard input, .gz/.xz/.zst, and folders of logs. All of them become streams of bytes.

Reading is bounded: chunks of 1 MiB, never a whole file.
"""

from __future__ import annotations

import fnmatch
import gzip
import io
import lzma
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from advisor.hostile import clean_line

CHUNK = 1 << 20
FILES_IN_FOLDER = 64
PATIENCE = 5.0
"""Seconds within which somebody has to begin writing to a named pipe."""
_LINE_BEGINS_WITHIN = 1 << 16
_ENTRIES = 20_000
_MAGIC = {
    b"\x7fELF": "a program",
    b"PK\x03\x04": "a zip archive or a torch checkpoint",
    b"\x89PNG": "a picture",
    b"\x80\x02": "a pickle",
    b"\x80\x03": "a pickle",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"%PDF": "a PDF",
    b"SQLite format": "a database",
    b"\x93NUMPY": "a numpy array",
}
_WANTED = (
    ("worker-*.err", "worker-*.out", "job-driver-*.log", "raylet.out", "raylet.err"),
    ("slurm-*.out", "slurm-*.err", "stderr.log", "stdout.log", "error.json", "output.log", "nohup.out"),
    ("*.log", "*.out", "*.err", "log*.txt", "*.log.*", "kern*", "dmesg*", "messages", "*.txt"),
)
_UNWANTED = (
    *("python-core-*", "dashboard*", "monitor.*", "log_monitor.*", "gcs_server.*", "*agent*", "ray_client*"),
    *("debug*.log", "runtime_env*", "requirements*", "*.pkl"),
)


class LogError(Exception):
    """A log that cannot be read: one sentence saying which and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """One stream of log bytes. `open` raises OSError where the file has gone."""

    name: str
    open: Callable[[], BinaryIO]
    path: Path | None = None

    @property
    def size(self) -> int | None:
        """Bytes of a plain file as it lies on disk; None for pipes, standard input and what has gone."""
        try:
            found = os.stat(self.path) if self.path is not None else None
        except OSError:
            return None
        return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None


def open_sources(paths: Sequence[Path]) -> list[Source]:
    """What the paths name, in their order; a folder becomes its logs. Raises LogError for what cannot be read."""
    found: list[Source] = []
    for path in paths:
        if str(path) == "-":
            found.append(Source("standard input", _standard_input))
        elif path.is_dir():
            found.extend(_file_source(file) for file in _logs_in(path))
        else:
            _check(path)
            found.append(_file_source(path))
    return found


def text_source(text: str, name: str) -> Source:
    """A log already in memory."""
    data = text.encode("utf-8", "surrogateescape")
    return Source(name, lambda: io.BytesIO(data))


def read_chunks(source: Source) -> Iterator[bytes]:
    """The bytes of a source, decompressed, 1 MiB at most at a time.

    A compressed file that breaks off yields what could be read; one that yields nothing raises LogError, as does a
    binary file.
    """
    begun = False
    try:
        with source.open() as stream:
            left = _length(stream)
            while left > 0 and (chunk := stream.read(min(CHUNK, left))):
                if not begun:
                    _refuse_binary(chunk, source.name)
                begun = True
                left -= len(chunk)
                yield chunk
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as problem:
        if not begun:
            raise LogError(f"{clean_line(source.name)}: cannot be read ({_reason(problem)})") from problem


def _length(stream: BinaryIO) -> int:
    """Bytes to read: of a plain file what it holds now, whatever is written to it meanwhile; else all there will be."""
    if not isinstance(stream, io.FileIO):
        return sys.maxsize
    found = os.fstat(stream.fileno())
    return found.st_size - stream.tell() if stat.S_ISREG(found.st_mode) and found.st_size else sys.maxsize


def _reason(problem: BaseException) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror.lower()
    return clean_line(str(problem), 200) or type(problem).__name__


def _check(path: Path) -> None:
    shown = clean_line(str(path))
    if not path.exists():
        raise LogError(f"{shown}: there is no such file or folder")
    if not os.access(path, os.R_OK):
        raise LogError(f"{shown}: you are not allowed to read it")


def _file_source(path: Path) -> Source:
    return Source(clean_line(str(path)), lambda: _opened(path), path)


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") if path.is_file() else io.BytesIO() as file:
        magic = file.read(6)
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if magic == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        return _zstandard(path)
    return path.open("rb", buffering=0) if path.is_file() else _pipe(path)


def _pipe(path: Path) -> BinaryIO:
    """A named pipe, once somebody writes to it. Raises LogError where nobody does for PATIENCE seconds."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    if not waiting.poll(PATIENCE * 1000):
        os.close(handle)
        raise LogError(f"{clean_line(str(path))}: nobody writes to this pipe")
    os.set_blocking(handle, True)
    return open(handle, "rb", buffering=0)


def tail_source(source: Source, length: int) -> Source | None:
    """The last `length` bytes of a plain file that is longer, from the beginning of a line; None for anything else."""
    size, path = source.size, source.path
    if path is None or size is None or size <= length:
        return None
    with source.open() as stream:
        if not isinstance(stream, io.FileIO):
            return None
    return Source(source.name, lambda: _tail(path, length), path)


def _tail(path: Path, length: int) -> BinaryIO:
    stream = path.open("rb", buffering=0)
    start = max(os.fstat(stream.fileno()).st_size - length, 0)
    stream.seek(start)
    begin = stream.read(_LINE_BEGINS_WITHIN)
    stream.seek(start + begin.find(b"\n") + 1)
    return stream


def _zstandard(path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise LogError(
            f"{clean_line(str(path))}: reading .zst needs the zstandard package (pip install 'rl-oom-advisor[zstd]')"
        ) from None
    return cast(BinaryIO, zstandard.open(path, "rb"))


def _standard_input() -> BinaryIO:
    return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False), CHUNK)


def _refuse_binary(chunk: bytes, name: str) -> None:
    kind = next((kind for magic, kind in _MAGIC.items() if chunk.startswith(magic)), None)
    sample = chunk[:8192]
    if kind is None and sample.count(0) > len(sample) * 0.3:
        kind = "binary data"
    if kind:
        raise LogError(f"{clean_line(name)}: this is {kind}, not a log")


def _logs_in(folder: Path) -> list[Path]:
    """The text logs of a Ray session, torchelastic, Slurm, W&B or plain folder: telling names first, then newest."""
    ranked: list[tuple[int, float, Path]] = []
    seen = 0
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            seen += 1
            rank = _rank(name)
            path = Path(root, name)
            if rank is not None and path.is_file():
                ranked.append((rank, -path.stat().st_mtime, path))
        if seen > _ENTRIES:
            break
    if not ranked:
        raise LogError(f"{clean_line(str(folder))}: no log was found in this folder")
    return [path for _, _, path in sorted(ranked)[:FILES_IN_FOLDER]]


def _rank(name: str) -> int | None:
    plain = name.removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")
    if any(fnmatch.fnmatch(plain, pattern) for pattern in _UNWANTED):
        return None
    return next(
        (i for i, group in enumerate(_WANTED) if any(fnmatch.fnmatch(plain, pattern) for pattern in group)), None
    )
