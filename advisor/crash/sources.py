"""Opens logs: files, standard input, .gz/.bz2/.xz/.zst, folders of logs. All become streams of bytes.

Reading is bounded: into room that the caller has, never a whole file.
"""

from __future__ import annotations

import bz2
import fnmatch
import gzip
import io
import lzma
import os
import select
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, cast

from msgspec import Struct
from msgspec.structs import replace

from advisor.hostile import clean_line
from advisor.language import mark, say

_BUFFER = 1 << 20
SAMPLE = 8192
PREVIEWS = 64 << 10, 2 << 20
"""Bytes at the end of a log that is longer than the second that are read first, in some 50 ms, and where those show
no shortage: the last tracebacks of a hundred ranks."""
FILES_IN_FOLDER = 64
PATIENCE = 5.0
"""Seconds within which somebody has to begin writing to a named pipe."""
_LINE_BEGINS_WITHIN = 1 << 16
_ENTRIES = 20_000
_END = 1 << 16
_OF_ONE_RUN = 3600.0
"""Seconds within which the ranks of one run end (judgement)."""
_BAD_ENDS = (b"out of memory", b"outofmemory", b"oom", b"killed", b"memoryerror", b"sigkill")
_NEVER_PRINTED = bytes([*range(1, 7), *range(14, 27), *range(28, 32)])
_MAGIC = {
    b"\x7fELF": mark("a program"),
    b"PK\x03\x04": mark("a zip archive or a torch checkpoint"),
    b"\x89PNG": mark("a picture"),
    b"\x80\x02": mark("a pickle"),
    b"\x80\x03": mark("a pickle"),
    b"\x80\x04": mark("a pickle"),
    b"\x80\x05": mark("a pickle"),
    b"%PDF": mark("a PDF"),
    b"SQLite format": mark("a database"),
    b"\x93NUMPY": mark("a numpy array"),
}
_WIDE = {
    **dict.fromkeys(("utf-32-le", "utf-32-be"), mark("UTF-32 text (save it as UTF-8)")),
    **dict.fromkeys(("utf-16-le", "utf-16-be"), mark("UTF-16 text (save it as UTF-8)")),
}
"""Encodings of more than one byte a character → what a text in them is called."""
_WANTED = (
    ("worker-*.err", "worker-*.out", "job-driver-*.log", "raylet.out", "raylet.err"),
    ("slurm-*.out", "slurm-*.err", "stderr.log", "stdout.log", "error.json", "output.log", "nohup.out"),
    ("*.log", "*.out", "*.err", "log*.txt", "*log.txt", "*.log.*", "kern*", "dmesg*", "messages", "journal*"),
    ("*.txt",),
)
"""What logs are called, most telling first. The last ones are read only where no other is."""
_UNWANTED = (
    *("python-core-*", "dashboard*", "monitor.*", "log_monitor.*", "gcs_server.*", "*agent*", "ray_client*"),
    *("debug*.log", "runtime_env*", "requirements*", "*.pkl", "*.py", "*.patch", "*.diff", "*.md"),
    *("readme*", "license*", "plan*", "expected*", "golden*", "config*"),
)


class LogError(Exception):
    """A log that cannot be read: one sentence saying which and why."""


class LogSource(Struct, frozen=True):
    """One stream of log bytes. `open` raises OSError where the file has gone."""

    name: str
    open: Callable[[], BinaryIO]
    path: Path | None = None
    is_part: bool = False
    """It does not begin where the log does."""
    left_out: int = 0
    """Logs of the same folder that are not read, told by the first that is."""

    @property
    def changed(self) -> float:
        """When a file was last written to, in seconds; 0 for standard input and what has gone."""
        found = self._stat()
        return found.st_mtime if found is not None else 0.0

    @property
    def size(self) -> int | None:
        """Bytes of a plain file as it lies on disk; None for pipes, standard input and what has gone."""
        found = self._stat()
        return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None

    def _stat(self) -> os.stat_result | None:
        try:
            return os.stat(self.path) if self.path is not None else None
        except OSError:
            return None


def open_sources(paths: Sequence[Path]) -> list[LogSource]:
    """What the paths name, in their order; a folder becomes its logs. Raises LogError for what cannot be read."""
    found: list[LogSource] = []
    for path in paths:
        if str(path) == "-":
            found.append(LogSource(say("standard input"), _standard_input))
        elif path.is_dir():
            files, left_out = _logs_in(path)
            logs = [_file_source(file) for file in files]
            found += [replace(logs[0], left_out=left_out), *logs[1:]]
        else:
            if not path.exists():
                raise LogError(say("{file}: there is no such file or folder", file=clean_line(str(path))))
            if not os.access(path, os.R_OK):
                raise LogError(say("{file}: you are not allowed to read it", file=clean_line(str(path))))
            found.append(_file_source(path))
    return found


def text_source(text: str, name: str, path: Path | None = None) -> LogSource:
    """A log already in memory. `path`: where it was read from."""
    data = text.encode("utf-8", "surrogateescape")
    return LogSource(name, lambda: io.BytesIO(data), path)


def _file_source(path: Path) -> LogSource:
    return LogSource(clean_line(str(path)), lambda: _opened(path), path)


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") if path.is_file() else io.BytesIO() as file:
        magic = file.read(6)
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if magic[:3] == b"BZh":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if magic == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if magic[:4] == b"\x28\xb5\x2f\xfd":
        return _zstandard(path)
    return path.open("rb", buffering=0) if path.is_file() else _pipe(path)


def _pipe(path: Path) -> BinaryIO:
    """A named pipe, once somebody writes to it. Raises LogError where nobody does for PATIENCE seconds, and for a
    device, which has no end, unless it is a terminal or holds nothing."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode = os.fstat(handle).st_mode
    if (stat.S_ISBLK(mode) or stat.S_ISCHR(mode)) and not os.isatty(handle) and os.read(handle, 1):
        os.close(handle)
        raise LogError(say("{file}: this is a device, not a log", file=clean_line(str(path))))
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    if not waiting.poll(PATIENCE * 1000):
        os.close(handle)
        raise LogError(say("{file}: nobody writes to this pipe", file=clean_line(str(path))))
    os.set_blocking(handle, True)
    return open(handle, "rb", buffering=0)


def tail_source(source: LogSource, length: int) -> LogSource | None:
    """The last `length` bytes of a plain file that is longer, from the beginning of a line; None for anything else.
    Raises LogError for what is no log."""
    size, path = source.size, source.path
    if path is None or size is None or size <= length:
        return None
    with source.open() as stream:
        if not isinstance(stream, io.FileIO):
            return None
        refuse_binary(stream.read(SAMPLE), SAMPLE, source.name)
    return LogSource(source.name, lambda: _tail(path, length), path, is_part=True)


def _tail(path: Path, length: int) -> BinaryIO:
    stream = path.open("rb", buffering=0)
    start = max(os.fstat(stream.fileno()).st_size - length, 0)
    stream.seek(start)
    begin = stream.read(_LINE_BEGINS_WITHIN)
    stream.seek(start + begin.find(b"\n") + 1)
    return stream


def _zstandard(path: Path) -> BinaryIO:
    for module in ("compression.zstd", "zstandard"):  # the first comes with Python from 3.14 on
        with suppress(ImportError):
            return cast(BinaryIO, import_module(module).open(path, "rb"))
    shown = clean_line(str(path))
    raise LogError(
        say("{file}: reading .zst needs the zstandard package (pip install 'rl-oom-advisor[zstd]')", file=shown)
    )


def _standard_input() -> BinaryIO:
    return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False), _BUFFER)


def refuse_binary(sample: bytes, count: int, name: str) -> None:
    """Raise LogError for what is no text. Holes, as a log has that was cut while it was written to, make no binary."""
    sample = sample[:count]
    text = sample.replace(b"\0", b"")
    if not text and len(sample) == SAMPLE:
        return
    kind = next((kind for magic, kind in _MAGIC.items() if sample.startswith(magic)), None)
    if kind is None and (not text or len(text) - len(text.translate(None, _NEVER_PRINTED)) > len(text) * 0.05):
        kind = mark("binary data")
    wide = next((name for name in _WIDE if _is_text_in(name, sample)), None)
    if wide is not None:
        kind = _WIDE[wide]
    if kind:
        raise LogError(say("{file}: this is {kind}, not a log", file=clean_line(name), kind=say(kind)))


def _is_text_in(encoding: str, sample: bytes) -> bool:
    """Whether a sample is text in two or four bytes a character: decoded it is printable, with most of its line breaks.
    (Bytes that are text as they stand pair up to printable signs, too, but their line breaks are lost on the way.)"""
    if b"\0" not in sample:
        return False
    width = 4 if "32" in encoding else 2
    decoded = sample[: len(sample) // width * width].decode(encoding, "replace")
    if len(decoded) < 8 and not decoded.startswith("\ufeff"):
        return False
    decoded = decoded.lstrip("\ufeff")
    odd = sum(one == "\ufffd" or (not one.isprintable() and one not in "\r\n\t\x1b") for one in decoded)
    return odd < 0.02 * len(decoded) and (decoded.isascii() or 2 * decoded.count("\n") > sample.count(b"\n"))


def _logs_in(folder: Path) -> tuple[list[Path], int]:
    """The text logs of a Ray session, torchelastic, Slurm, W&B or plain folder, and how many more there are. Telling
    names first, then newest; of more than are read those of the last hour that end in a failure first, the earliest of
    them before the rest: of many ranks it is the one that died first."""
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
        raise LogError(say("{file}: no log was found in this folder", file=clean_line(str(folder))))
    ranked.sort()
    logs = [each for each in ranked if each[0] < len(_WANTED) - 1] or ranked
    if len(logs) > FILES_IN_FOLDER:
        newest = min(each[1] for each in logs)
        died = {each for each in logs if each[1] - newest < _OF_ONE_RUN and _ends_badly(each[2])}
        logs.sort(key=lambda each: (each not in died, -each[1] if each in died else each[1]))
    return [path for _, _, path in logs[:FILES_IN_FOLDER]], max(0, len(logs) - FILES_IN_FOLDER)


def _ends_badly(path: Path) -> bool:
    """Whether the last part of a log speaks of memory that ran out, or of a kill."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _END))
            end = file.read(_END).lower()
    except OSError:
        return False
    return any(word in end for word in _BAD_ENDS)


def _rank(name: str) -> int | None:
    plain = name.lower().removesuffix(".gz").removesuffix(".bz2").removesuffix(".xz").removesuffix(".zst")
    if any(fnmatch.fnmatch(plain, pattern) for pattern in _UNWANTED):
        return None
    return next(
        (i for i, group in enumerate(_WANTED) if any(fnmatch.fnmatch(plain, pattern) for pattern in group)), None
    )
