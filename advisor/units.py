"""Bytes in, "13.91 GiB" out, and back. Bytes are ints everywhere inside; 1 GiB = 2^30.

Tools print binary units under decimal names (Ray's "GB", SGLang's "GB", nvidia-smi), and cards and RAM are sold that
way, so `parse_size` reads GB as GiB: "760GB" is 760 * 2^30.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from advisor.language import say

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
_FACTOR = {"": 1, "B": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
_SIZE = re.compile(r"\s*(\d{1,24}(?:\.\d+)?)\s*([KMGT]?)(?:(?<=[KMGT])i|i?B|bytes)?\s*$", re.IGNORECASE)


def parse_size(text: str) -> int:
    """ "760GB", "13.91 GiB", "608 bytes" → bytes. Raises ValueError with the text it could not read."""
    match = _SIZE.match(text)
    if match is None:
        raise ValueError(say("not a size: {text!r} (write it like 80GB or 512MiB)", text=text[:80]))
    return round(float(match.group(1)) * _FACTOR[match.group(2).upper()])


def read_size(text: str) -> int | None:
    """`parse_size` of what a stranger printed: None where it is no size, or one of absurd length."""
    try:
        return parse_size(text)
    except ValueError:
        return None


def show_bytes(count: int | float | None) -> str:
    """Two decimals in GiB, MiB below one GiB, as torch prints; "unknown" for None."""
    if count is None:
        return say("unknown")
    size = abs(count)
    if size >= GIB:
        return f"{count / GIB:.2f} GiB"
    if size >= MIB:
        return f"{count / MIB:.2f} MiB"
    if size >= KIB:
        return f"{count / KIB:.1f} KiB"
    return say("{count:.0f} bytes", count=count)


def in_ranges(numbers: Iterable[int]) -> str:
    """ "0–7, 9": ascending, three or more in a row as a range."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def show_gib(count: int | float | None, digits: int = 1) -> str:
    """ "18.9" for a column whose header says GiB; "?" for None."""
    return "?" if count is None else f"{count / GIB:.{digits}f}"


def show_clock(seconds: float) -> str:
    """12345 → "3:25:45"."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def show_params(count: int | float | None) -> str:
    """7615616512 → "7.62B"."""
    if count is None:
        return say("unknown size")
    return f"{count / 1e9:.2f}B" if count >= 1e9 else f"{count / 1e6:.0f}M"
