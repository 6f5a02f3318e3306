"""Reads the sizes of a shortened, reworded or translated message of a full card by the words beside each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from advisor.crash.finds import Find
from advisor.crash.patterns import FieldValue
from advisor.regex import regex
from advisor.units import read_size

_NUMBER = r"\d{1,13}(?:[.,]\d{1,3})?"
_UNIT = r"(?:[kmgt](?:ib|io|b|o)?|bytes)(?![a-z0-9])"
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
        whole = _bytes(one["number"], one["unit"])
        part = _bytes(one["part"], one["own"] or one["unit"]) if one["part"] else None
        if part is not None and whole is not None:
            yield name if name not in ("", "total_bytes") else "process_bytes", part  # "78.9 of 80 GB used": the first
            yield "total_bytes", whole
        elif whole is not None and name:
            yield name, whole


def _bytes(number: str, unit: str) -> int | None:
    return read_size(number.replace(",", ".") + (unit[0].upper() if unit.lower() != "bytes" else ""))


def _name(before: str, after: str) -> str:
    """The field of a size, by the words right after it, else by those right before it in its sentence."""
    if _ANOTHER.search(before):
        return ""
    told = next((name for name, words in _RIGHT if words.match(after)), "")
    said = _BREAK.split(before)[-1]
    return told or next((name for name, words in _LEFT if words.search(said)), "")
