"""Tells which vendors' drivers a box has, and runs their own tools, never longer than a driver that answers needs."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Generic, TypeVar

from advisor.machine.inventory import Gpu, bytes_held

PATIENCE = 20.0
"""Seconds: these tools take one or two; of a driver that hangs they wait for ever."""
LONGEST = 1 << 20
"""Characters of an answer; sixteen cards with their processes take some ten thousand."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool printed. `missing`: it is not there; `hangs`: it did not end in time."""

    text: str = ""
    missing: bool = False
    hangs: bool = False


RunTool = Callable[[Sequence[str]], ToolAnswer]


def run_tool(words: Sequence[str], patience: float = PATIENCE, environ: Mapping[str, str] | None = None) -> ToolAnswer:
    """The answer of a command, both streams together; nothing is raised, and nobody waits for one that hangs."""
    environ = os.environ if environ is None else environ
    program = find_tool(words[0], environ)
    if program is None:
        return ToolAnswer(missing=True)
    try:
        process = subprocess.Popen(  # noqa: S603 - a driver's tool by its name, with words of ours
            [program, *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**environ, "LC_ALL": "C"},
            start_new_session=True,  # a signal for the watched run is none for it
        )
    except OSError:
        return ToolAnswer(missing=True)
    try:
        printed, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()  # one that waits in the kernel stays; nobody waits for it
        if process.stdout is not None:
            with suppress(OSError):
                process.stdout.close()
        return ToolAnswer(hangs=True)
    return ToolAnswer(printed[:LONGEST].decode("utf-8", "replace"))


FRESH_SECONDS = 2.0
"""A reading takes about a second, some of it of a processor: in between, the last one stands."""


@dataclass(slots=True)
class ToolReader:
    """Reads the cards that a vendor's tool prints, all of them at once. Not thread-safe: one thread owns it."""

    words: Sequence[str]
    read: Callable[[str], tuple[tuple[Gpu, ...], str]]
    """What is printed → the cards and the driver's version."""
    troubles: Mapping[str, str]
    """"missing", "hangs", "unread", or a code that the tool prints, "-8005" → the sentence that says why."""
    run: RunTool = run_tool
    clock: Callable[[], float] = time.monotonic
    driver: str = ""
    _last: tuple[Gpu, ...] = ()
    _read_at: float = float("-inf")

    def open(self) -> str | None:
        """Ask once. Returns None, or the sentence that says why no card is read."""
        answer = self.run(self.words)
        if answer.missing or answer.hangs:
            return self.troubles["missing" if answer.missing else "hangs"]
        (self._last, self.driver), self._read_at = self.read(answer.text), self.clock()
        code = next((code for code in self.troubles if code[0] == "-" and code in answer.text), "unread")
        return None if self._last else self.troubles[code]

    def snapshot(self, slow: bool = True, processes: bool = True) -> tuple[Gpu, ...]:
        """All cards now; within `FRESH_SECONDS` the last reading again."""
        if self.clock() - self._read_at >= FRESH_SECONDS:
            answer = self.run(self.words)
            found = {gpu.index: gpu for gpu in self.read(answer.text)[0]}
            lost = self.troubles["hangs" if answer.hangs else "unread"]
            silent = (Gpu(gpu.index, gpu.name, None, problem=lost, vendor=gpu.vendor) for gpu in self._last)
            self._last = tuple(found.get(gpu.index, gpu) for gpu in silent)
            self._read_at = self.clock()
        return self._last

    def used(self) -> list[int | None]:
        return [gpu.used_bytes for gpu in self.snapshot()]

    def holders(self) -> dict[tuple[int, int], int]:
        return bytes_held((gpu.index, gpu.processes) for gpu in self.snapshot())

    def close(self) -> None:
        """Nothing is held between two readings."""
        self._last, self._read_at = (), float("-inf")


_PLACES = ("/usr/local/sbin", "/usr/local/bin", "/opt/rocm/bin", "/usr/local/Ascend/driver/tools")
"""Where drivers put their tools: a user's PATH need not have it."""


def find_tool(name: str, environ: Mapping[str, str]) -> str | None:
    """The program's path, on PATH or where drivers put it; None where there is none."""
    return shutil.which(name, path=os.pathsep.join([environ.get("PATH", ""), *_PLACES]))


def has_amd(environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether the compute driver of AMD, or its tool, is here."""
    return (root / "dev/kfd").exists() or find_tool("rocm-smi", environ) is not None


def has_ascend(environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether the driver of Ascend, or its tool, is here."""
    return (root / "dev/davinci_manager").exists() or find_tool("npu-smi", environ) is not None


def has_nvidia() -> bool:
    """Whether the library is here that pynvml loads. To import pynvml, which says the same, takes 15 ms."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def any_driver() -> bool:
    """Whether a driver of any vendor may answer, asked without its Python modules."""
    return has_nvidia() or has_amd(os.environ) or has_ascend(os.environ)


T = TypeVar("T")


class ThreadResult(Generic[T]):
    """What a call in another thread came to: nothing yet, a value, or what it raised."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self.problem: Exception | None = None

    def __enter__(self) -> ThreadResult[T]:
        return self

    def __exit__(self, _: object, problem: BaseException | None, __: TracebackType | None) -> bool:
        """Keep the problem instead of ending the thread with it: `take` raises it in the caller's thread."""
        self.problem = problem if isinstance(problem, Exception) else None
        return self.problem is not None

    def take(self) -> T | None:
        """The value, None where there is none yet. Raises what the call raised."""
        if self.problem is not None:
            raise self.problem
        return self.values[0] if self.values else None


def run_in_thread(call: Callable[[], T], done: Callable[[ThreadResult[T]], None]) -> Thread:
    """Run `call` in a daemon thread, then `done` with its result in that same thread."""

    def run() -> None:
        with result:
            result.values.append(call())
        done(result)

    result: ThreadResult[T] = ThreadResult()
    thread = Thread(target=run, daemon=True)
    thread.start()
    return thread


def call_with_timeout(seconds: float, call: Callable[[], T]) -> T | None:
    """What `call` returns or raises; None after `seconds`, and its thread goes on by itself."""
    return all_within(seconds, [call])[0]


def all_within(seconds: float, calls: Sequence[Callable[[], T]]) -> list[T | None]:
    """The same of several calls at once, so that one that hangs keeps none from answering."""
    results: list[list[ThreadResult[T]]] = [[] for _ in calls]
    threads = [run_in_thread(call, place.append) for call, place in zip(calls, results, strict=True)]
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return [place[0].take() if place else None for place in results]
