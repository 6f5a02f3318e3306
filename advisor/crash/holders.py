"""Tells who held the card, from the numbers of one message, shortened, reworded and translated ones, too: this process,
others, and whether the message can be believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from advisor.crash.finds import Find
from advisor.crash.patterns import FieldValue
from advisor.regex import regex
from advisor.units import MIB, read_size, show_bytes

_POOL = ("allocated_bytes", "reserved_unallocated_bytes", "private_bytes")
"""What torch's pool consists of where its sum is not printed."""
_NAMED = 6
"""Processes of a card that are named."""
_ALIKE = 0.25
"""Part by which another process of the card may differ from this one and still have loaded the same (judgement)."""
_MANY = 4
"""A card with so many times the request free was not full (judgement)."""


def with_holders(find: Find) -> Find:
    """torch's list of processes as `process_bytes` and `other_process_bytes`; a contradiction is named."""
    fields = dict(find.fields)
    rows = fields.pop("processes", None)
    if isinstance(rows, str) and rows:
        fields.update(_process_bytes(rows, fields))
    if contradicts(fields):
        fields["contradiction"] = "free exceeds request"
    return replace(find, fields=fields)


def contradicts(fields: Mapping[str, FieldValue]) -> bool:
    """Whether torch printed clearly more free memory than it asked for (rounding and 2 MiB blocks allowed for)."""
    tried, free, allowed, total = (_bytes(fields, f"{name}_bytes") for name in ("tried", "free", "allowed", "total"))
    if tried is None or free is None or (allowed is not None and total is not None and allowed < total):
        return False  # torch may use only a part of the card: what is free beyond that was not to be had
    return free - tried > max(64 * MIB, tried // 20)


def is_empty(fields: Mapping[str, FieldValue]) -> bool:
    """Whether most of the card was free, and many times what was asked for: no memory was short."""
    tried, free, total = (_bytes(fields, name) for name in ("tried_bytes", "free_bytes", "total_bytes"))
    if tried is None or free is None or not total or not contradicts(fields):
        return False
    return free >= _MANY * tried and 2 * free >= total


ROUNDED = int(0.015 * (1 << 30))
"""Bytes that a difference of three sizes, each printed to a hundredth of a GiB, may be without meaning anything."""
OWN_CONTEXT = int(1.5 * (1 << 30))
"""Bytes of a process's own context beside torch's pool (CUDA about 0.5 GiB, CANN about 1): where its sum is not
printed, so much of the card proves no other process."""


def held_by_others(fields: Mapping[str, FieldValue]) -> int | None:
    """What is neither free nor this process's. The driver of a container may know nothing of the process: then torch's
    own pool counts, as where no process is printed."""
    total, free = _bytes(fields, "total_bytes"), _bytes(fields, "free_bytes")
    process, pool = _bytes(fields, "process_bytes"), _pool(fields)
    if total is None or free is None:
        return None
    if process is None and pool is None:
        return _bytes(fields, "other_process_bytes")
    others = total - free - max(process or 0, pool or 0)
    return others if others > (ROUNDED if process else OWN_CONTEXT) else 0


def idle_in_pool(fields: Mapping[str, FieldValue]) -> int | None:
    """Bytes that torch's pool held without giving them out: as printed, or what was reserved beyond what was allocated
    (messages before torch 2.1)."""
    idle = _bytes(fields, "reserved_unallocated_bytes")
    reserved, allocated = _bytes(fields, "reserved_bytes"), _bytes(fields, "allocated_bytes")
    if idle is None and reserved is not None and allocated is not None:
        idle = max(0, reserved - allocated)
    return idle


def _pool(fields: Mapping[str, FieldValue]) -> int | None:
    """What torch's pool held: the printed sum, or its parts; None where the message was cut before them."""
    reserved = _bytes(fields, "reserved_bytes")
    parts = [size for name in _POOL if (size := _bytes(fields, name)) is not None]
    complete = "reserved_unallocated_bytes" in fields
    return reserved if reserved is not None else sum(parts) if complete else None


def _bytes(fields: Mapping[str, FieldValue], name: str) -> int | None:
    size = fields.get(name)
    return size if isinstance(size, int) else None


def _process_bytes(rows: str, fields: Mapping[str, FieldValue]) -> dict[str, FieldValue]:
    """In a container torch lists itself among the others: it is the one that holds what it allocated. `other_processes`
    names the others, the largest first."""
    compact = re.sub(r"\s+", "", rows)
    own = re.search(r"thisprocesshas(\d[\d.]*(?:bytes|[KMGTPE]iB))", compact)
    listed = re.findall(r"Process(\d+)has(\d[\d.]*(?:bytes|[KMGTPE]iB))", compact)
    known = [(size, pid) for pid, text in listed if (size := read_size(text)) is not None]
    sizes = [size for size, _ in known]
    mine = read_size(own.group(1)) if own else None
    if mine is None:
        pool = sum(size for name in _POOL if (size := _bytes(fields, name)) is not None)
        if not pool and len(known) > 1:  # cut before it says what is this process's: the others hold at least this much
            return {"other_process_bytes": sum(sizes) - max(sizes), "card_processes": _named(known)}
        holders = [size for size in sizes if size >= pool > 0]
        if not holders:
            return {}
        mine = min(holders)
        known.pop(sizes.index(mine))
        sizes.remove(mine)
    if sizes and not mine and not any(sizes):  # the driver of a container knows of the processes, not of their sizes
        pids = ", ".join(f"pid {pid}" for _, pid in sorted(known)[:_NAMED])
        alike = len(sizes) if fill_together(fields, len(sizes)) else 0
    else:
        pids, alike = "", sum(abs(size - mine) <= _ALIKE * mine for size in sizes)
    named = pids or _named(known)
    others: dict[str, FieldValue] = {"other_process_bytes": sum(sizes)} if sizes else {}
    named_too = {"other_processes": named} if named else {}
    return {"process_bytes": mine, **others, **named_too, **({"alike_processes": alike} if alike else {})}


def fill_together(fields: Mapping[str, FieldValue], others: int) -> bool:
    """Whether so many other processes, each with as much as torch's pool here, come to what of the card is not free."""
    pool, total = _pool(fields) or _bytes(fields, "allocated_bytes"), _bytes(fields, "total_bytes")
    used = (total or 0) - (_bytes(fields, "free_bytes") or 0)
    return bool(pool) and abs((others + 1) * (pool or 0) - used) <= _ALIKE * used


def _named(processes: Sequence[tuple[int, str]]) -> str:
    return ", ".join(f"{show_bytes(size)} (pid {pid})" for size, pid in sorted(processes, reverse=True)[:_NAMED])


_NUMBER = r"\d{1,13}(?:[.,]\d{1,3})?"
_UNIT = r"(?:k(?:ib|io|b|o)|[mgt](?:ib|io|b|o)?|bytes)(?![a-z0-9])"  # "32k" alone is of tokens
_SIZE = regex(
    rf"(?<![\w.,])(?:(?P<part>{_NUMBER})(?:[ -]?(?P<own>{_UNIT}))? ?(?:/|of|out of) ?(?:the |its )?)?"
    rf"(?P<number>{_NUMBER})[ -]?(?P<unit>{_UNIT})",
    re.IGNORECASE,
)
"""A size, also "78.9 of 80 GB" and "2,34 Gio"."""
_BREAK = regex(r"[.;!?。；](?:\s|$)")
"""Where a sentence ends: no word beyond it belongs to a size."""
_BE = r"(?:is |are |was |were |为)?"
_AFTER = (
    ("reserved_unallocated_bytes", rf"{_BE}(?:reserved|cached)\b[^,;]{{0,24}}\b(?:un|not )allocated|unallocated"),
    ("reserved_bytes", rf"{_BE}(?:reserved|cached)\b"),
    ("allocated_bytes", rf"{_BE}已?(?:already )?(?:been )?(?:allocated\b|alloc\b|allou)"),
    (
        "free_bytes",
        rf"{_BE}(?:still |only )?(?:free\b|left\b|available\b|remaining\b|avail\b|libre|空闲|可用|剩余)",
    ),
    ("process_bytes", r"(?:\w+ ){0,2}(?:in use\b|used\b|utilis|已用|已使用)"),
    (
        "total_bytes",
        r"(?:of )?(?:total|capacity|card|gpu|vram|rtx|[abhlv]\d{2,4}s?|[345]0[6-9]0|t4)\b|显卡|总",
    ),
    ("tried_bytes", r"(?:more|requested|asked)\b"),
)
"""Field, and the words that follow a size of it."""
_BEFORE = (
    (
        "tried_bytes",
        r"(?:alloca\w*|alloc|tried|request\w*|ask\w*|want\w*|need\w*|requir\w*|分配|申请|需要|d['’]allocation de)",
    ),
    (
        "total_bytes",
        r"(?:(?:total )?capac\w*(?: of)?|total(?: of)?|cap|out of|(?<!memory )of|with|(?:card|gpu)(?: has)?|"
        r"总(?:容量|显存|共|计)?)",
    ),
    ("allocated_bytes", r"(?:already allocated|allocated(?: memory)?|已分配)"),
    ("free_bytes", r"(?:free|available|left|remaining|空闲|可用|剩余)"),
    ("process_bytes", r"(?:process(?: has| holds| uses)|in use|used|using|已用|已使用)"),
    ("reserved_bytes", r"(?:reserved|cached)"),
)
"""Field, and the words that a size of it follows."""
_JOINS = r"(?:\W|\b(?:of|is|was|only|about|just|another|for|to|a|an|the|为|是|了|约|仅|只有)\b|为|是|了|约|仅){0,6}$"
"""What may stand between such a word and its size."""
_RIGHT = tuple((name, re.compile(rf"[ -]{{0,2}}(?:{words})", re.IGNORECASE)) for name, words in _AFTER)
_LEFT = tuple((name, re.compile(rf"(?:{words}){_JOINS}", re.IGNORECASE)) for name, words in _BEFORE)
_ANOTHER = regex(r"process \d+ \w+\W*$", re.IGNORECASE)
"""torch's words for what another process holds, or this one in a container: nothing here tells which."""
_AROUND, _MESSAGE = 200, 800
"""Characters before and after the first word of a message that belong to it."""
_GOES_ON = regex(r"\s*(?:the )?(?:gpu|card|device|process|including|of (?:the|which))\b", re.IGNORECASE)
"""How the line below begins, where a message was broken behind its first sentence."""
_REACH = 48
"""Characters beside a size in which its word is looked for."""


def with_worded(find: Find) -> Find:
    """The find with the sizes that its message tells in other words than the program's own."""
    if not find.signature.worded:
        return find
    begin = max(0, find.column - _AROUND)
    message = find.text[begin : find.column + _MESSAGE]
    below = find.after[0].text if find.after else ""
    if find.last_number == find.first.number and _GOES_ON.match(below):
        message += "\n" + below
    told = worded_sizes(message)
    return replace(find, fields={**told, **find.fields})


def worded_sizes(text: str) -> dict[str, FieldValue]:
    """Sizes in bytes by field (tried, free, total, allocated, reserved, process); the first of each field counts."""
    found: dict[str, FieldValue] = {}
    for name, size in _told(text):
        found.setdefault(name, size)
    total = found.get("total_bytes")
    held = [size for name, size in found.items() if name not in ("tried_bytes", "total_bytes")]
    if isinstance(total, int) and any(isinstance(size, int) and size > total for size in held):
        return {}  # the words were understood wrongly
    return found


def _told(text: str) -> Iterator[tuple[str, int]]:
    sizes = list(_SIZE.finditer(text))
    ends = [0, *(one.end() for one in sizes)]
    starts = [*(one.start() for one in sizes[1:]), len(text)]
    for one, begin, end in zip(sizes, ends, starts, strict=False):
        name = _name(text[begin : one.start()][-_REACH:], text[one.end() : end][:_REACH])
        whole = _bytes_in(one["number"], one["unit"])
        part = _bytes_in(one["part"], one["own"] or one["unit"]) if one["part"] else None
        if part is not None and whole is not None:
            yield name if name not in ("", "total_bytes") else "process_bytes", part  # "78.9 of 80 GB used": the first
            yield "total_bytes", whole
        elif whole is not None and name:
            yield name, whole


def _bytes_in(number: str, unit: str) -> int | None:
    return read_size(number.replace(",", ".") + (unit[0].upper() if unit.lower() != "bytes" else ""))


def _name(before: str, after: str) -> str:
    """The field of a size, by the words right after it, else by those right before it in its sentence."""
    if _ANOTHER.search(before):
        return ""
    told = next((name for name, words in _RIGHT if words.match(after)), "")
    said = _BREAK.split(before)[-1]
    return told or next((name for name, words in _LEFT if words.search(said)), "")
