"""torch's memory snapshots (`torch.cuda.memory._dump_snapshot`): who held the card, told as lines of text.

A snapshot is a pickle, and a pickle can run anything. This reader is no unpickler: of the opcodes that `pickletools`
lists it knows only those that make dictionaries, lists, tuples, strings and numbers, and refuses a file at the first
other one. Nothing can be imported, called or built with it, whatever the file holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

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
    """A snapshot as lines: failed allocations with their frames, what each card held, and the largest holders. Raises
    LogError, one sentence, for a file that is too large, is not plain data, or is no snapshot of torch's."""
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

_PUSHED = frozenset(
    ("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8",
     "SHORT_BINBYTES", "BINBYTES", "BINBYTES8")
)  # fmt: skip
_MADE: dict[str, Callable[[], Any]] = {
    "MARK": lambda: _MARK, "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple,
}  # fmt: skip
_TAKEN = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "APPEND": 1, "SETITEM": 2}
"""Opcodes that take so many values off the stack; those in the plural take all since the last mark."""
_MARKED = frozenset(("TUPLE", "APPENDS", "SETITEMS"))


def plain_data(data: bytes) -> Any:
    """The dictionaries, lists, tuples, strings, bytes and numbers of a pickle. Raises RefusedPickleError."""
    from pickletools import genops  # few logs are one

    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for opcode, argument, _ in islice(genops(data), _STEPS):
            name = opcode.name
            if name == "STOP":
                return stack.pop()
            if name in _PUSHED:
                stack.append(argument)
            elif name in _MADE:
                stack.append(_MADE[name]())
            elif name in _TAKEN or name in _MARKED:
                begin = len(stack) - _TAKEN[name] if name in _TAKEN else _last_mark(stack)
                items = stack[begin + (name in _MARKED) :]
                del stack[begin:]
                _put(name, items, stack)
            elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT"):
                memo[len(memo) if name == "MEMOIZE" else cast(int, argument)] = stack[-1]
            elif name in ("BINGET", "LONG_BINGET"):
                stack.append(memo[cast(int, argument)])
            elif name not in ("PROTO", "FRAME"):
                raise RefusedPickleError(say(_NOT_PLAIN))
    except (IndexError, ValueError, TypeError, KeyError) as problem:
        raise RefusedPickleError(say(_BROKEN if data.endswith(b".") else _BREAKS_OFF)) from problem
    raise RefusedPickleError(say("it is too long"))


def _last_mark(stack: list[Any]) -> int:
    for at in range(len(stack) - 1, -1, -1):
        if stack[at] is _MARK:
            return at
    raise IndexError


def _put(name: str, items: list[Any], stack: list[Any]) -> None:
    """What an opcode makes of the items that it took off the stack."""
    if name.startswith("TUPLE"):
        stack.append(tuple(items))
    elif name.startswith("APPEND"):
        if not isinstance(stack[-1], list):
            raise TypeError
        stack[-1].extend(items)
    else:
        keys = items[::2]  # hashing anything nested may take for ever
        if not isinstance(stack[-1], dict) or len(items) % 2 or not all(isinstance(key, (str, int)) for key in keys):
            raise RefusedPickleError(say(_NOT_PLAIN))
        stack[-1].update(zip(keys, items[1::2], strict=True))


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
