"""Reports what this machine has, and several nodes: those alike together, the tightest first."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.language import say, say_count
from advisor.line_breaks import cut
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.machine.nodes import differences, free_for_a_run
from advisor.memory.cells import Ledger
from advisor.report.layout import join, section, table, wrap, wrap_each
from advisor.units import show_bytes, show_gib

LIBRARIES_SHOWN = (
    *("torch", "vllm", "sglang", "ray", "deepspeed", "verl", "openrlhf", "ms-swift", "trl", "transformers"),
    *("accelerate", "peft", "flash-attn", "megatron-core"),
)
"""Those that decide memory; `--format json` has all of them."""


def machine_report(machine: Machine) -> str:
    """GPUs, host memory, libraries of the training environment, and what could not be read."""
    unlike, count = differences(machine.members), len(machine.gpus)
    cards = say_count("{number} GPU", "{number} GPUs", count) if count else say("No GPUs")
    told = say("{cards}, driver {version}", cards=cards, version=machine.driver) if machine.driver else cards
    alike = say("{count} nodes alike", count=machine.nodes)
    nodes = say("{count} nodes; of each thing, the smallest", count=machine.nodes) if machine.members else alike
    where = cut(machine.environment, 62)
    rows = [[name, machine.libraries[name]] for name in LIBRARIES_SHOWN if name in machine.libraries]
    return join(
        [
            *wrap(told),
            *wrap(nodes if machine.nodes is not None and machine.nodes > 1 else ""),
            *nodes_section(machine.members),
            *table([_gpu(gpu) for gpu in machine.gpus]),
            *section(say("Host"), _host(machine.host)),
            *section(
                say("Libraries of {environment}", environment=where) if where else say("Libraries"),
                table(rows) or ["  " + say("none that decide memory")],
            ),
            *section(say("How the nodes differ"), wrap_each(unlike, 2, 4)),
            *section(say("Not known"), wrap_each([said for said in machine.problems if said not in unlike], 2, 4)),
        ]
    )


def _gpu(gpu: Gpu) -> list[str]:
    load = "" if gpu.utilisation is None else f"{gpu.utilisation} %"
    total = show_bytes(gpu.total_bytes)
    used = say("{used} of {total}", used=show_bytes(gpu.used_bytes), total=total)
    return [
        str(gpu.index),
        cut(gpu.name, 30),
        total if gpu.used_bytes is None else used,
        load,
        cut(gpu.mig, 12),
    ]


def _host(host: Host) -> list[str]:
    total, available = show_bytes(host.total_bytes), show_bytes(host.available_bytes)
    lines = wrap(say("RAM {total}, available {available}", total=total, available=available), 2, 4)
    if host.limit_bytes is not None:
        source = host.limit_source or say("a control group")
        sizes = {"size": show_bytes(host.limit_bytes), "used": show_bytes(host.limit_used_bytes)}
        lines += wrap(say("limited to {size} by {source}, used {used}", **sizes, source=source), 2, 4)
    if host.reserved_bytes:
        lines += wrap(say("huge pages {size}, which a run gets none of", size=show_bytes(host.reserved_bytes)), 2, 4)
    if host.oom_kills:
        lines += wrap(say("the kernel killed {count} processes for memory here", count=host.oom_kills), 2, 4)
    sizes = {"size": show_bytes(host.shm_bytes), "used": show_bytes(host.shm_used_bytes)}
    return lines + wrap(say("shared memory {size}, used {used}", **sizes), 2, 4)


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
