"""Counts of GPUs that frameworks write as text: lists of device ids, and parallel sizes like "sglang:d4t2"."""

from __future__ import annotations

import re
from math import prod

_RANGE = re.compile(r"list\(range\((?:(\d{1,6}),)?(\d{1,6})(?:,(\d{1,6}))?\)\)\Z")
_NUMBERS = re.compile(r"\[?\d{1,6}(?:,\d{1,6})*\]?\Z")
_SIZES = re.compile(r"(?:[a-z]+[.:])?((?:[a-z]\d{1,5})+)\Z")
_SIZE = re.compile(r"([a-z])(\d+)")


def device_ids(text: str | None) -> frozenset[int] | None:
    """The ids of "list(range(0,8))" (sums of such), "[0,1,2]" or "0,1"; None where it is anything else."""
    bare = "".join((text or "").split())
    found: set[int] = set()
    for part in bare.split("+") if bare else ():
        ids = _ids(part)
        if ids is None:
            return None
        found |= ids
    return frozenset(found) or None


def _ids(part: str) -> set[int] | None:
    spread = _RANGE.match(part)
    if spread:
        step = int(spread[3] or 1)
        return set(range(int(spread[1] or 0), int(spread[2]), step)) if step else None
    return {int(number) for number in part.strip("[]").split(",")} if _NUMBERS.match(part) else None


def parallel_sizes(text: str | None) -> dict[str, int] | None:
    """Letter → size of "sglang:d4p1t2" or "fsdp:d8"; experts (e) share the other ranks. None where it is not such."""
    match = _SIZES.match("".join((text or "").split()))
    if match is None:
        return None
    return {letter: int(size) for letter, size in _SIZE.findall(match[1])}


def ranks(sizes: dict[str, int]) -> int:
    """GPUs that data, tensor, pipeline and context parallel sizes span together."""
    return prod(size for letter, size in sizes.items() if letter in "dtpc")
