"""Says in one line which cards, host and libraries a run has."""

from __future__ import annotations

from advisor.language import listed, say
from advisor.machine.inventory import Machine
from advisor.run.run import Topology
from advisor.units import show_bytes
from advisor.words import Platform


def machine_line(machine: Machine, topology: Topology, platform: Platform = "cuda") -> str:
    """ "2 nodes of 8 × A100-SXM4-40GB each · 760.00 GiB RAM, no container limit known · torch 2.5.1, ray 2.40.0".

    By the launch's topology the nodes that nobody states, and how many GPUs where nobody knows of which kind they are.
    """
    parts = []
    nodes = machine.nodes or (topology.nodes if topology.known else 1)
    one_memory = platform in ("mps", "cpu") and not machine.gpus
    own = say("no card with memory of its own") if one_memory else cards(machine, topology.counted)
    each = nodes > 1 and machine.gpus
    parts += [say("{count} nodes of {cards} each", count=nodes, cards=own)] if each else [own]
    parts = [say("{count} nodes", count=nodes), *parts] if nodes > 1 and not each else parts
    host = machine.host
    if host.total_bytes is not None and host.limit_bytes is not None:
        sizes = {"size": show_bytes(host.total_bytes), "limit": show_bytes(host.limit_bytes)}
        if machine.sources.get("host.limit") == "script":
            parts.append(say("{size} RAM, limited to {limit} by {source}", **sizes, source=host.limit_source))
        else:
            parts.append(say("{size} RAM, limited to {limit}", **sizes))
    elif host.limit_bytes is not None:
        source = host.limit_source or say("a limit")
        parts.append(say("RAM limited to {limit} by {source}", limit=show_bytes(host.limit_bytes), source=source))
    elif host.total_bytes is not None:
        parts.append(say("{size} RAM", size=show_bytes(host.total_bytes)))
    if host.shm_bytes is not None:
        parts.append(say("{size} shared memory", size=show_bytes(host.shm_bytes)))
    told = ("torch", "vllm", "sglang", "ray", "deepspeed", "verl", "openrlhf", "ms-swift", "trl", "transformers")
    versions = [f"{name} {machine.libraries[name]}" for name in told if name in machine.libraries]
    if versions:
        parts.append(listed(versions))
    return " · ".join(parts)


def cards(machine: Machine, asked: int | None, kind: str = "", each: str = "") -> str:
    """How many GPUs of which kind; `asked`: as many as the launch asks for, told where nobody counted more.

    `kind` names a card with its size, like "A100 (79.15 GiB)", and `each` its size alone; by default as reports do.
    """
    if not machine.gpus:
        return say("{count} GPUs of unknown size", count=asked) if asked else say("no GPU known")
    count, each = len(machine.usable), each or show_bytes(machine.gpu_bytes)
    names = " / ".join(sorted({gpu.name for gpu in machine.usable}))
    kind = kind or say("{names} ({size})", names=names, size=each)
    if machine.more_gpus and (asked or 0) > count:
        return say("{count} GPUs by the script, one of {size} by the log", count=asked, size=each)
    if machine.more_gpus and count == 1:
        return say("{kind}, number not known", kind=kind)
    told = f"{count} × {kind}"
    return say("at least {cards}", cards=told) if machine.more_gpus else told
