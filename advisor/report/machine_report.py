"""Reports what this machine has, as text."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.language import say, say_count
from advisor.machine.inventory import Gpu, Host, Machine
from advisor.machine.nodes import differences
from advisor.report.cluster_report import nodes_section
from advisor.report.layout import cut, join, section, table, wrap
from advisor.units import show_bytes

LIBRARIES_SHOWN = (
    "torch",
    "vllm",
    "sglang",
    "ray",
    "deepspeed",
    "verl",
    "openrlhf",
    "ms-swift",
    "trl",
    "transformers",
    "accelerate",
    "peft",
    "flash-attn",
    "megatron-core",
)
"""Those that decide memory; `--format json` has all of them."""


def machine_report(machine: Machine) -> str:
    """GPUs, host memory, libraries of the training environment, and what could not be read."""
    unlike = differences(machine.members)
    return join(
        [
            *wrap(_title(machine)),
            *wrap(_nodes(machine)),
            *nodes_section(machine.members),
            *table([_gpu(gpu) for gpu in machine.gpus]),
            *section(say("Host"), _host(machine.host)),
            *section(_whose(machine), _libraries(machine)),
            *section(say("How the nodes differ"), _wrapped(unlike)),
            *section(say("Not known"), _wrapped([said for said in machine.problems if said not in unlike])),
        ]
    )


def _wrapped(problems: Sequence[str]) -> list[str]:
    return [line for problem in problems for line in wrap(problem, 2, 4)]


def _nodes(machine: Machine) -> str:
    if machine.nodes is None or machine.nodes < 2:
        return ""
    if machine.members:
        return say("{count} nodes; of each thing, the smallest", count=machine.nodes)
    return say("{count} nodes alike", count=machine.nodes)


def _title(machine: Machine) -> str:
    count = len(machine.gpus)
    cards = say_count("{number} GPU", "{number} GPUs", count) if count else say("No GPUs")
    return say("{cards}, driver {version}", cards=cards, version=machine.driver) if machine.driver else cards


def _whose(machine: Machine) -> str:
    if not machine.environment:
        return say("Libraries")
    return say("Libraries of {environment}", environment=cut(machine.environment, 62))


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
        lines += wrap(say("limited to {size} by {source}", size=show_bytes(host.limit_bytes), source=source), 2, 4)
    if host.oom_kills:
        lines += wrap(say("the kernel killed {count} processes for memory here", count=host.oom_kills), 2, 4)
    sizes = {"size": show_bytes(host.shm_bytes), "used": show_bytes(host.shm_used_bytes)}
    return lines + wrap(say("shared memory {size}, used {used}", **sizes), 2, 4)


def _libraries(machine: Machine) -> list[str]:
    rows = [[name, machine.libraries[name]] for name in LIBRARIES_SHOWN if name in machine.libraries]
    return table(rows) if rows else ["  " + say("none that decide memory")]
