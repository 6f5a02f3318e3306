"""Reads pasted tables of processes: `ps`, `top` and the kernel's list at a kill for RAM, nvidia-smi's for cards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from advisor.crash.evidence import TopUser
from advisor.crash.lines import LogLine
from advisor.redact import redact
from advisor.regex import regex
from advisor.units import KIB, MIB, read_size, show_bytes

_HELD = {"rss": KIB, "res": KIB}
"""Columns of the RAM that a process holds, and the unit of a number without one (ps(1), top(1))."""
_PAGE = 4 * KIB
"""The unit of rss in the kernel's list, which also has total_vm (mm/oom_kill.c dump_tasks; pages of 4 KiB)."""
_NAMES = ("command", "cmd", "args", "name")
_HEAD = regex(r"\[?\s*pid\s*\]?", re.IGNORECASE)
_STAMPED = regex(r"^.*?(?=\[\s*(?:pid|\d+)\s*\])", re.IGNORECASE)
"""What the kernel's log writes before a row."""
_ROWS, _LINES, _LONG = 12, 60, 14
"""Rows that are told, lines that are looked at, digits of a number that is no size."""
_LEAST = 256 * MIB
"""Processes that hold less say nothing of a full node (judgement)."""
_SMI = regex(
    r"^\|\s{1,8}(?P<gpu>\d{1,2})\s+(?:(?:N/A|\d+)\s+){0,2}(?P<pid>\d{1,8})\s+(?:C|G|C\+G|M\+C)\s+(?P<name>\S.{0,200}?)\s+"
    r"(?P<used>\d{1,7})\s?MiB\s*\|"
)
"""A row of nvidia-smi's processes."""


def ram_users(lines: Sequence[LogLine]) -> tuple[tuple[TopUser, ...], tuple[LogLine, ...]]:
    """The processes of the first such table that hold much RAM, the largest first, and the lines they stand on."""
    for number, line in enumerate(lines):
        head = _columns(line.text)
        if head is None:
            continue
        found = [(user, row) for row in lines[number + 1 : number + 1 + _LINES] if (user := _user(row.text, head))]
        found.sort(key=lambda pair: -pair[0].used_bytes)
        if found:
            return tuple(user for user, _ in found[:_ROWS]), tuple(row for _, row in found[:_ROWS])
    return (), ()


def card_users(lines: Iterable[LogLine], card: int | None) -> str:
    """Who held a card by nvidia-smi, "61234 MiB python (pid 1834), …"; of several cards the one that failed."""
    rows = [found for line in lines if (found := _SMI.match(line.text)) is not None]
    cards = {int(row["gpu"]) for row in rows}
    wanted = card if card in cards else cards.pop() if len(cards) == 1 else None
    told = {
        row["pid"]: f"{show_bytes(int(row['used']) * MIB)} {redact(row['name'].strip())} (pid {row['pid']})"
        for row in rows
        if int(row["gpu"]) == wanted
    }
    return ", ".join(list(told.values())[:_ROWS])


def _words(text: str) -> list[str]:
    """The words of a row; the brackets of the kernel's list count as none, nor what its log writes before."""
    return _STAMPED.sub("", text).replace("[", " ").replace("]", " ").split()


def _columns(text: str) -> list[str] | None:
    """The names of the columns of a head; None where a line is none."""
    if _HEAD.search(text) is None:
        return None
    names = [word.lower() for word in _words(text)]
    return names if "pid" in names and set(names) & _HELD.keys() and names[-1] in _NAMES else None


def _user(text: str, head: Sequence[str]) -> TopUser | None:
    words = _words(text)
    if len(words) < len(head):
        return None
    row = dict(zip(head, (*words[: len(head) - 1], " ".join(words[len(head) - 1 :])), strict=True))
    column = next(name for name in _HELD if name in row)
    unit = _PAGE if "total_vm" in row else _HELD[column]
    size = _size(row[column], unit)
    if not row["pid"].isdigit() or size is None or size < _LEAST:
        return None
    return TopUser(int(row["pid"]), size, redact(row[head[-1]]))


def _size(text: str, unit: int) -> int | None:
    """A number in its column's unit, or with top's letter for another ("61.2g")."""
    if text.isdigit() and len(text) < _LONG:
        return int(text) * unit
    return read_size(f"{text}iB") if re.fullmatch(r"\d{1,6}(?:\.\d{1,3})?[mgtMGT]", text) else None
