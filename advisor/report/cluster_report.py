"""Reports several nodes: those alike together, the tightest first, and what each has left for the run."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.language import say
from advisor.machine.inventory import Machine
from advisor.machine.nodes import free_for_a_run
from advisor.memory.cells import Ledger
from advisor.report.layout import cut, section, table, wrap
from advisor.units import show_gib

ROWS = 12
"""Nodes shown one by one; of more, those with the least host memory left."""


def nodes_lines(members: Sequence[Machine], ledger: Ledger | None = None) -> list[str]:
    """A row a node: cards, their memory in use, host memory and what of it a run may take; [] for a single node."""
    if not members:
        return []
    ordered = sorted(members, key=lambda member: (_free(member), member.name))
    shown = ordered[:ROWS]
    peak = ledger.peak("host") if ledger is not None else None
    rows = [_row(member, peak.expected if peak is not None else None) for member in shown]
    head = [say("node"), say("cards"), say("in use"), say("RAM"), say("limit"), say("free for a run")]
    head += [say("GPU driver"), *([say("needed")] if peak is not None else [])]
    lines = table([head, *rows])
    if len(ordered) > len(shown):
        least = show_gib(_free(ordered[len(shown)]))
        more = len(ordered) - len(shown)
        lines += wrap(say("and {count} more nodes with {size} GiB free and more", count=more, size=least), 2, 4)
    return lines


def nodes_section(members: Sequence[Machine], ledger: Ledger | None = None) -> list[str]:
    """With its heading."""
    return section(say("{count} nodes, the tightest first, GiB", count=len(members)), nodes_lines(members, ledger))


def _free(member: Machine) -> int:
    size = free_for_a_run(member.host)
    return 2**62 if size is None else size


def _row(member: Machine, needed: int | None) -> list[str]:
    used = max((gpu.used_bytes for gpu in member.gpus if gpu.used_bytes is not None), default=None)
    name = member.usable[0].name.removeprefix("NVIDIA ") if member.gpus else ""
    host, free = member.host, free_for_a_run(member.host)
    row = [
        cut(member.name, 22),
        cut(f"{len(member.usable)} x {name}" if name else say("none"), 18),
        show_gib(used) if member.gpus else "",
        show_gib(host.total_bytes, 0),
        show_gib(host.limit_bytes, 0) if host.limit_bytes is not None else say("none"),
        show_gib(free, 0),
        cut(member.driver, 12),
    ]
    if needed is not None:
        fits = free is None or needed <= free
        row.append(show_gib(needed, 0) if fits else say("{size} no room", size=show_gib(needed, 0)))
    return row
