"""torch's memory snapshots (`torch.cuda.memory._dump_snapshot`): who held the card, told as lines of text.

A snapshot is a pickle, and a pickle can run anything. This reader is no unpickler: it knows only the opcodes that make
dictionaries, lists, tuples, strings and numbers, and refuses a file at the first other one. Nothing can be imported,
called or built with it, whatever the file holds.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from advisor.crash.sources import LogError, LogSource, text_source
from advisor.hostile import clean_line
from advisor.language import mark, say
from advisor.units import KIB, show_bytes

LIMIT = 64 << 20
"""Bytes of a snapshot that are read; larger ones are refused."""
_STEPS = 40_000_000
"""Opcodes that are followed."""
HOLDERS = 12
_FRAMES = 40
_DEVICES = 64
_VISITED = 5_000_000
"""Blocks and trace entries that are looked at: a small file may name one list a million times."""
_MAGIC = tuple(bytes((0x80, protocol)) for protocol in (2, 3, 4, 5))
_MARK = object()
_NOT_PLAIN = mark("it holds more than dictionaries, lists, strings and numbers")
_BROKEN = mark("it is broken")
_BREAKS_OFF = mark("it breaks off")


class RefusedPickleError(Exception):
    """A pickle that is no plain data, or too large, or broken: why, as the end of a sentence."""


def is_pickle(path: Path) -> bool:
    """Whether a file begins like a pickle of protocol 2 or later."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) in _MAGIC


def readable(source: LogSource) -> LogSource:
    """A source as it is, or, where it is a memory snapshot, its lines. Raises LogError as `snapshot_text`."""
    if source.path is None or not is_pickle(source.path):
        return source
    return text_source(snapshot_text(source.path), source.name)


def snapshot_text(path: Path) -> str:
    """A snapshot as lines: failed allocations with their frames, what each card held, and the largest holders.

    Raises LogError, one sentence, for a file that is too large, is not plain data, or is no snapshot of torch's.
    """
    shown = clean_line(str(path))
    if path.stat().st_size > LIMIT:
        most = {"file": shown, "most": LIMIT >> 20}
        raise LogError(
            say("{file}: a memory snapshot of more than {most} MiB is not read (record fewer entries)", **most)
        )
    try:
        held = plain_data(path.read_bytes())
    except RefusedPickleError as refused:
        text = mark("{file}: this is a pickle, not a log, and no snapshot that can be read: {reason}")
        raise LogError(say(text, file=shown, reason=refused)) from None
    if not isinstance(held, dict) or not isinstance(held.get("segments"), list):
        text = mark("{file}: this is a pickle, not a log, and no memory snapshot of torch's (no list of segments)")
        raise LogError(say(text, file=shown))
    return "".join(f"{clean_line(line)}\n" for line in _text_lines(held))


# --- The pickle ------------------------------------------------------------------------------------------------------


def plain_data(data: bytes) -> Any:
    """The dictionaries, lists, tuples, strings, bytes and numbers of a pickle. Raises RefusedPickleError."""
    try:
        return _PickleMachine(data).run()
    except (IndexError, struct.error, ValueError, TypeError, KeyError, UnicodeDecodeError) as problem:
        raise RefusedPickleError(say(_BROKEN)) from problem


class _PickleMachine(Struct):
    """The part of pickle's stack machine that makes plain data."""

    data: bytes
    at: int = 0
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def run(self) -> Any:
        data, size = self.data, len(self.data)
        for _ in range(_STEPS):
            if self.at >= size:
                raise RefusedPickleError(say(_BREAKS_OFF))
            opcode = data[self.at]
            self.at += 1
            if opcode == 0x2E:  # STOP
                return self.stack.pop()
            step = _OPCODES.get(opcode)
            if step is None:
                raise RefusedPickleError(say(_NOT_PLAIN))
            step(self)
        raise RefusedPickleError(say("it is too long"))

    def take(self, count: int) -> bytes:
        end = self.at + count
        if count < 0 or end > len(self.data):
            raise RefusedPickleError(say(_BREAKS_OFF))
        taken, self.at = self.data[self.at : end], end
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def signed(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little", signed=True)

    def text(self, count: int) -> str:
        return self.take(self.number(count)).decode("utf-8", "surrogatepass")

    def pop(self, count: int) -> list[Any]:
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        stack = self.stack
        for index in range(len(stack) - 1, -1, -1):
            if stack[index] is _MARK:
                items = stack[index + 1 :]
                del stack[index:]
                return items
        raise RefusedPickleError(say(_BROKEN))

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        keys = items[::2]  # hashing anything nested may take for ever
        if not isinstance(target, dict) or len(items) % 2 or not all(isinstance(key, (str, int)) for key in keys):
            raise RefusedPickleError(say(_NOT_PLAIN))
        target.update(zip(keys, items[1::2], strict=True))

    def append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, list):
            raise RefusedPickleError(say(_BROKEN))
        target.extend(items)

    def remember(self, key: int) -> None:
        self.memo[key] = self.stack[-1]


def _push(make: Callable[[_PickleMachine], Any]) -> Callable[[_PickleMachine], None]:
    return lambda machine: machine.stack.append(make(machine))


_OPCODES: dict[int, Callable[[_PickleMachine], object]] = {
    0x80: lambda machine: machine.take(1),  # PROTO
    0x95: lambda machine: machine.take(8),  # FRAME
    ord("("): _push(lambda machine: _MARK),
    ord("N"): _push(lambda machine: None),
    0x88: _push(lambda machine: True),
    0x89: _push(lambda machine: False),
    ord("K"): _push(lambda machine: machine.number(1)),
    ord("M"): _push(lambda machine: machine.number(2)),
    ord("J"): _push(lambda machine: machine.signed(4)),
    0x8A: _push(lambda machine: machine.signed(machine.number(1))),
    0x8B: _push(lambda machine: machine.signed(machine.number(4))),
    ord("G"): _push(lambda machine: struct.unpack(">d", machine.take(8))[0]),
    0x8C: _push(lambda machine: machine.text(1)),
    ord("X"): _push(lambda machine: machine.text(4)),
    0x8D: _push(lambda machine: machine.text(8)),
    ord("C"): _push(lambda machine: machine.take(machine.number(1))),
    ord("B"): _push(lambda machine: machine.take(machine.number(4))),
    0x8E: _push(lambda machine: machine.take(machine.number(8))),
    ord("}"): _push(lambda machine: {}),
    ord("]"): _push(lambda machine: []),
    ord(")"): _push(lambda machine: ()),
    ord("t"): _push(lambda machine: tuple(machine.marked())),
    0x85: _push(lambda machine: tuple(machine.pop(1))),
    0x86: _push(lambda machine: tuple(machine.pop(2))),
    0x87: _push(lambda machine: tuple(machine.pop(3))),
    ord("s"): lambda machine: machine.set_items(machine.pop(2)),
    ord("u"): lambda machine: machine.set_items(machine.marked()),
    ord("a"): lambda machine: machine.append([machine.stack.pop()]),
    ord("e"): lambda machine: machine.append(machine.marked()),
    0x94: lambda machine: machine.remember(len(machine.memo)),
    ord("q"): lambda machine: machine.remember(machine.number(1)),
    ord("r"): lambda machine: machine.remember(machine.number(4)),
    ord("h"): _push(lambda machine: machine.memo[machine.number(1)]),
    ord("j"): _push(lambda machine: machine.memo[machine.number(4)]),
}


# --- The snapshot ----------------------------------------------------------------------------------------------------


def _text_lines(held: dict[Any, Any]) -> Iterator[str]:
    yield "memory snapshot of torch's allocator"
    budget = iter(range(_VISITED))
    for device, trace in enumerate(_list(held.get("device_traces"))[:_DEVICES]):
        for entry, _ in zip(_list(trace), budget, strict=False):
            if isinstance(entry, dict) and entry.get("action") == "oom":
                yield from _failure(device, entry)
    segments = [one for one, _ in zip(_list(held.get("segments")), budget, strict=False) if isinstance(one, dict)]
    for device in sorted({_int(segment.get("device")) for segment in segments})[:_DEVICES]:
        yield from _holding(device, [one for one in segments if _int(one.get("device")) == device], budget)


def _failure(device: int, entry: dict[Any, Any]) -> Iterator[str]:
    yield "Traceback (most recent call last):"
    for frame in reversed(_frames(entry)):
        yield f'  File "{frame[0]}", line {frame[1]}, in {frame[2]}'
    size, free = _int(entry.get("size")), _int(entry.get("device_free"))
    yield f"memory snapshot: an allocation of {size} bytes on device {device} failed with {free} bytes free"


def _holding(device: int, segments: list[dict[Any, Any]], budget: Iterator[int]) -> Iterator[str]:
    held, active = (sum(_int(one.get(name)) for one in segments) for name in ("total_size", "active_size"))
    yield f"memory snapshot: device {device} held {held} bytes in {len(segments)} segments, {active} of them in use"
    sizes: Counter[str] = Counter()
    blocks: Counter[str] = Counter()
    for segment in segments:
        for block, _ in zip(_list(segment.get("blocks")), budget, strict=False):
            if isinstance(block, dict) and _str(block.get("state")).startswith("active"):
                place = _place(_frames(block))
                sizes[place] += _int(block.get("size"))
                blocks[place] += 1
    for place, size in sizes.most_common(HOLDERS):
        shown = show_bytes(size) if size >= KIB else f"{size} bytes"  # these lines are a log: no language of the user's
        yield f"memory snapshot: {shown} on device {device} in {blocks[place]} blocks from {place}"


def _place(frames: list[tuple[str, int, str]]) -> str:
    """The innermost Python frame outside torch itself."""
    python = [frame for frame in frames if frame[0].endswith(".py")]
    own = [frame for frame in python if "/torch/" not in frame[0]]
    chosen = (own or python or frames)[:1]
    return f"{chosen[0][0]}:{chosen[0][1]} {chosen[0][2]}" if chosen else "code that was not recorded"


def _frames(held: dict[Any, Any]) -> list[tuple[str, int, str]]:
    """(file, line, function), innermost first; of a block as torch 2.0 wrote it, those of its latest owner."""
    frames = held.get("frames")
    if frames is None:
        history = [one for one in _list(held.get("history")) if isinstance(one, dict)]
        frames = history[0].get("frames") if history else None
    return [
        (_str(one.get("filename"))[:400], _int(one.get("line")), _str(one.get("name"))[:200])
        for one in _list(frames)[:_FRAMES]
        if isinstance(one, dict)
    ]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _int(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() < 64 else 0
