"""Reads the RAM of a node as people tell it: "~1TB RAM", "1.5 TB per node, Slurm limit 1200G"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from advisor.regex import regex
from advisor.units import parse_size, read_size

_SIZE = regex(
    r"(?<![\w.-])(?<!\d,)(?P<many>\d{1,2}\s*[x×*]\s*)?(?P<number>\d{1,3}(?:,\d{3})+|\d{1,9}(?:[.,]\d{1,3})?)\s*"
    r"(?P<unit>[gmt])i?b?(?![a-z0-9])",
    re.IGNORECASE,
)
_CLAUSE = regex(r"(?:(?<!\d),|,(?!\d)|(?<=[x×*]\s\d),|[;()，；、（）]|\s(?:and|plus)\s)\s*", re.IGNORECASE)
_RAM = regex(r"\b(?:d?ram|ddr\d|memory|mem|host)\b|内存", re.IGNORECASE)
_LIMIT = regex(r"limit|cgroup|container|docker|\bpod\b|slurm|\bjob\b|--mem\b|限制|容器", re.IGNORECASE)
_ANOTHER = regex(
    r"\b(?:free|available|left|used|use|usage|occupied|swap|disks?|ssd|nvme|storage|shm|v-?ram)\b|"
    r"\bgpu (?:memory|ram)\b|显存|可用|空闲|剩余|已用|占用|[硬磁]盘",
    re.IGNORECASE,
)
"""What is free or used of a memory, or no RAM at all."""


_TAKEN = regex(
    r"\b(?:us(?:es?|ing)|fill\w*|reach\w*|gr[eo]w\w*|ris\w+|climb\w*|needs?|requir\w*|consum\w*|takes?|took|hold\w*|peak\w*|"
    r"exceed\w*|tried|try|alloc\w*|at least|more than|over|upgrade|would|should|percent)\b|[%超涨占需达到]|分配|至少",
    re.IGNORECASE,
)
"""What a clause says of memory that is taken or wanted, not of what there is."""
_HAS = regex(
    r"(?P<size>(?<![\w.-])\d{1,5}(?:\.\d{1,2})?\s*[gt]i?b?)\s*(?:of\s+)?(?:(?:cpu|host|system|main|total|node|server)\s+)*"
    r"(?:ram\b|ddr\d\b|(?<=cpu )memory|(?<=host )memory|(?<=system )memory|(?<=main )memory|的?内存)"
    r"|(?:\b(?:cpu|host|system|main|total|node)\s+(?:ram|memory)|\bram|(?<!显)内存)(?:\s+(?:size|total))?\s*(?:is|:|=|为|是|有|共|一共|总共|大小|约)*\s*"
    r"(?P<size_>\d{1,5}(?:\.\d{1,2})?\s*[gt]i?b?)(?![a-z0-9/])",
    re.IGNORECASE,
)
"""A size right beside the word for a node's RAM."""
_LEAST_RAM = 8 << 30
"""Bytes; no node that trains has less."""
_FREE = regex(
    r"\s*(?:(?:Mem|内存)[:：]|(?P<kernel>MemTotal:))\s+(?P<number>\d{1,12}(?:[.,]\d+)?)\s?(?P<unit>[KMGT]?)i?B?"
    r"(?(kernel)|\s+\d)",
    re.IGNORECASE,
)
"""The row of `free`, whose first number is the total, and that of /proc/meminfo."""
_AS_GIB, _AS_MIB = 20_000, 8_000_000
"""Below which a total without a unit is of `free -g`, of `free -m`; above, of `free`, in KiB."""
_GPU = regex(r"(?:\b(?:gpus?|cards?|each|rtx)|[abhlvp]\d{2,3}|[2-5]0\d0)\b", re.IGNORECASE)
"""What a clause about cards names."""


@dataclass(frozen=True, slots=True)
class Ram:
    """Bytes of a node; None: not told."""

    total: int | None = None
    limit: int | None = None
    """Of its container or job."""


def ram_told(text: str) -> Ram:
    """The RAM that words tell, or the row of `free`, and the limit below it. Raises ValueError where they tell none, or
    several."""
    if listed := ram_listed(text.splitlines()):
        return Ram(listed)
    sizes = list(_sizes(text))
    limits = {size for clause, size in sizes if _LIMIT.search(clause)}
    others = [(clause, size) for clause, size in sizes if not _LIMIT.search(clause)]
    totals = {size for clause, size in others if _RAM.search(clause)} or {size for _, size in others}
    if not sizes or len(totals) > 1 or len(limits) > 1:
        raise ValueError(text)
    return Ram(next(iter(totals), None), next(iter(limits), None))


def ram_beside(text: str) -> Ram:
    """The RAM in words that are of cards first: "8xA100, 1TB RAM"; what names no RAM is none."""
    told = [clause for clause in _CLAUSE.split(text) if _RAM.search(clause) and not _GPU.search(clause)]
    try:
        return ram_told(", ".join(told))
    except ValueError:
        return Ram()


def ram_listed(lines: Iterable[str]) -> int | None:
    """The total of `free`, as a terminal shows it; None where no line is of it."""
    for line in lines:
        found = _FREE.match(line)
        if found is not None:
            number, unit = float(found["number"].replace(",", ".")), found["unit"].upper()
            plain = "G" if number < _AS_GIB else "M" if number < _AS_MIB else "K"
            return read_size(f"{number}{unit or plain}")
    return None


def ram_of_page(lines: Sequence[str]) -> int | None:
    """The RAM of a node as a page tells it, in a row of `free` or in sentences amid other things; None where they tell
    none, or several."""
    if listed := ram_listed(lines):
        return listed
    clauses = (clause for line in lines for clause in _CLAUSE.split(line))
    told = ((clause, found) for clause in clauses for found in _HAS.finditer(clause))
    sizes = {
        read_size(re.sub(r"\s", "", found["size"] or found["size_"]))
        for clause, found in told
        if not (_ANOTHER.search(clause) or _TAKEN.search(clause) or _LIMIT.search(clause))
    }
    real = {size for size in sizes if size is not None and size >= _LEAST_RAM}
    return real.pop() if len(real) == 1 else None


def _sizes(text: str) -> Iterator[tuple[str, int]]:
    """Each size that may be a node's RAM, with the clause around it."""
    for clause in _CLAUSE.split(text):
        for one in _SIZE.finditer(clause):
            if one["many"] is None and not _ANOTHER.search(clause):
                number = re.sub(r",(?=\d{3})", "", one["number"]).replace(",", ".")  # "1,024 GB", "1,5 TB"
                size = parse_size(number + one["unit"])
                if size:
                    yield clause, size
